"""A step of all texts on a GPU: five kernels a layer for one slot, seven for several."""

from typing import Any

import torch
import triton
from torch import Tensor, nn

from ..gpt import GPT
from . import gpu as kernels

MANY_OUTPUTS = 8192  # of a product: enough for all multiprocessors, even if each program computes more of them
# Timed with GPT-2's shape on an H200: how much each program computes, and how much of the sums at once.
ROW_OUTPUTS, ROW_WIDTH = (4, 16), 1024  # for one slot: with fewer outputs, and with MANY_OUTPUTS
TILE_OUTPUTS, TILE_WIDTH, TILE_SLOTS = (32, 64), 128, 64
VOCABULARY_WIDTH, KEYS_WIDTH = 8192, 4096


class FusedStep:
    """Reads a token of each of ``n_slots`` texts, whose cache is ``keys`` and ``values``.

    ``inputs`` ``(2, n_slots)`` holds their ids and places; the last place of the cache means nothing to read. Results
    are written to ``logits`` ``(n_slots, vocab_size)`` and ``summary`` ``(n_slots, 3)``: the most probable token, its
    logit and log-sum-exp. All stay where they are, so that the step can be captured as a graph.
    """

    def __init__(self, gpt: GPT, inputs: Tensor, keys: Tensor, values: Tensor, logits: Tensor, summary: Tensor) -> None:
        config, n_slots, like = gpt.config, inputs.shape[1], gpt.lm_head.weight
        self.gpt, self.n_slots = gpt, n_slots
        self.inputs, self.keys, self.values, self.logits, self.summary = inputs, keys, values, logits, summary
        self.early = bool(torch.version.cuda) and torch.cuda.get_device_capability(like.device) >= (9, 0)
        self.places = torch.zeros(n_slots, dtype=torch.long, device=like.device)
        self.stream = torch.zeros(n_slots, config.n_embd, device=like.device)
        self.normed = like.new_zeros(n_slots, config.n_embd)
        self.qkv = like.new_zeros(n_slots, sum(config.qkv_dims))
        self.context = like.new_zeros(n_slots, config.n_head * config.head_dim)
        self.neurons = like.new_zeros(n_slots, config.inner_dim)

    @torch.inference_mode()
    def __call__(self) -> None:
        gpt = self.gpt
        width = power_of_2(min(gpt.config.n_embd, ROW_WIDTH))
        self.launch(
            kernels.embed, (self.n_slots,), self.inputs, self.places, gpt.wte.weight,
            None if gpt.wpe is None else gpt.wpe.weight, self.stream,
            N_EMBD=gpt.config.n_embd, LAST=gpt.config.context_length - 1, WIDTH=width,
        )  # fmt: skip
        for block in gpt.blocks:
            mlp = block.mlp
            first: dict[str, Any] = {"activation": mlp.activation, "gated": mlp.is_gated}
            self.product(self.stream, block.attn.c_attn, self.qkv, block.ln_1)
            if block.parallel:
                self.product(self.stream, mlp.c_fc, self.neurons, block.ln_2, **first)
            self.attend(block.attn, block.layer)
            self.product(self.context, block.attn.c_proj, self.stream, add=True)
            if not block.parallel:
                self.product(self.stream, mlp.c_fc, self.neurons, block.ln_2, **first)
            self.product(self.neurons, mlp.c_proj, self.stream, add=True)
        self.product(self.stream, gpt.lm_head, self.logits, gpt.ln_f)
        n_vocab = gpt.config.vocab_size
        width = min(VOCABULARY_WIDTH, power_of_2(n_vocab))
        self.launch(kernels.summarise, (self.n_slots,), self.logits, self.summary, n_vocab, WIDTH=width, num_warps=16)

    def product(
        self, x: Tensor, linear: nn.Linear, out: Tensor, norm: nn.Module | None = None, add: bool = False,
        activation: str = "", gated: bool = False,
    ) -> None:  # fmt: skip
        """``linear(norm(x))``, then the activation, to ``out`` or added to it."""
        n_in, n_out = linear.in_features, out.shape[1]
        has_many = n_out >= MANY_OUTPUTS
        weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
        epsilon, centred = getattr(norm, "eps", 0.0), isinstance(norm, nn.LayerNorm)
        width = power_of_2(min(n_in, ROW_WIDTH))
        options: dict[str, Any] = {"N_IN": n_in, "ACTIVATION": activation, "GATED": gated, "ADD": add}
        if self.n_slots == 1:
            outputs = ROW_OUTPUTS[has_many]
            self.launch(
                kernels.product_of_row, (triton.cdiv(n_out, outputs),), x, weight, bias, epsilon, linear.weight,
                linear.bias, out, n_out, CENTRED=centred, OUTPUTS=outputs, WIDTH=width, **options,
            )  # fmt: skip
            return
        if norm is not None:
            self.launch(
                kernels.normalise, (self.n_slots,), x, weight, bias, self.normed, epsilon,
                N_IN=n_in, CENTRED=centred, WIDTH=width,
            )  # fmt: skip
            x = self.normed
        rows, outputs = min(TILE_SLOTS, power_of_2(self.n_slots)), TILE_OUTPUTS[has_many]
        self.launch(
            kernels.product, (triton.cdiv(n_out, outputs), triton.cdiv(self.n_slots, rows)), x, linear.weight,
            linear.bias, out, self.n_slots, n_out, ROWS=rows, OUTPUTS=outputs, WIDTH=min(width, TILE_WIDTH),
            num_warps=8, **options,
        )  # fmt: skip

    def attend(self, attention: Any, layer: int) -> None:
        rotary, head_dim = attention.rotary, attention.head_dim
        cos, sin = (None, None) if rotary is None else rotary.table(self.stream.device)
        width = power_of_2(head_dim)
        self.launch(
            kernels.attend, (self.n_slots, attention.n_head), self.qkv, self.places, self.keys[layer],
            self.values[layer], self.context, getattr(attention.q_norm, "weight", None),
            getattr(attention.k_norm, "weight", None), cos, sin, attention.scale, getattr(attention.q_norm, "eps", 0.0),
            N_HEAD=attention.n_head, N_KV_HEAD=attention.n_kv_head, HEAD_DIM=head_dim,
            N_ROTATED=0 if rotary is None else rotary.config.n_dim, LENGTH=self.keys.shape[3], WIDTH=width,
            LANES=max(16, KEYS_WIDTH // width), num_warps=4,
        )  # fmt: skip

    def launch(self, kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
        options |= {"EARLY": self.early} | ({"launch_pdl": True} if self.early else {})
        kernel[grid](*args, **options)


def power_of_2(n: int) -> int:
    """The smallest power of 2 that is at least ``n``, and at least 16."""
    return max(16, triton.next_power_of_2(n))
