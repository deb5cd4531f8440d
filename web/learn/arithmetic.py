"""The terms of dot products and softmaxes as JSON, for the arithmetic behind each number."""

from torch import Tensor

from model.ladder.terms import dot_product_terms, softmax_terms


def dot_terms(a: Tensor, b: Tensor) -> dict[str, object]:
    """The terms of ``a b^T``, for each cell ``[row of a][row of b]``."""
    return {"left": a.tolist(), "right": b.tolist(), "products": dot_product_terms(a, b).tolist()}


def softmax(attn_scores: Tensor) -> dict[str, object]:
    """The terms of a softmax. Minus infinity is sent as null."""
    largest, exponentials, sums = softmax_terms(attn_scores)
    return {
        "scores": attn_scores.tolist(),
        "largest": largest.tolist(),
        "exponentials": exponentials.tolist(),
        "sums": sums.tolist(),
    }
