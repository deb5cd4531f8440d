"""One query taken apart: what every head of a layer does with it, and how a vector becomes a part of a logit."""

from typing import NamedTuple

import torch
from torch import Tensor

from .text_pass import TextPass


class QueryAttention(NamedTuple):
    """The attention of one layer for the query at ``position``, over ``S = position + 1`` keys."""

    query: Tensor  # (n_head, head_dim)
    keys: Tensor  # (n_head, S, head_dim)
    values: Tensor  # (n_head, S, head_dim)
    weights: Tensor  # (n_head, S), each row adding up to 1
    mask: Tensor  # (n_head,), the factor of each head's context vector: 1 unless the text was read with a head mask
    projection: Tensor  # (n_head, head_dim, C): each head's rows of the output projection

    @property
    def outputs(self) -> Tensor:
        """What each head adds to the residual stream, ``(n_head, C)``."""
        context = (self.weights[:, None] @ self.values)[:, 0] * self.mask[:, None]
        return (context[:, None] @ self.projection)[:, 0]

    def terms(self, head: int) -> Tensor:
        """What each key adds to the residual stream through one head, ``(S, C)``: weight * value @ W_O."""
        weighted = (self.weights[head] * self.mask[head])[:, None] * self.values[head]
        return weighted @ self.projection[head]


def attention_at(text: TextPass, layer: int, position: int) -> QueryAttention:
    """The attention of ``layer`` for the query at ``position``, with the model's own weights and functions."""
    block = text.block(layer)
    attn = block.attn
    qkv = attn.c_attn(block.ln_1(text.stream[layer][0, : position + 1]))  # (S, 3 * C)
    query, key, value = qkv.view(position + 1, 3, attn.n_head, attn.head_dim).permute(1, 2, 0, 3)
    attn_weights = attn.attention_weights(query[None, :, -1:], key[None])[0, :, 0]
    projection = attn.c_proj.weight.t().reshape(attn.n_head, attn.head_dim, -1)
    return QueryAttention(query[:, -1], key, value, attn_weights, mask_of(text, layer), projection)


def mask_of(text: TextPass, layer: int) -> Tensor:
    """The factor of each head's context vectors in a layer, ``(n_head,)``."""
    return torch.ones(text.config.n_head, device=text.device) if text.head_mask is None else text.head_mask[layer]


class LogitReading(NamedTuple):
    """How the residual stream at one position becomes one logit: ``x @ direction + constant``.

    The final layer norm subtracts the mean of ``x`` and divides by its standard deviation. With the standard deviation
    at this position this is linear, so every vector that was added to ``x`` has its own part in the logit (Elhage et
    al. 2021, "direct path").
    """

    direction: Tensor  # (C,)
    constant: float  # what the bias of the final layer norm adds


def read_logit(text: TextPass, position: int, token: int, against: int | None = None) -> LogitReading:
    """How the logit of ``token``, as the one after ``position``, is read from the residual stream after all layers.

    With another token ``against`` it is the difference of the two logits.
    """
    head, norm = text.gpt.lm_head.weight, text.gpt.ln_f
    row = head[token] if against is None else head[token] - head[against]
    gained = norm.weight * row
    scale = (text.stream[-1][0, position].var(correction=0) + norm.eps).rsqrt()
    # Centring the direction instead of every vector gives the same products.
    return LogitReading((gained - gained.mean()) * scale, float(norm.bias @ row))


def logits_at(text: TextPass, position: int) -> Tensor:
    """The model's own logits of the token after ``position``, ``(vocab_size,)``."""
    return text.logits(text.stream[-1][0, position])
