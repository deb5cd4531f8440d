"""Parts of PyTorch that it does not publish."""

import torch
from torch import Tensor

PARTS = {
    "torch.cpu._is_avx512_bf16_supported": "tells whether the processor multiplies bfloat16 natively",
    "torch._int_mm": "multiplies matrices of 8-bit integers, for dtype 'int8'",
    "torch._foreach_lerp_": "updates all momenta of Muon in one call",
    "torch._foreach_lerp": "computes all of Muon's steps in one call",
    "torch._foreach_mul_": "decays all weights in one call",
    "torch.nn.Module._forward_hooks": "hooks that analyses, which call parts of modules, would not see",
    "torch.nn.Module._forward_pre_hooks": "the same, called before a module",
}


def has_hooks(module: torch.nn.Module) -> bool:
    """Whether anything is called before or after the forward pass of this module."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def has_native_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 natively rather than through float32."""
    return bool(torch.cpu._is_avx512_bf16_supported())


def multiply_int8(a: Tensor, b: Tensor) -> Tensor:
    """The product of two int8 matrices, ``(n, depth)`` and ``(depth, width)``, as int32 ``(n, width)``."""
    return torch._int_mm(a, b)


def move_towards(tensors: list[Tensor], targets: list[Tensor], fraction: float) -> None:
    """Move each tensor by ``fraction`` of the way to its target, in place."""
    torch._foreach_lerp_(tensors, targets, fraction)


def between(starts: list[Tensor], ends: list[Tensor], fraction: float) -> list[Tensor]:
    """For each pair, the tensor that is ``fraction`` of the way from the start to the end."""
    return list(torch._foreach_lerp(starts, ends, fraction))


def scale(tensors: list[Tensor], factor: float) -> None:
    """Multiply every tensor by ``factor``, in place."""
    torch._foreach_mul_(tensors, factor)
