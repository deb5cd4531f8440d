"""Rung 9 of the ladder: what surrounds attention in a block of a GPT, and a whole block step by step."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from ..gpt import GPT, Block
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

    By default, the tanh form that GPT-2 uses (Hendrycks & Gimpel 2016, section 2).
    """
    if exact:
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def linear(layer: nn.Module, x: Tensor) -> Tensor:
    """``x W^T + b``. A quantized layer exposes no float matrix, so it computes the result itself."""
    if not isinstance(layer, nn.Linear) or not layer.weight.is_floating_point():
        return cast(Tensor, layer(x))
    product = x.to(layer.weight.dtype) @ layer.weight.T
    return product if layer.bias is None else product + layer.bias


def normalise(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """``layer_norm`` with the learned parameters of ``norm``."""
    return layer_norm(x, norm.weight, norm.bias, norm.eps)


class BlockLayers(NamedTuple):
    """The layers of a block, by the stage that each computes. The linear ones may be quantized."""

    normed: nn.LayerNorm
    attended: nn.Linear
    mlp_input: nn.LayerNorm
    hidden: nn.Linear
    mlp_output: nn.Linear


def block_layers(block: Block) -> BlockLayers:
    norms = cast(nn.LayerNorm, block.ln_1), cast(nn.LayerNorm, block.ln_2)
    return BlockLayers(norms[0], block.attn.c_proj, norms[1], block.mlp.c_fc, block.mlp.c_proj)


def position_embeddings(gpt: GPT, start: int, stop: int) -> Tensor:
    """The embeddings of positions ``start`` to ``stop - 1``, ``(stop - start, C)``."""
    return cast(nn.Embedding, gpt.wpe).weight[start:stop]


def final_norm(gpt: GPT) -> nn.LayerNorm:
    """The layer norm between the last block and the output head."""
    return cast(nn.LayerNorm, gpt.ln_f)


def part_of_head(block: Block, part: Literal["query", "key", "value"], head: int, index: int) -> tuple[nn.Module, int]:
    """The layer that computes component ``index`` of a head's query, key or value, and the index of that output."""
    attn = block.attn
    first = ("query", "key", "value").index(part) * attn.n_head * attn.head_dim
    return attn.c_attn, first + head * attn.head_dim + index


class BlockStages(NamedTuple):
    """One layer step by step: ``(T, C)`` each unless stated otherwise, on the device of the model."""

    x: Tensor  # the residual stream before the layer
    normed: Tensor  # the input of attention
    query: Tensor  # (n_head, T, head_dim)
    key: Tensor
    value: Tensor
    scores: Tensor  # (n_head, T, T), unscaled
    weights: Tensor  # (n_head, T, T)
    context: Tensor  # (n_head, T, head_dim)
    heads: Tensor  # the context vectors of all heads side by side
    attended: Tensor  # after the output projection
    resid_mid: Tensor  # x + attended
    mlp_input: Tensor  # the input of the MLP
    hidden: Tensor  # (T, inner_dim)
    activated: Tensor  # (T, inner_dim), after GELU
    mlp_output: Tensor
    after: Tensor  # resid_mid + mlp_output, the residual stream after the layer


@torch.no_grad()
def block_by_ladder(block: Block, x: Tensor, muted: Sequence[int] = ()) -> BlockStages:
    """A layer of a GPT on the residual stream ``x`` ``(T, C)``, by the steps of the ladder instead of its own code.

    The context vectors of the heads ``muted`` are set to 0.
    """
    attn, mlp = block.attn, block.mlp
    normed = normalise(block_layers(block).normed, x)
    wide = linear(attn.c_attn, normed)  # (T, 3 C)
    query, key, value = (split_heads(part, attn.n_head) for part in wide.chunk(3, dim=-1))
    scores = query @ key.mT
    weights = causal_by_minus_infinity(scores, attn.scale)
    context = weights @ value
    context[list(muted)] = 0
    heads = merge_heads(context)
    attended = linear(attn.c_proj, heads)
    resid_mid = x + attended
    mlp_input = normalise(block_layers(block).mlp_input, resid_mid)
    hidden = linear(mlp.c_fc, mlp_input)
    activated = gelu(hidden, exact=mlp.activation == "gelu")
    mlp_output = linear(mlp.c_proj, activated)
    return BlockStages(
        x, normed, query, key, value, scores, weights, context, heads, attended, resid_mid, mlp_input, hidden,
        activated, mlp_output, resid_mid + mlp_output,
    )  # fmt: skip


@torch.no_grad()
def block_by_model(block: Block, x: Tensor) -> dict[str, Tensor]:
    """The stages of ``block_by_ladder`` from the model's own modules, as far as these return them."""
    normed = block.ln_1(x[None])
    query, key, value = block.attn.queries_keys_values(normed)
    context, weights = block.attn.context(normed, need_weights=True)
    attended = block.attn.output(context.to(x.dtype))
    resid_mid = x[None] + attended
    mlp_input = block.ln_2(resid_mid)
    mlp = block.mlp
    hidden = mlp.c_fc(mlp_input)
    activated = mlp.activate(hidden)
    assert weights is not None
    stages = {
        "normed": normed, "query": query, "key": key, "value": value, "weights": weights, "heads": context.flatten(2),
        "attended": attended, "resid_mid": resid_mid, "mlp_input": mlp_input, "hidden": hidden,
        "activated": activated, "mlp_output": mlp(mlp_input),
    }  # fmt: skip
    return {name: stage[0] for name, stage in stages.items()}
