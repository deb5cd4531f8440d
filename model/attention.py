"""Multi-head causal self-attention, as the GPT runs it."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .modules.cache import Cache, attention_dtype
from .modules.head_tensors import HeadMatrices, QueriesKeysValues, for_each_head, head_matrices, product_by_group
from .modules.hooks import NO_HOOKS, Hooks
from .modules.mask import causal_mask
from .modules.norm import HeadNorm
from .modules.rotary import Rotary


class MultiHeadAttention(nn.Module):
    """Causal scaled dot-product attention with ``n_head`` heads (Vaswani et al. 2017, section 3.2).

    A single projection computes queries, keys and values, which are split into heads of ``head_dim`` numbers, by
    default ``d_out / n_head``. If ``n_kv_head`` is smaller than ``n_head``, each key and value head serves a group of
    query heads (Ainslie et al. 2023). ``qk_norm`` normalises queries and keys; ``rotary`` rotates them.
    The attention scores are multiplied by ``scale``, ``1 / sqrt(head_dim)`` by default. With a ``window``, a query
    sees only itself and the ``window - 1`` tokens before it. During training each attention weight is dropped with
    probability ``dropout``. Raises ``ValueError`` if ``d_out`` or ``n_kv_head`` does not fit ``n_head``.

    There are two ways to compute the context vectors. The fused one (``scaled_dot_product_attention``) never
    materialises the attention weights; the explicit one does, and runs only when they are requested or dropped.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        n_head: int,
        *,
        n_kv_head: int | None = None,
        head_dim: int | None = None,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        qk_norm: tuple[HeadNorm, HeadNorm] | None = None,
        rotary: Rotary | None = None,
        dropout: float = 0.0,
        scale: float | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__()
        if head_dim is None and d_out % n_head:
            raise ValueError(f"d_out must be divisible by n_head, found d_out={d_out}, n_head={n_head}")
        self.n_head, self.n_kv_head = n_head, n_head if n_kv_head is None else n_kv_head
        if n_head % self.n_kv_head:
            raise ValueError(f"n_head must be divisible by n_kv_head, found {n_head=}, n_kv_head={n_kv_head}")
        self.head_dim = d_out // n_head if head_dim is None else head_dim
        self.scale = self.head_dim**-0.5 if scale is None else scale
        self.dropout, self.rotary, self.window = dropout, rotary, window
        self.c_attn = nn.Linear(d_in, (n_head + 2 * self.n_kv_head) * self.head_dim, bias=qkv_bias)
        norms: tuple[HeadNorm | None, HeadNorm | None] = qk_norm or (None, None)
        self.q_norm, self.k_norm = norms
        self.c_proj = nn.Linear(n_head * self.head_dim, d_out, bias=proj_bias)

    def forward(self, x: Tensor, *, hooks: Hooks = NO_HOOKS, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Map ``x`` ``(B, T, d_in)`` to ``(B, T, d_out)``: the ``output`` of the ``context`` vectors.

        Takes the keyword arguments of ``attend``, and also returns the attention weights if requested.
        """
        context, attn_weights = self.context(x, hooks=hooks, **options)
        return self.output(context.to(x.dtype), hooks), attn_weights

    def context(self, x: Tensor, **options: Any) -> tuple[Tensor, Tensor | None]:
        """Project ``x`` ``(B, T, d_in)`` and ``attend``."""
        return self.attend(self.c_attn(x), **options)

    def output(self, context: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """Concatenate and project context vectors: ``(..., n_head, head_dim)`` to ``(..., d_out)``."""
        context = hooks.at("hook_z", context)
        if not hooks.have("hook_result"):
            return self.c_proj(context.flatten(-2))
        of = self.matrices()
        return hooks.at("hook_result", torch.einsum("...hd,hdc->...hc", context, of.W_O)).sum(-2) + of.b_O

    def attend(
        self,
        qkv: Tensor,
        *,
        cache: Cache | None = None,
        layer: int = 0,
        head_mask: Tensor | None = None,
        need_weights: bool = False,
        hooks: Hooks = NO_HOOKS,
    ) -> tuple[Tensor, Tensor | None]:
        """Turn concatenated queries, keys and values, ``c_attn``'s output ``(B, T, ...)``, into context vectors.

        With a ``cache``, the ``T`` tokens come after those already cached for ``layer`` and attend to them as well:
        ``S`` keys in total, otherwise ``S = T``. ``head_mask`` ``(n_head,)`` or ``(B, n_head)`` scales each head's
        context vectors: 1 keeps the head, 0 removes it. Returns the context vectors ``(B, T, n_head, head_dim)``, and
        the attention weights ``(B, n_head, T, S)`` if ``need_weights`` is set, otherwise None.
        """
        query, key, value = self.split(qkv, 0 if cache is None else cache.start, hooks)
        mask = attn_weights = None
        if cache is not None:
            key, value = cache.write(layer, key, value)
            mask = cache.mask(self.window)

        if need_weights or (self.training and self.dropout) or hooks.have("hook_attn_scores", "hook_pattern"):
            attn_weights = self.attention_weights(query, key, mask, hooks)
            context = product_by_group(F.dropout(attn_weights, self.dropout, self.training), value)
        else:
            context = self.fused(query, key, value, mask)
        if head_mask is not None:
            context = context * head_mask.to(context.dtype).reshape(-1, self.n_head, 1, 1)
        return context.transpose(1, 2), attn_weights if need_weights else None

    def by_heads(self, qkv: Tensor) -> QueriesKeysValues:
        """Split the projection into queries, keys and values by head, in the precision of attention."""
        if not self.training:
            qkv = qkv.to(attention_dtype(qkv))
        # (B, T, (n_head + 2 * n_kv_head) * head_dim) -> (B, n_head + 2 * n_kv_head, T, head_dim)
        heads = qkv.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        return QueriesKeysValues(*heads.split([self.n_head, self.n_kv_head, self.n_kv_head], dim=1))

    def split(self, qkv: Tensor, start: int | Tensor = 0, hooks: Hooks = NO_HOOKS) -> QueriesKeysValues:
        """The same with queries and keys as ``stages`` leaves them."""
        query, key, value = hooks.of_heads(("hook_q", "hook_k", "hook_v"), self.by_heads(qkv))
        query, key = self.stages(query, key, start)["rotated"]
        if self.rotary is not None:
            query, key = hooks.of_heads(("hook_rot_q", "hook_rot_k"), (query, key))
        return QueriesKeysValues(query, key, value)

    def stages(self, query: Tensor, key: Tensor, start: int | Tensor = 0) -> dict[str, tuple[Tensor, Tensor]]:
        """Queries and keys ``(B, heads, T, head_dim)`` as projected and on the way to the scores, changed or not.

        ``start`` is the position of the first token, the same for all texts or one for each, ``(B,)``.
        """
        stages = {"projected": (query, key)}
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        stages["normalised"] = query, key
        if self.rotary is not None:
            positions = slice(start, start + query.shape[2]) if isinstance(start, int) else start
            query, key = self.rotary.rotate(query, positions), self.rotary.rotate(key, positions)
        return stages | {"rotated": (query, key)}

    def attention_weights(
        self, query: Tensor, key: Tensor, mask: Tensor | None = None, hooks: Hooks = NO_HOOKS
    ) -> Tensor:
        """softmax of the ``attention_scores``, ``(B, n_head, T, S)``: each row sums to 1."""
        attn_scores = hooks.at("hook_attn_scores", self.attention_scores(query, key, mask))
        return hooks.at("hook_pattern", torch.softmax(attn_scores, dim=-1))

    def attention_scores(self, query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
        """query key^T * scale ``(B, n_head, T, S)``; the lowest number where ``mask``, or the causal one, is false."""
        T, S = query.shape[2], key.shape[2]
        attn_scores = product_by_group(query * self.scale, key.mT)  # cheaper than scaling the (larger) product
        mask = causal_mask(T, S, query.device, self.window) if mask is None else mask
        return attn_scores if mask is None else attn_scores.masked_fill_(~mask, torch.finfo(attn_scores.dtype).min)

    def fused(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        """The context vectors ``(B, n_head, T, head_dim)``, computed without materialising the attention weights."""
        T, S = query.shape[2], key.shape[2]
        is_causal, is_grouped = mask is None and T == S <= (self.window or S), key.shape[1] < query.shape[1]
        mask = causal_mask(T, S, query.device, self.window) if mask is None and not is_causal else mask
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, scale=self.scale, enable_gqa=is_grouped
        )

    # The forward pass does not use the methods below: they are for code that inspects the model.

    def queries_keys_values(self, x: Tensor, start: int = 0, head: int | None = None) -> QueriesKeysValues:
        """Queries, keys and values of the input ``x`` ``(B, T, d_in)``, as the scores are computed from them.

        All are ``(B, n_head, T, head_dim)``: heads of one group have equal keys and values. For a single ``head``,
        ``n_head`` is 1. ``start`` is the position of the first token.
        """
        if head is None:
            query, key, value = self.split(self.c_attn(x), start)
            return QueriesKeysValues(query, *(for_each_head(x, self.n_head, dim=1) for x in (key, value)))
        if self.q_norm and self.q_norm.n_joint > 1:  # one head's queries depend on those of all
            return QueriesKeysValues(*(each[:, head, None] for each in self.queries_keys_values(x, start)))
        query, key, value = self.projected(x, head)
        return QueriesKeysValues(*self.stages(query, key, start)["rotated"], value)

    def stages_of(self, x: Tensor, head: int) -> dict[str, tuple[Tensor, Tensor]]:
        """The ``stages`` of one head for ``x`` ``(B, T, d_in)``: its queries and keys ``(B, T, head_dim)``."""
        query, key, _ = self.by_heads(self.c_attn(x))
        at, of_key = head, head * self.n_kv_head // self.n_head
        return {name: (q[:, at], k[:, of_key]) for name, (q, k) in self.stages(query, key).items()}

    def projected(self, x: Tensor, head: int) -> QueriesKeysValues:
        """One head's queries, keys and values of ``x``, ``(B, 1, T, head_dim)``, not normalised and not rotated."""
        of = self.matrices()
        parts = (of.W_Q, of.b_Q), (of.W_K, of.b_K), (of.W_V, of.b_V)
        return QueriesKeysValues(*((x @ W[head] + b[head])[:, None] for W, b in parts))

    def matrices(self, distance: int = 0) -> HeadMatrices:
        """The matrices of each head, as views of the weights where every head has keys and values of its own.

        With rotary positions, ``W_Q`` is turned to a query that is ``distance`` positions after its key.
        """
        of = head_matrices(self.c_attn, self.c_proj, self.n_head, self.n_kv_head)
        if not distance or self.rotary is None:
            return of
        return of._replace(W_Q=self.rotary.rotate(of.W_Q, distance), b_Q=self.rotary.rotate(of.b_Q, distance))
