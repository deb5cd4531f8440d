"""Rungs 4 and 5 of the ladder: averages of token vectors, first with equal weights, then with weights from the text.

Inputs are token vectors ``(T, C)`` or ``(B, T, C)``.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import PromptError
from ..loaded import LoadedModel

# ---- Rung 4: the average of the past, three ways ---------------------------------------------------------------------


def average_by_loop(x: Tensor) -> Tensor:
    """Row ``t`` of the result is the mean of rows ``0..t`` of ``x``: the simplest way to use the past."""
    return torch.stack([x[..., : t + 1, :].mean(dim=-2) for t in range(x.shape[-2])], dim=-2)


def average_by_matrix(x: Tensor) -> Tensor:
    """``average_by_loop`` as a matrix product: row ``t`` of the triangular matrix is ``1 / (t + 1)`` up to ``t``."""
    weights = x.new_ones(x.shape[-2], x.shape[-2]).tril()
    return weights / weights.sum(dim=1, keepdim=True) @ x


def average_by_softmax(x: Tensor, attn_scores: Tensor | None = None) -> Tensor:
    """``average_by_loop`` by the softmax of equal scores, with the future masked.

    Replace the zeros with ``attn_scores`` ``(T, T)`` that depend on the tokens, and this is causal attention.
    """
    if attn_scores is None:
        attn_scores = x.new_zeros(x.shape[-2], x.shape[-2])
    return torch.softmax(mask_future(attn_scores), dim=-1) @ x


def mask_future(attn_scores: Tensor) -> Tensor:
    """Set ``attn_scores`` ``(..., T, T)`` to minus infinity, whose exp is 0, wherever the key comes after the query.

    Raises ``ValueError`` unless there are as many keys as queries.
    """
    if attn_scores.ndim < 2 or attn_scores.shape[-1] != attn_scores.shape[-2]:
        raise ValueError(
            f"the attention scores of a text must have the shape (..., T, T), found {tuple(attn_scores.shape)}"
        )
    future = torch.ones_like(attn_scores, dtype=torch.bool).triu(diagonal=1)
    return attn_scores.masked_fill(future, -torch.inf)


# ---- Rung 5: self-attention without weights --------------------------------------------------------------------------

VECTOR_LENGTH = 2  # of the words of a trained model; with 1 their attention weights would be nearly even

# "Your journey starts with one step": three made-up numbers per word, few enough to follow by hand.
JOURNEY = {
    "Your": (0.43, 0.15, 0.89),
    "journey": (0.55, 0.87, 0.66),
    "starts": (0.57, 0.85, 0.64),
    "with": (0.22, 0.58, 0.33),
    "one": (0.77, 0.25, 0.10),
    "step": (0.05, 0.80, 0.55),
}


# "Hello shiny sun": a second example worked by hand, from notes on the same chapter.
SHINY = {"Hello": (0.34, 0.22, 0.54), "shiny": (0.53, 0.34, 0.98), "sun": (0.29, 0.54, 0.93)}


class Attention(NamedTuple):
    """All stages of attention: scores and weights ``(..., T, T)`` as [query][key], context vectors ``(..., T, C)``."""

    scores: Tensor
    weights: Tensor
    context: Tensor


def scores_by_loop(query: Tensor, key: Tensor) -> Tensor:
    """All attention scores ``(T, S)`` of ``query`` ``(T, C)`` and ``key`` ``(S, C)``, one dot product at a time."""
    attn_scores = query.new_empty(len(query), len(key))
    for i, one in enumerate(query):
        for j, other in enumerate(key):
            attn_scores[i, j] = torch.dot(one, other)
    return attn_scores


def sum_normalise(attn_scores: Tensor) -> Tensor:
    """Divide by the sum: the weights add up to 1, but are meaningful only if all scores are positive."""
    return attn_scores / attn_scores.sum(dim=-1, keepdim=True)


def naive_softmax(attn_scores: Tensor) -> Tensor:
    """``exp(s) / sum exp(s)``: positive for any score, but NaN above about 88, where exp overflows float32."""
    return attn_scores.exp() / attn_scores.exp().sum(dim=-1, keepdim=True)


def stable_softmax(attn_scores: Tensor) -> Tensor:
    """Softmax after subtracting the largest score: the common factor cancels, so the weights are the same.

    Works for scores of any size, as long as each row has a finite one (Raschka 2024, section 3.3).
    """
    return naive_softmax(attn_scores - attn_scores.amax(dim=-1, keepdim=True))


def attention_without_weights(x: Tensor) -> Attention:
    """Each token is query, key and value at once: tokens with similar vectors attend to each other most."""
    attn_scores = x @ x.mT
    attn_weights = stable_softmax(attn_scores)
    return Attention(attn_scores, attn_weights, attn_weights @ x)


def embed_word(loaded: LoadedModel, word: str) -> Tensor | None:
    """The mean token embedding ``(C,)`` of a word, scaled to ``VECTOR_LENGTH``, or None if the model cannot read it."""
    # Most BPE tokens of words begin with a space.
    texts = (f" {word}", word) if loaded.tokenizer.kind == "bpe" else (word,)
    for text in texts:
        try:
            ids = loaded.tokenizer.encode(text)
        except PromptError:
            continue
        mean = loaded.gpt.wte(torch.tensor(ids, device=loaded.device)).float().mean(dim=0).cpu()
        return VECTOR_LENGTH * mean / mean.norm().clamp(min=1e-9)
    return None


class TrainedWords(NamedTuple):
    """Words of a trained model: ``x`` ``(T, size)``, and the dot products ``(T, T)`` of their whole embeddings."""

    x: Tensor
    products: Tensor


@torch.no_grad()
def trained_words(loaded: LoadedModel, words: list[str], size: int = 3) -> TrainedWords | None:
    """``size`` numbers for each word that preserve the words' dot products as well as possible.

    The coordinates along the leading singular vectors are the best least-squares approximation of the trained
    embeddings' dot products (Eckart & Young 1936). None if the model cannot read one of the words.
    """
    embedded = [embed_word(loaded, word) for word in words]
    vectors = [vector for vector in embedded if vector is not None]
    if not vectors or len(vectors) < len(words):
        return None
    whole = torch.stack(vectors)
    u, s, _ = torch.linalg.svd(whole, full_matrices=False)
    coordinates = torch.zeros(len(words), size)
    n = min(size, len(s))
    coordinates[:, :n] = u[:, :n] * s[:n]
    # The sign of a direction is arbitrary: make the largest number along it positive.
    largest = coordinates.gather(0, coordinates.abs().argmax(dim=0, keepdim=True))
    return TrainedWords(coordinates * torch.where(largest < 0, -1.0, 1.0), whole @ whole.T)
