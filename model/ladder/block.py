"""Rung 9 of the ladder: what surrounds attention in a block of a GPT, and a whole block step by step."""

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from ..gpt import Block
from .trainable_attention import causal_by_minus_infinity, merge_heads, split_heads


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Each vector of ``x`` ``(..., C)`` with mean 0 and variance 1, then scaled and shifted number by number.

    ``weight`` and ``bias`` ``(C,)`` are learned (Ba et al. 2016, section 3). ``eps`` avoids dividing by zero.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, correction=0, keepdim=True)
    return (x - mean) / (variance + eps).sqrt() * weight + bias


def gelu(x: Tensor, exact: bool = False) -> Tensor:
    """Near 0 for negative numbers, near ``x`` for positive ones: ``x`` times the normal distribution function.

    By default the tanh form of it that GPT-2 uses (Hendrycks & Gimpel 2016, section 2).
    """
    if exact:
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def linear(layer: nn.Module, x: Tensor) -> Tensor:
    """``x W^T + b``. A quantized layer, which has no matrix to read, computes it itself."""
    if not isinstance(layer, nn.Linear) or not layer.weight.is_floating_point():
        return cast(Tensor, layer(x))
    product = x.to(layer.weight.dtype) @ layer.weight.T
    return product if layer.bias is None else product + layer.bias


class BlockStages(NamedTuple):
    """One layer step by step: ``(T, C)`` each where nothing else is said, on the device of the model."""

    x: Tensor  # the residual stream before the layer
    normed: Tensor  # what attention reads
    query: Tensor  # (n_head, T, head_dim)
    key: Tensor
    value: Tensor
    scores: Tensor  # (n_head, T, T), unscaled
    weights: Tensor  # (n_head, T, T)
    context: Tensor  # (n_head, T, head_dim)
    heads: Tensor  # the context vectors of all heads side by side
    attended: Tensor  # after the output projection
    middle: Tensor  # x + attended
    normed_again: Tensor  # what the MLP reads
    hidden: Tensor  # (T, inner_dim)
    activated: Tensor  # (T, inner_dim), after GELU
    thought: Tensor  # the output of the MLP
    after: Tensor  # middle + thought, the residual stream after the layer


@torch.inference_mode()
def block_by_ladder(block: Block, x: Tensor) -> BlockStages:
    """A layer of a GPT on the residual stream ``x`` ``(T, C)``, by the steps of the ladder instead of its own code."""
    attn, mlp = block.attn, block.mlp
    normed = layer_norm(x, block.ln_1.weight, block.ln_1.bias, block.ln_1.eps)
    wide = linear(attn.c_attn, normed)  # (T, 3 C)
    query, key, value = (split_heads(part, attn.n_head) for part in wide.chunk(3, dim=-1))
    scores = query @ key.mT
    weights = causal_by_minus_infinity(scores, attn.scale)
    context = weights @ value
    heads = merge_heads(context)
    attended = linear(attn.c_proj, heads)
    middle = x + attended
    normed_again = layer_norm(middle, block.ln_2.weight, block.ln_2.bias, block.ln_2.eps)
    hidden = linear(mlp.c_fc, normed_again)
    activated = gelu(hidden, exact=mlp.approximate == "none")
    thought = linear(mlp.c_proj, activated)
    return BlockStages(
        x, normed, query, key, value, scores, weights, context, heads, attended, middle, normed_again, hidden,
        activated, thought, middle + thought,
    )  # fmt: skip


@torch.inference_mode()
def block_by_model(block: Block, x: Tensor) -> dict[str, Tensor]:
    """The same stages, by name, from the modules that the model itself runs, as far as these return them."""
    normed = block.ln_1(x[None])
    qkv = block.attn.c_attn(normed)
    heads, weights = block.attn.attend(qkv, need_weights=True)
    attended = block.attn.c_proj(heads.to(x.dtype))
    middle = x[None] + attended
    normed_again = block.ln_2(middle)
    mlp = block.mlp
    hidden = mlp.c_fc(normed_again)
    activated = nn.functional.gelu(hidden, approximate=mlp.approximate)
    query, key, value = (split_heads(part, block.attn.n_head) for part in qkv.chunk(3, dim=-1))
    assert weights is not None
    stages = {
        "normed": normed, "query": query, "key": key, "value": value, "weights": weights, "heads": heads,
        "attended": attended, "middle": middle, "normed_again": normed_again, "hidden": hidden,
        "activated": activated, "thought": mlp(normed_again),
    }  # fmt: skip
    return {name: stage[0] for name, stage in stages.items()}
