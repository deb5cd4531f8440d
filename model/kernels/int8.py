"""Linear layers in int8, on a CPU.

Weights are quantized once, with one scale per output row, and inputs on the fly, with one scale per token (Dettmers et
al. 2022, without the treatment of outliers). The sums are exact integers, so a token's result does not depend on the
rest of the batch. Embeddings, attention, norms and the residual stream stay in float32.
"""

import torch
from torch import Tensor, nn

from ..gpt import GPT

LARGEST = 127


class Int8Linear(nn.Module):
    """A linear layer in int8, ``(..., d_in) -> (..., d_out)``; its input and output are float32."""

    weight: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.float()
        scale = weight.abs().amax(1).clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
        self.register_buffer("weight", (weight / scale[:, None]).round().to(torch.int8).contiguous())  # (d_out, d_in)
        self.register_buffer("scale", scale)  # (d_out,)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.float())

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        scale = rows.abs().amax(-1, keepdim=True).clamp_(min=torch.finfo(torch.float32).tiny).div_(LARGEST)
        rounded = (rows / scale).round_().to(torch.int8)
        result = torch._int_mm(rounded, self.weight.t()).float().mul_(scale).mul_(self.scale)
        if self.bias is not None:
            result += self.bias
        return result.view(*x.shape[:-1], -1)


def is_exact() -> bool:
    """Whether this processor sums int8 products exactly; without VNNI, the sums saturate at 16 bits."""
    ones = torch.full((64, 64), LARGEST, dtype=torch.int8)
    return bool((torch._int_mm(ones, ones.t()) == 64 * LARGEST**2).all())


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
