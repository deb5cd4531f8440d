"""Linear layers in int8, on a CPU.

Weights are quantized once, with one scale per output row, and inputs on the fly, with one scale per token (Dettmers et
al. 2022, without the treatment of outliers). The sums are exact integers, so a token's result does not depend on the
rest of the batch. Embeddings, attention, norms and the residual stream stay in float32.
"""

import torch
from torch import Tensor, nn

from ..gpt import GPT
from ..seams.torch import multiply_int8

LARGEST = 127
ROWS_AT_ONCE = 1_024  # quantized at a time, because the numbers in between take four times the memory


class Int8Linear(nn.Module):
    """A linear layer in int8, ``(..., d_in) -> (..., d_out)``; its input and output are float32."""

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight, scale = torch.empty(linear.weight.shape, dtype=torch.int8), torch.empty(len(linear.weight))
        for start in range(0, len(weight), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            exact = linear.weight[rows].float()
            scale[rows] = exact.abs().amax(1).clamp_(min=torch.finfo(torch.float32).tiny) / LARGEST
            weight[rows] = (exact / scale[rows, None]).round_()
        self.register_buffer("weight", weight)  # (d_out, d_in)
        self.register_buffer("scale", scale)  # (d_out,)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.float())

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        scale = rows.abs().amax(-1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny).div_(LARGEST)
        rounded = (rows / scale).round_().to(torch.int8)
        result = multiply_int8(rounded, self.weight.t()).float().mul_(scale).mul_(self.scale)
        if self.bias is not None:
            result += self.bias
        return result.view(*x.shape[:-1], result.shape[-1])


def is_exact() -> bool:
    """Whether torch sums int8 products exactly here; on some processors without VNNI, its sums saturate at 16 bits."""
    ones = torch.full((64, 64), LARGEST, dtype=torch.int8)
    return bool((multiply_int8(ones, ones.t()) == 64 * LARGEST**2).all())


def quantize(gpt: GPT) -> None:
    """Convert every linear layer of ``gpt``, including the output head, to int8. It must be in float32 on the CPU.

    Raises ``ValueError`` if the processor cannot compute int8 products exactly.
    """
    if not is_exact():
        raise ValueError("dtype 'int8' requires a processor with exact int8 products (VNNI), which this one lacks")
    for module in list(gpt.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child))
