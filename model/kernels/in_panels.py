"""Layers of a large GPT that compute with the panels of the compiled loops, so that its weights are in memory once."""

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..gpt import GPT
from .forward import ATTENTION_OUTPUT, MLP_INPUT, MLP_OUTPUT, QUERY_KEY_VALUE, Weights, padded, project
from .int8 import Int8Linear
from .integers import Integers
from .panels import GROUP, UNSIGNED, WIDTH, Rows

LARGE = 64_000_000  # bytes of panels; below, a second copy is worth the simpler layers
FEW = 16  # rows, of which a product takes no longer on one thread than it takes to call others


class PanelLinear(nn.Module):
    """A linear layer, ``(..., d_in) -> (..., d_out)``: matrix ``index`` of layer ``layer`` in ``weights``.

    It computes in float32 and answers in the precision of its input.
    """

    bias: Tensor
    scale: Tensor | None

    def __init__(self, linear: nn.Linear | Int8Linear, weights: Weights, layer: int, index: int) -> None:
        super().__init__()
        self.d_out, self.d_in = linear.weight.shape
        self.dtype = linear.weight.dtype
        self.weights, self.place = weights, (layer, index)
        self.register_buffer("bias", linear.bias)
        self.register_buffer("scale", getattr(linear, "scale", None), persistent=False)

    @property
    def n_made(self) -> int:
        """How many numbers ``weight`` makes."""
        return self.d_out * self.d_in

    @property
    def weight(self) -> Tensor:
        """``(d_out, d_in)`` as the layer had it; made on each call."""
        group, start = self.weights.group, self.weights.panels_at[self.place]
        groups = -(-self.d_in // group)
        stored = self.weights.panels[start : start + padded(self.d_out) * groups * group]
        panels = torch.from_numpy(stored).view(-1, groups, WIDTH, group)
        matrix = panels.transpose(1, 2).reshape(-1, groups * group)[: self.d_out, : self.d_in]
        if stored.dtype == np.uint8:
            return (matrix.to(torch.int16) - UNSIGNED).to(torch.int8)
        narrow = {np.dtype(np.int16): torch.float16, np.dtype(np.uint16): torch.bfloat16}.get(stored.dtype)
        return (matrix if narrow is None else matrix.view(narrow)).to(self.dtype)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.d_in).float().contiguous()
        n, width = len(rows), padded(self.d_out)
        n_threads = torch.get_num_threads() if n >= FEW else 1
        out = np.empty((n, width), np.float32)
        inputs, outputs = Rows(rows.numpy().reshape(-1), 0, self.d_in), Rows(out.reshape(-1), 0, width)
        integers = self.room(n, n_threads)

        def compute(thread: int) -> None:
            shape = n, self.d_in, self.d_out
            project(self.weights, *self.place, inputs, *shape, outputs, False, integers, thread, n_threads)

        others = [helpers().submit(compute, thread) for thread in range(1, n_threads)]
        compute(0)
        for other in others:
            other.result()
        return torch.from_numpy(out)[:, : self.d_out].to(x.dtype).view(*x.shape[:-1], -1)

    def room(self, n_rows: int, n_threads: int) -> Integers:
        """Room for ``n_rows`` inputs in integers, in each thread; none where they are not needed."""
        n_numbers = n_rows * -(-self.d_in // GROUP) * GROUP if self.weights.group > 1 else 0
        sizes = (n_numbers, np.int8), (n_rows, np.float32), (n_rows, np.int32)
        return Integers(*(np.empty((n_threads, size), kind) for size, kind in sizes))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.weight


@functools.cache
def helpers() -> ThreadPoolExecutor:
    """The threads that share a product."""
    return ThreadPoolExecutor(thread_name_prefix="a share of a product")


def use_panels(gpt: GPT, weights: Weights) -> None:
    """Let the layers of a large ``gpt`` compute with the panels in ``weights``, and drop their own weights.

    Whatever reads ``gpt`` meanwhile ends with the layers that it found.
    """
    if weights.panels.nbytes < LARGE:
        return
    for layer, block in enumerate(gpt.h):
        attn, mlp = block.attn, block.mlp
        for index, owner, name in (
            (QUERY_KEY_VALUE, attn, "c_attn"),
            (ATTENTION_OUTPUT, attn, "c_proj"),
            (MLP_INPUT, mlp, "c_fc"),
            (MLP_OUTPUT, mlp, "c_proj"),
        ):
            setattr(owner, name, PanelLinear(getattr(owner, name), weights, layer, int(index)))
