"""Multi-head causal self-attention, as the GPT runs it."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .cache import Cache, attention_dtype


class QueriesKeysValues(NamedTuple):
    """The projections of every head, ``(B, n_head, T, head_dim)`` each."""

    query: Tensor
    key: Tensor
    value: Tensor


class HeadMatrices(NamedTuple):
    """Each head's matrices, for vectors written as rows: the queries of a head are ``x @ W_Q + b_Q``.

    A head with the context vectors ``z`` adds ``z @ W_O`` to the output; ``b_O`` is shared by all heads. A bias that
    the model lacks is zero.
    """

    W_Q: Tensor  # (n_head, d_in, head_dim)
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor  # (n_head, head_dim, d_out)
    b_Q: Tensor  # (n_head, head_dim)
    b_K: Tensor
    b_V: Tensor
    b_O: Tensor  # (d_out,)


class MultiHeadAttention(nn.Module):
    """Causal scaled dot-product attention with ``n_head`` heads (Vaswani et al. 2017, section 3.2).

    A single projection computes queries, keys and values, ``(B, T, d_in) -> (B, T, 3 * d_out)``, which are split into
    heads of ``head_dim = d_out / n_head``. The attention scores are multiplied by ``scale``, ``1 / sqrt(head_dim)`` by
    default. During training each attention weight is dropped with probability ``dropout``. Raises ``ValueError`` if
    ``d_out`` is not divisible by ``n_head``.

    There are two ways to compute the context vectors. The fused one (``scaled_dot_product_attention``) never
    materialises the attention weights. The explicit one does, and is used only when the weights are requested or
    subject to dropout.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        n_head: int,
        *,
        qkv_bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
    ) -> None:
        super().__init__()
        if d_out % n_head:
            raise ValueError(f"d_out must be divisible by n_head, found d_out={d_out}, n_head={n_head}")
        self.n_head = n_head
        self.head_dim = d_out // n_head
        self.scale = self.head_dim**-0.5 if scale is None else scale
        self.dropout = dropout
        self.c_attn = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.c_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Map ``x`` ``(B, T, d_in)`` to ``(B, T, d_out)``: the :meth:`output` of the :meth:`context` vectors.

        Takes the keyword arguments of :meth:`attend`, and also returns the attention weights if requested.
        """
        context, attn_weights = self.context(x, **options)
        return self.output(context.to(x.dtype)), attn_weights

    def context(self, x: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Project ``x`` ``(B, T, d_in)`` and :meth:`attend`."""
        return self.attend(self.c_attn(x), **options)

    def output(self, context: Tensor) -> Tensor:
        """Concatenate and project context vectors: ``(..., n_head, head_dim)`` to ``(..., d_out)``."""
        return self.c_proj(context.flatten(-2))

    def attend(
        self,
        qkv: Tensor,
        *,
        cache: Cache | None = None,
        layer: int = 0,
        head_mask: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Turn concatenated queries, keys and values ``(B, T, 3 * d_out)`` into context vectors.

        With a ``cache``, the ``T`` tokens come after those already cached for ``layer`` and attend to them as well:
        ``S`` keys in total, otherwise ``S = T``. ``head_mask`` ``(n_head,)`` or ``(B, n_head)`` scales each head's
        context vectors: 1 keeps the head, 0 removes it. Returns the context vectors ``(B, T, n_head, head_dim)``, and
        the attention weights ``(B, n_head, T, S)`` if ``need_weights`` is set, otherwise None.
        """
        query, key, value = self.split(qkv)
        mask = None
        if cache is not None:
            key, value = cache.write(layer, key, value)
            mask = cache.mask

        attn_weights = None
        if need_weights or (self.training and self.dropout):
            attn_weights = self.attention_weights(query, key, mask)
            context = F.dropout(attn_weights, self.dropout, self.training) @ value
        else:
            context = self.fused(query, key, value, mask)
        if head_mask is not None:
            context = context * head_mask.to(context.dtype).reshape(-1, self.n_head, 1, 1)
        return context.transpose(1, 2), attn_weights if need_weights else None

    def split(self, qkv: Tensor) -> QueriesKeysValues:
        """Split the projection into queries, keys and values by head, in the precision of attention."""
        if not self.training:
            qkv = qkv.to(attention_dtype(qkv))
        # (B, T, 3 * n_head * head_dim) -> three of (B, n_head, T, head_dim)
        return QueriesKeysValues(*qkv.view(*qkv.shape[:2], 3, -1, self.head_dim).permute(2, 0, 3, 1, 4))

    def attention_weights(self, query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
        """softmax(query key^T * scale + causal mask), ``(B, n_head, T, S)``: each row sums to 1.

        A ``mask`` (bool, true where a query may look) replaces the causal one.
        """
        T, S = query.shape[2], key.shape[2]
        attn_scores = (query * self.scale) @ key.transpose(2, 3)  # cheaper than scaling the (larger) product
        if mask is None and T > 1:  # a single new token may look at every key
            mask = causal_mask(T, S, query.device)
        if mask is not None:
            attn_scores.masked_fill_(~mask, -torch.inf)
        return torch.softmax(attn_scores, dim=-1)

    def fused(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """The context vectors ``(B, n_head, T, head_dim)``, computed without materialising the attention weights."""
        T, S = query.shape[2], key.shape[2]
        if mask is None and 1 < T < S:
            mask = causal_mask(T, S, query.device)
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=T > 1 and mask is None, scale=self.scale
        )

    # The forward pass does not use the methods below: they are for code that inspects the model.

    def queries_keys_values(self, x: Tensor, start: int = 0, head: int | None = None) -> QueriesKeysValues:
        """Queries, keys and values of the input ``x`` ``(B, T, d_in)``; for a single ``head``, ``n_head`` is 1.

        ``start`` is the position of the first token.
        """
        del start  # ``x`` already contains the position
        if head is None:
            return self.split(self.c_attn(x))
        of = self.matrices()
        parts = (of.W_Q, of.b_Q), (of.W_K, of.b_K), (of.W_V, of.b_V)
        return QueriesKeysValues(*((x @ W[head] + b[head])[:, None] for W, b in parts))

    def matrices(self) -> HeadMatrices:
        """The matrices of each head, as views of the weights."""
        weight, bias = self.c_attn.weight, self.c_attn.bias
        bias = weight.new_zeros(len(weight)) if bias is None else bias
        W_O = self.c_proj.weight.unflatten(1, (self.n_head, self.head_dim)).permute(1, 2, 0)
        W_Q, W_K, W_V = weight.unflatten(0, (3, self.n_head, self.head_dim)).mT
        b_Q, b_K, b_V = bias.view(3, self.n_head, self.head_dim)
        return HeadMatrices(W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, self.c_proj.bias)


def causal_mask(n_query: int, n_key: int, device: torch.device) -> Tensor:
    """Which keys each query may look at, ``(n_query, n_key)`` bool: the last query sees all, each earlier one fewer."""
    return torch.ones(n_query, n_key, dtype=torch.bool, device=device).tril(n_key - n_query)
