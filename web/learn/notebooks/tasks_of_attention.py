"""The tasks of rungs 4 to 8: functions whose docstrings are the tasks, and whose bodies are the solutions.

``check_NAME`` checks the function ``NAME``.
"""

import math

import torch
from torch import Tensor

from model.ladder.averages import attention_without_weights, average_by_loop, average_by_matrix, mask_future
from model.ladder.terms import causal_stages, seeded
from model.ladder.trainable_attention import SelfAttentionV1, WeightSplits, merge_heads, split_heads

from .cells import near

# ---- 4. The average of the past --------------------------------------------------------------------------------------


def running_mean(x: Tensor) -> Tensor:
    """Average each row of ``x`` with all rows before it, without a loop. ``torch.cumsum`` adds up from the first."""
    return x.cumsum(dim=0) / torch.arange(1, len(x) + 1)[:, None]


def check_running_mean(x: Tensor) -> None:
    assert near(running_mean(x), average_by_loop(x)), "Row t has added up t + 1 rows."


def averaging_matrix(n: int) -> Tensor:
    """Make the ``n`` × ``n`` matrix whose product with ``x`` gives these averages."""
    triangle = torch.ones(n, n).tril()
    return triangle / triangle.sum(dim=1, keepdim=True)


def check_averaging_matrix(x: Tensor) -> None:
    matrix = averaging_matrix(len(x))
    assert matrix is not None and near(matrix @ x, average_by_loop(x)), "Row t has t + 1 equal shares, then zeros."


def weights_from_scores(scores: Tensor) -> Tensor:
    """Turn scores ``(T, T)`` into weights: the future gets minus infinity, then each row its softmax."""
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1)


def check_weights_from_scores() -> None:
    assert near(weights_from_scores(torch.zeros(4, 4)), average_by_matrix(torch.eye(4))), "Equal scores: equal shares."
    scores = torch.arange(9.0).view(3, 3)
    assert near(weights_from_scores(scores), torch.softmax(mask_future(scores), dim=-1))


# ---- 5. Self-attention without weights -------------------------------------------------------------------------------


def dot_products(x: Tensor) -> Tensor:
    """Compute all attention scores: the dot product of each row of ``x`` with each row, as one product."""
    return x @ x.T


def check_dot_products(x: Tensor) -> None:
    found = dot_products(x)
    assert near(found, attention_without_weights(x).scores), "There is a score for each pair of words."


def my_softmax(row: Tensor) -> Tensor:
    """Compute the softmax of a row of scores with ``exp`` and a sum. It has to survive a score of 1,000."""
    exponentials = (row - row.max()).exp()
    return exponentials / exponentials.sum()


def check_my_softmax() -> None:
    row = torch.tensor([1.0, 2.0, -1.0])
    assert near(my_softmax(row), row.softmax(dim=0)), "Divide each exponential by the sum of all."
    assert near(my_softmax(row + 1000), row.softmax(dim=0)), "Subtract the largest score first: it cancels out."


def context_of_last(x: Tensor) -> Tensor:
    """Compute the context vector of the last word: its scores, their softmax, and the average with these weights."""
    return (x @ x[-1]).softmax(dim=0) @ x


def check_context_of_last(x: Tensor) -> None:
    assert near(context_of_last(x), attention_without_weights(x).context[-1]), "Its query is the last row of x."


# ---- 6. Trainable weights --------------------------------------------------------------------------------------------


def one_head(x: Tensor, W_query: Tensor, W_key: Tensor, W_value: Tensor) -> Tensor:
    """Compute the context vectors of a head from its three matrices: with the scores divided by √head_dim."""
    query, key, value = x @ W_query, x @ W_key, x @ W_value
    weights = (query @ key.T / math.sqrt(key.shape[1])).softmax(dim=-1)
    return weights @ value


def check_one_head(x: Tensor) -> None:
    head = seeded(123, lambda: SelfAttentionV1(3, 2))
    found = one_head(x, head.W_query, head.W_key, head.W_value)
    assert near(found, head(x)), "Project, compare, divide by the root of 2, softmax, average the values."


def score_of(one: Tensor, other: Tensor, W_query: Tensor, W_key: Tensor) -> Tensor:
    """Compute the score of one word's query with another word's key, before it is divided."""
    return (one @ W_query) @ (other @ W_key)


def check_score_of(x: Tensor, W_query: Tensor, W_key: Tensor) -> None:
    scores = (x @ W_query) @ (x @ W_key).T
    assert near(score_of(x[0], x[-1], W_query, W_key), scores[0, -1]), "The first row is the query, the last the key."
    assert near(score_of(x[-1], x[0], W_query, W_key), scores[-1, 0]), "Looking back is not the same as being seen."


def factor_for(head_dim: int) -> float:
    """By what must the scores of random queries and keys of ``head_dim`` numbers be multiplied, so that they spread
    by about 1? Each number has a spread of 1.
    """
    return 1 / math.sqrt(head_dim)


def check_factor_for() -> None:
    for head_dim in (4, 64, 1024):
        generator = torch.Generator().manual_seed(1)
        query, key = torch.randn(2, 4000, head_dim, generator=generator)
        spread = (query * key).sum(dim=1).std()
        factor = factor_for(head_dim)
        assert factor is not None and abs(float(spread * factor) - 1) < 0.1, f"{head_dim}: they spread by {spread:.1f}."


# ---- 7. Causal masking -----------------------------------------------------------------------------------------------


def may_look(n: int) -> Tensor:
    """Make the mask of ``n`` words: True where the word of the row may look at the word of the column."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def check_may_look() -> None:
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    found = may_look(3)
    assert found is not None and found.bool().tolist() == expected, "Each word sees itself and what comes before."


def cut_and_renormalise(weights: Tensor) -> Tensor:
    """Hide the future after the softmax: set its weights to 0, and divide each row by the sum of what is left."""
    cut = weights.tril()
    return cut / cut.sum(dim=-1, keepdim=True)


def check_cut_and_renormalise() -> None:
    scores = torch.tensor([[1.0, 5.0, 2.0], [0.0, 1.0, 3.0], [2.0, 0.0, 1.0]])
    stages = causal_stages(scores, 1.0)
    assert near(cut_and_renormalise(stages.all_weights), stages.weights), "Minus infinity gives the same weights."


def dropped(weights: Tensor, is_kept: Tensor, p: float) -> Tensor:
    """Apply dropout: weights that are not kept become 0, and the rest is enlarged so that the mean stays the same.
    Each weight was dropped with the probability ``p``.
    """
    return weights * is_kept / (1 - p)


def check_dropped() -> None:
    weights, is_kept = torch.tensor([0.2, 0.3, 0.5]), torch.tensor([True, False, True])
    assert near(dropped(weights, is_kept, 0.5), torch.tensor([0.4, 0.0, 1.0])), "A half is kept, so it counts twice."
    assert near(dropped(weights, is_kept, 0.2), torch.tensor([0.25, 0.0, 0.625])), "0.8 are kept: divide by 0.8."


# ---- 8. Many heads ---------------------------------------------------------------------------------------------------


def into_heads(x: Tensor, n_head: int) -> Tensor:
    """Give each head its share of the numbers: from ``(T, C)`` to ``(n_head, T, C / n_head)``."""
    return x.view(len(x), n_head, -1).transpose(0, 1)


def check_into_heads() -> None:
    x = torch.arange(24.0).view(3, 8)
    assert near(into_heads(x, 2), split_heads(x, 2)), "The first head has the first four numbers of each row."
    assert near(into_heads(x, 4), split_heads(x, 4))


def side_by_side(context: Tensor) -> Tensor:
    """Put the heads side by side again: from ``(n_head, T, head_dim)`` to ``(T, n_head * head_dim)``. After a
    transpose, ``view`` needs ``.contiguous()``: the numbers stand in another order in memory.
    """
    return context.transpose(0, 1).contiguous().view(context.shape[1], -1)


def check_side_by_side() -> None:
    x = torch.arange(24.0).view(3, 8)
    assert near(side_by_side(split_heads(x, 4)), x), "Splitting and joining gives the same x."
    assert near(side_by_side(split_heads(x, 2)), merge_heads(split_heads(x, 2)))


def n_attention_weights(d_in: int, d_out: int) -> int:
    """Count the weights of a layer's heads together: three projections without biases from ``d_in`` to ``d_out``, and
    the output projection from ``d_out`` to ``d_out`` with its biases. How many heads share them makes no difference.
    """
    return 3 * d_in * d_out + d_out * d_out + d_out


def check_n_attention_weights() -> None:
    for d_in, d_out, n_head in [(3, 4, 2), (3, 4, 4), (8, 8, 1)]:
        n = sum(weights.numel() for weights in WeightSplits(d_in, d_out, n_head).parameters())
        assert n_attention_weights(d_in, d_out) == n, f"From {d_in} to {d_out} there are {n}."
