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
    W_O: Tensor  # (n_head, head_dim, C): each head's rows of the output projection

    @property
    def context(self) -> Tensor:
        """The context vectors, ``(n_head, head_dim)``."""
        return (self.weights[:, None] @ self.values)[:, 0] * self.mask[:, None]

    @property
    def outputs(self) -> Tensor:
        """What each head adds to the residual stream, ``(n_head, C)``."""
        return (self.context[:, None] @ self.W_O)[:, 0]

    def terms(self, head: int) -> Tensor:
        """What each key adds to the residual stream through one head, ``(S, C)``: weight * value @ W_O."""
        weighted = (self.weights[head] * self.mask[head])[:, None] * self.values[head]
        return weighted @ self.W_O[head]


def attention_at(text: TextPass, layer: int, position: int) -> QueryAttention:
    """The attention of ``layer`` for the query at ``position``, with the model's own weights and functions."""
    block = text.block(layer)
    seen = block.attention_input(text.stream[layer][:, : position + 1])  # (1, S, C)
    query, key, value = block.attn.queries_keys_values(seen)
    attn_weights = block.attn.attention_weights(query[:, :, -1:], key)[0, :, 0]
    W_O = block.attn.matrices().W_O
    return QueryAttention(query[0, :, -1], key[0], value[0], attn_weights, mask_of(text, layer), W_O)


def mask_of(text: TextPass, layer: int) -> Tensor:
    """The factor of each head's context vectors in a layer, ``(n_head,)``."""
    return torch.ones(text.config.n_head, device=text.device) if text.head_mask is None else text.head_mask[layer]


def read_logit(text: TextPass, position: int, token: int, against: int | None = None) -> tuple[Tensor, float]:
    """The direction ``(C,)`` and the constant that make the logit of ``token``, as the one after ``position``.

    They are those of :meth:`GPT.logit_direction`. With another token ``against`` they make the difference of the two.
    """
    head = text.gpt.lm_head.weight
    row = head[token] if against is None else head[token] - head[against]
    return text.gpt.logit_direction(row, text.stream[-1][0, position])


def logits_at(text: TextPass, position: int) -> Tensor:
    """The model's own logits of the token after ``position``, ``(vocab_size,)``."""
    return text.logits(text.stream[-1][0, position])
