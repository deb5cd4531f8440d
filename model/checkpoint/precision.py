"""The device and the precision in which a model computes."""

import torch

from ..config import GPTConfig

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}
BFLOAT16_ABOVE = 50_000_000  # with fewer weights, reading them from memory is not what takes the time


def choose_device(device: str) -> torch.device:
    """The torch device of that name, or the best one for "auto". Raises ``ValueError`` if it cannot be used here."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=device).item()  # unlike "meta", a usable device holds values that can be read back
        return torch.device(device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} cannot be used here ('auto' and 'cpu' always can): {error}") from None


def choose_dtype(dtype: str, config: GPTConfig, device: torch.device) -> torch.dtype:
    """The precision of that name, or the best one for "auto". Raises ``ValueError`` if it is unknown or unsupported."""
    if dtype == "auto":
        large = config.n_parameters > BFLOAT16_ABOVE
        return torch.bfloat16 if large and has_bfloat16(device) else torch.float32
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of 'auto', {', '.join(map(repr, DTYPES))}, found {dtype!r}")
    if dtype == "int8" and device.type != "cpu":
        raise ValueError(f"dtype 'int8' requires a CPU, found device {device.type!r}")
    return DTYPES[dtype]


def has_bfloat16(device: torch.device) -> bool:
    """Whether the processor multiplies bfloat16 natively rather than through float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())
