"""What names a head; the vectors and matrices of heads, and products of heads that share keys and values."""

from typing import NamedTuple

from torch import Tensor

Head = tuple[int, int]  # layer and head


class QueriesKeysValues(NamedTuple):
    """The projections of every head: queries ``(B, n_head, T, head_dim)``, keys and values ``(B, n_kv_head, ...)``."""

    query: Tensor
    key: Tensor
    value: Tensor


class HeadMatrices(NamedTuple):
    """Each head's matrices, for vectors written as rows: the queries of a head are ``x @ W_Q + b_Q``.

    Queries and keys are then normalised and rotated, if the model does so. A head with the context vectors ``z`` adds
    ``z @ W_O`` to the output; ``b_O`` is shared by all heads. Heads of one group have equal keys and values. A bias
    that the model lacks is zero.
    """

    W_Q: Tensor  # (n_head, d_in, head_dim)
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor  # (n_head, head_dim, d_out)
    b_Q: Tensor  # (n_head, head_dim)
    b_K: Tensor
    b_V: Tensor
    b_O: Tensor  # (d_out,)


def product_by_group(left: Tensor, right: Tensor) -> Tensor:
    """``(B, n_head, T, n) @ (B, n_kv_head, n, m) -> (B, n_head, T, m)``: a group of heads shares one matrix."""
    group = left.shape[1] // right.shape[1]
    if group == 1:
        return left @ right
    rows = left.unflatten(1, (-1, group)).flatten(2, 3) @ right  # the heads of a group are rows of one product
    return rows.unflatten(2, (group, -1)).flatten(1, 2)
