"""Composition: how strongly a head reads the output of an earlier head, judged by their weights alone."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor

from ..config import check_int
from ..errors import InputError
from ..gpt import GPT, Block

Way = Literal["q", "k", "v"]
WAYS: tuple[Way, ...] = ("q", "k", "v")
DRAWS = 16  # random heads for the baseline, each paired with this many others
SEED = 0


class Baseline(NamedTuple):
    """The scores of random heads of the same shape: their mean and standard deviation."""

    mean: float
    spread: float


@dataclass(frozen=True)
class Composition:
    """How strongly each head reads each earlier one, in its queries, keys and values.

    ``scores[way][later]`` is ``(n_head, later, n_head)``: for each head in the layer ``later``, its score with every
    head of every earlier layer. ``baseline[way]`` is the score of random heads of this shape.
    """

    scores: dict[Way, list[Tensor]]
    baseline: dict[Way, Baseline]


class HeadFactors(NamedTuple):
    """The factors of all heads of a layer, each ``(n_head, C, head_dim)``, in float64.

    Token vectors are rows: the queries, keys and values of ``x`` are ``x @ query`` and so on, and the head adds
    ``(x @ value) @ output.T`` to the residual stream.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


@torch.inference_mode()
def composition(gpt: GPT, centred: bool = False, distance: int = 0) -> Composition:
    """Q-, K- and V-composition of every pair of heads in different layers (Elhage et al. 2021).

    The score is ``||W_OV M||_F / (||W_OV||_F ||M||_F)`` with ``W_OV`` of the earlier head and ``M`` the matrix that the
    later head applies to its output: ``W_QK`` on the query side, its transpose on the key side, or its own ``W_OV``. It
    is 0 if the later head reads nothing that the earlier one writes. The gain of the layer norm before each head is
    folded into its matrices; with ``centred`` so is the subtraction of the mean, otherwise it is left out. Biases, the
    norm's division and all layers in between, including MLPs, do not enter the score.

    Where positions are rotary, the scores are those of a query that is ``distance`` positions after its key. Raises
    ``InputError`` for a model that normalises each query and key: their product is then not a matrix of the weights.
    """
    if gpt.config.qk_norm:
        message = "This model normalises each query and key, so no matrix of its weights gives their product."
        raise InputError("model", message)
    check_int("distance", distance, gpt.config.context_length - 1, least=0)
    layers = [factors_of(cast(Block, block), centred, distance) for block in gpt.h]
    scores: dict[Way, list[Tensor]] = {way: [] for way in WAYS}
    for later, head in enumerate(layers):
        for way in WAYS:
            rows = [pair_scores(earlier, head, way) for earlier in layers[:later]]
            n_head = len(head.query)
            scores[way].append(torch.stack(rows, 1).float() if rows else torch.zeros(n_head, 0, n_head))
    return Composition(scores, baseline(gpt.config.n_embd, gpt.config.head_dim))


def baseline(n_embd: int, head_dim: int, seed: int = SEED) -> dict[Way, Baseline]:
    """The scores of heads whose weights are drawn independently from one normal distribution.

    The mean is about ``1 / sqrt(n_embd)`` in each way; the spread is the standard deviation over single pairs of heads.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw() -> HeadFactors:
        parts = torch.randn(4, DRAWS, n_embd, head_dim, generator=generator, dtype=torch.float64)
        return HeadFactors(*parts)

    earlier, later = draw(), draw()
    found = {way: pair_scores(earlier, later, way) for way in WAYS}
    return {way: Baseline(float(scores.mean()), float(scores.std())) for way, scores in found.items()}


def factors_of(block: Block, centred: bool, distance: int) -> HeadFactors:
    W_Q, W_K, W_V, W_O = (matrix.detach().cpu().double() for matrix in block.attn.matrices(distance)[:4])
    query, key, value = (block.fold_norm(matrix.mT, centred=centred).mT for matrix in (W_Q, W_K, W_V))
    return HeadFactors(query, key, value, W_O.mT)


def pair_scores(earlier: HeadFactors, later: HeadFactors, way: Way) -> Tensor:
    """``(later heads, earlier heads)``: from triangular factors, as the matrices have a rank of only ``head_dim``."""
    read, rest = {"q": (later.query, later.key), "k": (later.key, later.query), "v": (later.value, later.output)}[way]
    rest, value = triangle(rest), triangle(earlier.value)
    # ||V O^T R S^T|| = ||tri(V) (O^T R) tri(S)^T|| for every pair of heads, and likewise the norms of the two factors.
    between = torch.einsum("ecd,lcf->ledf", earlier.output, read)
    both = torch.linalg.matrix_norm(value @ between @ rest.mT[:, None])
    written = torch.linalg.matrix_norm(value @ triangle(earlier.output).mT)
    reading = torch.linalg.matrix_norm(triangle(read) @ rest.mT)
    scale = reading[:, None] * written
    return torch.where(scale > 0, both / scale, 0.0)


def triangle(matrices: Tensor) -> Tensor:
    """R of the QR decomposition, ``(..., head_dim, head_dim)``: applied to any vector, it gives the same norm."""
    return torch.linalg.qr(matrices, mode="r")[1]
