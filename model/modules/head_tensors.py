"""What names a head; the vectors and matrices of heads, and products of heads that share keys and values."""

from typing import NamedTuple

from torch import Tensor, nn

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


def head_matrices(c_attn: nn.Linear, c_proj: nn.Linear, n_head: int, n_kv_head: int) -> HeadMatrices:
    """The matrices of each head in those of a layer, as views where every head has keys and values of its own."""
    weight, sizes = c_attn.weight, [n_head, n_kv_head, n_kv_head]
    bias = weight.new_zeros(len(weight)) if c_attn.bias is None else c_attn.bias
    parts = weight.unflatten(0, (sum(sizes), -1)).split(sizes), bias.unflatten(0, (sum(sizes), -1)).split(sizes)
    (W_Q, W_K, W_V), (b_Q, b_K, b_V) = ([for_each_head(x, n_head, dim=0) for x in part] for part in parts)
    W_O = c_proj.weight.unflatten(1, (n_head, -1)).permute(1, 2, 0)
    b_O = W_O.new_zeros(W_O.shape[-1]) if c_proj.bias is None else c_proj.bias
    return HeadMatrices(W_Q.mT, W_K.mT, W_V.mT, W_O, b_Q, b_K, b_V, b_O)


def for_each_head(heads: Tensor, n_head: int, dim: int) -> Tensor:
    """``n_kv_head`` or ``n_head`` heads along ``dim``, repeated so that there is one for each query head."""
    group = n_head // heads.shape[dim]
    return heads if group == 1 else heads.repeat_interleave(group, dim)


def product_by_group(left: Tensor, right: Tensor) -> Tensor:
    """``(B, n_head, T, n) @ (B, n_kv_head, n, m) -> (B, n_head, T, m)``: a group of heads shares one matrix."""
    group = left.shape[1] // right.shape[1]
    if group == 1:
        return left @ right
    rows = left.unflatten(1, (-1, group)).flatten(2, 3) @ right  # the heads of a group are rows of one product
    return rows.unflatten(2, (group, -1)).flatten(1, 2)
