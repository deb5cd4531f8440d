"""Composition: how strongly a head reads the output of an earlier head, judged by their weights alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import torch
from torch import Tensor

from ..config import check_int
from ..drawing.heat_map import N_LARGEST, Part
from ..errors import InputError
from ..gpt import GPT, Block
from .answer import Answer, NotSent, SentAs, Shape, sent
from .progress import Progress, ignore
from .question import Within

Way = Literal["q", "k", "v"]
WAYS: tuple[Way, ...] = ("q", "k", "v")


# [later layer][later head][earlier layer][earlier head]
PerPair = list[Annotated[Tensor, Shape(("n_head", "later", "n_head"))]]


class Deviations(TypedDict):
    """By how many standard deviations each squared score exceeds those of the same two heads, rotated at random."""

    q: PerPair
    k: PerPair
    v: PerPair


@dataclass(frozen=True)
class Composition(Answer):
    """Q-, K- and V-composition scores by later layer and head, then earlier layer and head, and how far each is
    above that of the same two heads rotated at random.

    ``scores[way][later]`` has for each head in the layer ``later`` its score with every head of every earlier layer.
    """

    scores: Annotated[dict[Way, PerPair], NotSent(), "The same as `q`, `k` and `v`, by those names."]
    deviations: Annotated[
        dict[Way, PerPair],
        SentAs(Deviations),
        "By how many standard deviations each squared score exceeds those of the same two heads, rotated at random.",
    ]
    chance: Annotated[
        float,
        "The root mean square of the score of two heads with the same singular values, rotated at random: "
        "1 / sqrt(n_embd).",
    ]
    centred: bool
    distance: int

    @property
    def summary(self) -> str:
        firsts = [(way, next(iter(self.strongest(way, 1)), None)) for way in WAYS]
        said = [f"{way} {each['later']} of {each['earlier']}: {each['score']:.3f}" for way, each in firsts if each]
        return f"The highest scores: {'; '.join(said)}." if said else ""

    def drawn(self) -> Iterator[Part]:
        """The pairs with the highest scores: there are too many for a table of all."""
        for way in WAYS:
            yield Part(way, self.strongest(way), help="The highest scores, and their deviations from chance.")
        yield Part("chance", self.chance)

    def strongest(self, way: Way, k: int = N_LARGEST) -> list[dict[str, Any]]:
        """The ``k`` pairs of heads with the highest scores, in descending order."""
        pairs = [
            {"later": f"L{later} H{head}", "earlier": f"L{layer} H{other}", "score": score, "deviation": deviation}
            for later, (scores, deviations) in enumerate(zip(self.scores[way], self.deviations[way], strict=True))
            for (head, layer, other), score, deviation in zip(
                product(*map(range, scores.shape)),
                scores.flatten().tolist(),
                deviations.flatten().tolist(),
                strict=True,
            )
        ]
        return nlargest(k, pairs, key=lambda pair: pair["score"])

    @property
    @sent
    def q(self) -> PerPair:
        """``[later layer][later head][earlier layer][earlier head]``, with the gain of the norms folded in."""
        return self.scores["q"]

    @property
    @sent
    def k(self) -> PerPair:
        return self.scores["k"]

    @property
    @sent
    def v(self) -> PerPair:
        return self.scores["v"]


class HeadFactors(NamedTuple):
    """The factors of all heads of a layer, each ``(n_head, C, head_dim)``, in float64.

    Token vectors are rows: the queries, keys and values of ``x`` are ``x @ query`` and so on, and the head adds
    ``(x @ value) @ output.T`` to the residual stream.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


@torch.no_grad()
def composition(
    gpt: GPT,
    *,
    centred: Annotated[bool, "Also fold a LayerNorm's subtraction of the mean into the weights."] = False,
    distance: Annotated[
        int,
        Within(below="context_length"),
        "How many positions the query comes after the key; it matters only for rotary positions.",
    ] = 0,
    progress: Progress = ignore,
) -> Composition:
    """How strongly each head's weights read from the output of each earlier head.

    Q-, K- and V-composition of every pair of heads in different layers (Elhage et al. 2021).

    The score is ``||W_OV M||_F / (||W_OV||_F ||M||_F)`` with ``W_OV`` of the earlier head and ``M`` the matrix that the
    later head applies to its output: ``W_QK`` on the query side, its transpose on the key side, or its own ``W_OV``. It
    is 0 if the later head reads nothing that the earlier one writes. The gain of the norm before each head is folded
    into its matrices; with ``centred`` so is a LayerNorm's subtraction of the mean, otherwise it is left out. Biases,
    the norm's division and all layers in between, including MLPs, do not enter the score.

    A score is compared with those of two heads with the same singular values, the later one rotated at random against
    the earlier one: ``W_OV Q M`` for orthogonal ``Q``. This differs from random heads, whose singular values are nearly
    equal: a trained head with a few large ones reads much of a few directions, by chance too.

    Where positions are rotary, the scores are those of a query that is ``distance`` positions after its key. Raises
    ``InputError`` for a model that normalises each query and key: their product is then not a matrix of the weights.
    """
    if gpt.config.qk_norm:
        message = "This model normalises each query and key, so no matrix of its weights gives their product."
        raise InputError("model", message)
    check_int("distance", distance, gpt.config.context_length - 1, least=0)
    layers = [factors_of(block, centred, distance) for block in gpt.blocks]
    scores: dict[Way, list[Tensor]] = {way: [] for way in WAYS}
    deviations: dict[Way, list[Tensor]] = {way: [] for way in WAYS}
    n_head = gpt.config.n_head
    for later, head in enumerate(layers):
        for way in WAYS:
            progress(later**2 / len(layers) ** 2)  # a layer has as many pairs as there are earlier ones
            pairs = [pair_scores(earlier, head, way) for earlier in layers[:later]]
            for table, rows in zip((scores, deviations), zip(*pairs, strict=True) if pairs else ((), ()), strict=True):
                table[way].append(torch.stack(rows, 1).float() if rows else torch.zeros(n_head, 0, n_head))
    return Composition(scores, deviations, gpt.config.n_embd**-0.5, centred, distance)


def factors_of(block: Block, centred: bool, distance: int) -> HeadFactors:
    W_Q, W_K, W_V, W_O = (matrix.detach().cpu().double() for matrix in block.attn.matrices(distance)[:4])
    query, key, value = (block.fold_norm(matrix.mT, centred=centred).mT for matrix in (W_Q, W_K, W_V))
    return HeadFactors(query, key, value, block.attention_adds(W_O).mT)


def pair_scores(earlier: HeadFactors, later: HeadFactors, way: Way) -> tuple[Tensor, Tensor]:
    """The scores ``(later heads, earlier heads)`` and their deviations.

    Both are computed from triangular factors, as the matrices have a rank of only ``head_dim``.
    """
    read, rest = {"q": (later.query, later.key), "k": (later.key, later.query), "v": (later.value, later.output)}[way]
    rest, value = triangle(rest), triangle(earlier.value)
    # ||V O^T R S^T|| = ||tri(V) (O^T R) tri(S)^T|| for every pair of heads, and likewise the norms of the two factors.
    between = torch.einsum("ecd,lcf->ledf", earlier.output, read)
    both = torch.linalg.matrix_norm(value @ between @ rest.mT[:, None])
    written, reading = value @ triangle(earlier.output).mT, triangle(read) @ rest.mT
    scale = torch.linalg.matrix_norm(reading)[:, None] * torch.linalg.matrix_norm(written)
    scores = torch.where(scale > 0, both / scale, 0.0)
    n_embd = read.shape[1]
    spread = (2 * unevenness(reading, n_embd)[:, None] * unevenness(written, n_embd)).sqrt()
    spread = spread / ((n_embd - 1) * (n_embd + 2)) ** 0.5
    deviations = torch.where((scale > 0) & (spread > 0), (scores.square() - 1 / n_embd) / spread, 0.0)
    return scores, deviations


def unevenness(factors: Tensor, n_embd: int) -> Tensor:
    """``sum(s^4) / sum(s^2)^2 - 1 / n_embd`` of the singular values ``s`` of each matrix.

    ``||A Q B||_F^2`` with ``Q`` uniform over the orthogonal matrices has the mean ``||A||^2 ||B||^2 / n`` and, relative
    to ``||A||^4 ||B||^4``, the variance ``2 unevenness(A) unevenness(B) / ((n - 1) (n + 2))``, from the moments of the
    entries of ``Q`` (Collins and Sniady 2006).
    """
    squares = torch.linalg.svdvals(factors).square()
    total = squares.sum(-1).square()
    return torch.where(total > 0, squares.square().sum(-1) / total - 1 / n_embd, 0.0).clamp_min(0)


def triangle(matrices: Tensor) -> Tensor:
    """R of the QR decomposition, ``(..., head_dim, head_dim)``: applied to any vector, it gives the same norm."""
    return torch.linalg.qr(matrices, mode="r")[1]
