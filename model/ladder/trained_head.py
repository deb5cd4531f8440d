"""Rung 9 of the ladder: a head of a trained model, computed step by step."""

from typing import NamedTuple, cast

import torch
from torch import Tensor

from ..gpt import Block
from ..lens.residuals import Residuals
from .attention import causal_by_minus_infinity, split_heads
from .averages import Attention


class TrainedHead(NamedTuple):
    """A head of a trained model in float32: queries and keys ``(T, head_dim)``, scale, and all stages of attention."""

    query: Tensor
    key: Tensor
    scale: float
    attention: Attention


@torch.inference_mode()
def head_by_ladder(residuals: Residuals, layer: int, head: int) -> TrainedHead:
    """A head of the model that computed ``residuals``, by the steps of the ladder instead of the model's own code."""
    block = cast(Block, residuals.gpt.h[layer])
    attn = block.attn
    wide = attn.c_attn(block.ln_1(residuals.stream[layer]))[0].float().cpu()  # (T, 3 C)
    query, key, value = (split_heads(part, attn.n_head)[head] for part in wide.chunk(3, dim=-1))
    attn_scores = query @ key.mT
    attn_weights = causal_by_minus_infinity(attn_scores, attn.scale)
    return TrainedHead(query, key, attn.scale, Attention(attn_scores, attn_weights, attn_weights @ value))
