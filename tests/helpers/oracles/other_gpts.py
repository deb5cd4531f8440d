"""The forward passes of two other GPTs, written from their descriptions, for comparing logits."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def nanogpt_weights(n_layer: int, n_embd: int, vocab_size: int, context_length: int, bias: bool = True) -> nn.Module:
    """Modules named as in nanoGPT's checkpoints: GPT-2's names, ``nn.Linear`` weights, a tied head, mask buffers."""

    def block() -> nn.Module:
        attention = nn.ModuleDict(
            {"c_attn": nn.Linear(n_embd, 3 * n_embd, bias=bias), "c_proj": nn.Linear(n_embd, n_embd, bias=bias)}
        )
        attention.register_buffer("bias", torch.ones(1, 1, context_length, context_length).tril())
        mlp = {"c_fc": nn.Linear(n_embd, 4 * n_embd, bias=bias), "c_proj": nn.Linear(4 * n_embd, n_embd, bias=bias)}
        norms = {name: nn.LayerNorm(n_embd, bias=bias) for name in ("ln_1", "ln_2")}
        return nn.ModuleDict({**norms, "attn": attention, "mlp": nn.ModuleDict(mlp)})

    transformer = nn.ModuleDict(
        {
            "wte": nn.Embedding(vocab_size, n_embd),
            "wpe": nn.Embedding(context_length, n_embd),
            "h": nn.ModuleList(block() for _ in range(n_layer)),
            "ln_f": nn.LayerNorm(n_embd, bias=bias),
        }
    )
    gpt = nn.ModuleDict({"transformer": transformer, "lm_head": nn.Linear(n_embd, vocab_size, bias=False)})
    gpt["lm_head"].weight = transformer["wte"].weight
    return gpt


def nanogpt_logits(weights: Mapping[str, Tensor], ids: Tensor, n_head: int) -> Tensor:
    """``(T,) -> (T, vocab_size)``: layer norm before each part, exact GELU, biases only where the file has them."""
    w = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w.get(f"{name}.bias"), 1e-5)

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    layer = 0
    while f"h.{layer}.ln_1.weight" in w:
        h = f"h.{layer}"
        q, k, v = linear(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn").chunk(3, dim=-1)
        x = x + linear(causal_attention(q, k, v, n_head), f"{h}.attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc")), f"{h}.mlp.c_proj")
        layer += 1
    return norm(x, "ln_f") @ w["lm_head.weight"].T


def book_weights(
    n_layer: int, n_embd: int, vocab_size: int, context_length: int, qkv_bias: bool = False
) -> dict[str, Tensor]:
    """Random weights named as in the book's ``GPTModel``, including its masks."""
    generator = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return 0.2 * torch.randn(shape, generator=generator)

    C = n_embd
    weights = {"tok_emb.weight": draw(vocab_size, C), "pos_emb.weight": draw(context_length, C)}
    for layer in range(n_layer):
        block = f"trf_blocks.{layer}"
        weights[f"{block}.att.mask"] = torch.ones(context_length, context_length).triu(1)
        for part in ("query", "key", "value"):
            weights[f"{block}.att.W_{part}.weight"] = draw(C, C)
            if qkv_bias:
                weights[f"{block}.att.W_{part}.bias"] = draw(C)
        shapes = {"att.out_proj": (C, C), "ff.layers.0": (4 * C, C), "ff.layers.2": (C, 4 * C)}
        for name, (out, into) in shapes.items():
            weights |= {f"{block}.{name}.weight": draw(out, into), f"{block}.{name}.bias": draw(out)}
        for name in ("norm1", "norm2"):
            weights |= {f"{block}.{name}.scale": 1 + draw(C), f"{block}.{name}.shift": draw(C)}
    return weights | {
        "final_norm.scale": 1 + draw(C),
        "final_norm.shift": draw(C),
        "out_head.weight": draw(vocab_size, C),
    }


def book_logits(w: Mapping[str, Tensor], ids: Tensor, n_head: int) -> Tensor:
    """``(T,) -> (T, vocab_size)``: the book's layer norm, its tanh form of GELU, and three separate projections."""

    def norm(x: Tensor, name: str) -> Tensor:
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
        return w[f"{name}.scale"] * (x - mean) / torch.sqrt(variance + 1e-5) + w[f"{name}.shift"]

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", torch.zeros(()))

    def gelu(x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    x = w["tok_emb.weight"][ids] + w["pos_emb.weight"][: len(ids)]
    layer = 0
    while f"trf_blocks.{layer}.norm1.scale" in w:
        block = f"trf_blocks.{layer}"
        normed = norm(x, f"{block}.norm1")
        q, k, v = (linear(normed, f"{block}.att.W_{part}") for part in ("query", "key", "value"))
        x = x + linear(causal_attention(q, k, v, n_head), f"{block}.att.out_proj")
        x = x + linear(gelu(linear(norm(x, f"{block}.norm2"), f"{block}.ff.layers.0")), f"{block}.ff.layers.2")
        layer += 1
    return linear(norm(x, "final_norm"), "out_head")


def causal_attention(q: Tensor, k: Tensor, v: Tensor, n_head: int) -> Tensor:
    """``(T, C) -> (T, C)``, head by head."""
    T, C = q.shape
    future = torch.ones(T, T).triu(1).bool()
    heads = []
    for i in range(n_head):
        part = slice(i * C // n_head, (i + 1) * C // n_head)
        scores = (q[:, part] @ k[:, part].T / math.sqrt(C // n_head)).masked_fill(future, -math.inf)
        heads.append(scores.softmax(dim=-1) @ v[:, part])
    return torch.cat(heads, dim=-1)
