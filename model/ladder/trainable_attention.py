"""Rungs 6 to 8 of the ladder: trainable, then causal, then multi-head attention, up to the class that the GPT uses."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..attention import MultiHeadAttention
from .averages import Attention, mask_future, stable_softmax, sum_normalise

# ---- Rung 6: scaled dot-product attention with trainable weights -----------------------------------------------------


class SelfAttention(nn.Module):
    """softmax(query key^T / sqrt(head_dim)) value (Vaswani et al. 2017, equation 1).

    The classes below share this code, and differ in how they compute query, key and value (``project``) and the
    attention weights (``attention_weights``).
    """

    def __init__(self, d_in: int, head_dim: int) -> None:
        super().__init__()
        self.d_in = d_in
        self.scale = head_dim**-0.5

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value ``(..., T, head_dim)`` of ``x`` ``(..., T, d_in)``."""
        raise NotImplementedError

    def attention_weights(self, attn_scores: Tensor) -> Tensor:
        """The attention weights for unscaled scores ``(..., T, T)``."""
        return stable_softmax(attn_scores * self.scale)

    def attend(self, x: Tensor) -> Attention:
        """All stages for ``x`` ``(..., T, d_in)``; the scores are unscaled. Raises ``ValueError`` for a wrong shape."""
        if x.ndim < 2 or x.shape[-1] != self.d_in:
            raise ValueError(f"token vectors must be (..., T, {self.d_in}), found {tuple(x.shape)}")
        query, key, value = self.project(x)
        attn_scores = query @ key.mT
        attn_weights = self.attention_weights(attn_scores)
        return Attention(attn_scores, attn_weights, attn_weights @ value)

    def forward(self, x: Tensor) -> Tensor:
        """The context vectors, ``(..., T, d_in) -> (..., T, d_out)``."""
        return self.attend(x).context


class SelfAttentionV1(SelfAttention):
    """Query, key and value from three trainable matrices ``(d_in, d_out)``."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__(d_in, d_out)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


class SelfAttentionV2(SelfAttention):
    """``SelfAttentionV1`` with linear layers, which are initialised better and store matrices as ``(out, in)``."""

    def __init__(self, d_in: int, d_out: int, *, qkv_bias: bool = False) -> None:
        super().__init__(d_in, d_out)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.W_query(x), self.W_key(x), self.W_value(x)


def transfer_weights(source: SelfAttentionV2, target: SelfAttentionV1) -> None:
    """Copy the transposed matrices of ``source`` to ``target``, after which both return the same context vectors.

    Raises ``ValueError`` if the source has biases.
    """
    layers = {"W_query": source.W_query, "W_key": source.W_key, "W_value": source.W_value}
    if any(layer.bias is not None for layer in layers.values()):
        raise ValueError("SelfAttentionV1 has no biases: the source must have qkv_bias=False")
    target.load_state_dict({name: layer.weight.T for name, layer in layers.items()})


class ScoreSpread(NamedTuple):
    """The variance of attention scores, and the largest attention weight of a query, averaged over the queries."""

    variance: float
    largest_weight: float


def scale_demonstration(
    head_dim: int, n_tokens: int = 64, generator: torch.Generator | None = None
) -> tuple[ScoreSpread, ScoreSpread]:
    """The spread of the scores of random queries and keys, without and with the scale ``1 / sqrt(head_dim)``.

    The dot product of two vectors of ``head_dim`` independent standard normal numbers has variance ``head_dim``
    (Vaswani et al. 2017, section 3.2.1). With such a spread, softmax puts nearly all weight on one key and its
    gradient almost vanishes.
    """
    query = torch.randn(n_tokens, head_dim, generator=generator)
    key = torch.randn(n_tokens, head_dim, generator=generator)
    unscaled, scaled = (
        ScoreSpread(scores.var().item(), stable_softmax(scores).amax(dim=-1).mean().item())
        for scores in (query @ key.T, query @ key.T * head_dim**-0.5)
    )
    return unscaled, scaled


# ---- Rung 7: causal attention ----------------------------------------------------------------------------------------


def causal_by_renormalising(attn_scores: Tensor, scale: float = 1.0) -> Tensor:
    """Softmax over all keys, then set the future to 0 and divide each row by its sum.

    Including the future in the softmax only changes the divisor, which cancels, unless the future takes all the weight:
    if the weights of the past are too small for float32, the result is 0 / 0, which is NaN.
    """
    attn_weights = stable_softmax(attn_scores * scale).tril()
    return sum_normalise(attn_weights)


def causal_by_minus_infinity(attn_scores: Tensor, scale: float = 1.0) -> Tensor:
    """Mask the scores of the future, then softmax: the same weights with one normalisation, and never NaN."""
    return stable_softmax(mask_future(attn_scores * scale))


def drop_weights(attn_weights: Tensor, p: float, generator: torch.Generator | None = None) -> Tensor:
    """Set each weight to 0 with probability ``p`` and multiply the others by ``1 / (1 - p)``, which keeps the mean.

    Raises ``ValueError`` unless ``p`` is at least 0 and below 1.
    """
    check_dropout(p)
    kept = torch.rand(attn_weights.shape, generator=generator, device=attn_weights.device) >= p
    return attn_weights * kept / (1 - p)


def check_dropout(p: float) -> None:
    """Raise ``ValueError`` unless ``p`` is a probability below 1."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, found {p}")


class CausalAttention(SelfAttentionV2):
    """Each token attends to itself and the past, with dropout on the attention weights during training."""

    def __init__(self, d_in: int, d_out: int, *, dropout: float = 0.0, qkv_bias: bool = False) -> None:
        super().__init__(d_in, d_out, qkv_bias=qkv_bias)
        check_dropout(dropout)
        self.dropout = dropout

    def attention_weights(self, attn_scores: Tensor) -> Tensor:
        attn_weights = causal_by_minus_infinity(attn_scores, self.scale)
        return drop_weights(attn_weights, self.dropout) if self.training else attn_weights


# ---- Rung 8: many heads ----------------------------------------------------------------------------------------------


class StackedHeads(nn.Module):
    """``n_head`` causal heads, computed in turn and concatenated: ``(..., T, d_in) -> (..., T, n_head * head_dim)``.

    Raises ``ValueError`` if ``n_head`` is below 1.
    """

    def __init__(self, d_in: int, head_dim: int, n_head: int, *, dropout: float = 0.0, qkv_bias: bool = False) -> None:
        super().__init__()
        if n_head < 1:
            raise ValueError(f"n_head must be at least 1, found {n_head}")
        self.heads = nn.ModuleList(
            CausalAttention(d_in, head_dim, dropout=dropout, qkv_bias=qkv_bias) for _ in range(n_head)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], dim=-1)


class WeightSplits(CausalAttention):
    """All heads at once: wide projections that are split into heads, and an output projection that mixes them.

    Raises ``ValueError`` if ``d_out`` is not divisible by ``n_head``.
    """

    def __init__(self, d_in: int, d_out: int, n_head: int, *, dropout: float = 0.0, qkv_bias: bool = False) -> None:
        if n_head < 1 or d_out % n_head:
            raise ValueError(f"d_out must be divisible by n_head, found d_out={d_out}, n_head={n_head}")
        super().__init__(d_in, d_out, dropout=dropout, qkv_bias=qkv_bias)
        self.n_head = n_head
        self.scale = (d_out // n_head) ** -0.5  # a score now sums over head_dim products, not d_out
        self.out_proj = nn.Linear(d_out, d_out)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (split_heads(wide, self.n_head) for wide in super().project(x))
        return query, key, value

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(merge_heads(self.attend(x).context))


def split_heads(x: Tensor, n_head: int) -> Tensor:
    """``(..., T, C) -> (..., n_head, T, head_dim)``"""
    return x.unflatten(-1, (n_head, -1)).transpose(-3, -2)


def merge_heads(context: Tensor) -> Tensor:
    """``(..., n_head, T, head_dim) -> (..., T, C)``: concatenate the heads."""
    return context.transpose(-3, -2).flatten(-2)


def transfer_heads(source: StackedHeads, target: WeightSplits) -> None:
    """Stack the heads' matrices into the wider matrices of ``target``.

    Its context vectors, before the output projection, are then those of ``source``. Raises ``ValueError`` if the two
    differ in their number of heads, and ``RuntimeError`` if they differ in their sizes or biases.
    """
    if len(source.heads) != target.n_head:
        raise ValueError(f"the target has {target.n_head} heads, but the source has {len(source.heads)}")
    heads = [head.state_dict() for head in source.heads]
    wide = {name: torch.cat([head[name] for head in heads]) for name in heads[0]}
    target.load_state_dict(wide | {f"out_proj.{name}": p for name, p in target.out_proj.state_dict().items()})


def product_batched(a: Tensor, b: Tensor) -> Tensor:
    """``a b^T`` of all heads at once, for ``(B, n_head, T, head_dim)`` and ``(B, n_head, S, head_dim)``."""
    check_product(a, b)
    return a @ b.transpose(2, 3)


def product_head_by_head(a: Tensor, b: Tensor) -> Tensor:
    """``product_batched`` with one ordinary matrix product per text and head: ``(B, n_head, T, S)``."""
    check_product(a, b)
    B, n_head = a.shape[:2]
    return torch.stack([torch.stack([a[i, h] @ b[i, h].T for h in range(n_head)]) for i in range(B)])


def check_product(a: Tensor, b: Tensor) -> None:
    """Raise ``ValueError`` unless ``a`` and ``b`` are 4-D and differ at most in their number of tokens."""
    if a.ndim != 4 or b.ndim != 4 or a.shape[:2] != b.shape[:2] or a.shape[3] != b.shape[3]:
        expected = "(B, n_head, T, head_dim) and (B, n_head, S, head_dim)"
        raise ValueError(f"the shapes must be {expected}, found {tuple(a.shape)} and {tuple(b.shape)}")


# ---- Rung 10: the attention that the GPT uses ------------------------------------------------------------------------


def pack_weight_splits(splits: WeightSplits) -> MultiHeadAttention:
    """``splits`` as an instance of the class that the GPT uses, with the three projections stacked into one."""
    layers = (splits.W_query, splits.W_key, splits.W_value)
    has_bias = splits.W_query.bias is not None
    d_out = splits.W_query.out_features
    packed = MultiHeadAttention(splits.d_in, d_out, splits.n_head, qkv_bias=has_bias, dropout=splits.dropout)
    # (d_out, d_in) three times -> (3 * d_out, d_in)
    state = {"c_attn.weight": torch.cat([layer.weight for layer in layers])}
    if has_bias:
        state["c_attn.bias"] = torch.cat([layer.bias for layer in layers])
    state |= {f"c_proj.{name}": p for name, p in splits.out_proj.state_dict().items()}
    packed.load_state_dict(state)
    return packed.to(splits.W_query.weight).train(splits.training)
