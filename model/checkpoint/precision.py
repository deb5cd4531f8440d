"""Which device and which precision a model computes in."""

import torch

from ..config import GPTConfig

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}
BFLOAT16_FROM = 50_000_000  # below this many weights the time is not in the weights


def choose_device(device: str) -> torch.device:
    """The torch device of a setting; raises ``ValueError`` for one that this machine lacks."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=device).item()  # a number that can be read back, which "meta" has not
        return torch.device(device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {device!r} cannot be used here ('auto' and 'cpu' always can): {error}") from None


def choose_dtype(dtype: str, config: GPTConfig, device: torch.device) -> torch.dtype:
    """The precision of a setting; raises ``ValueError`` for an unknown one."""
    if dtype == "auto":
        large = config.n_parameters > BFLOAT16_FROM
        return torch.bfloat16 if large and has_bfloat16(device) else torch.float32
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be 'auto', {', '.join(map(repr, DTYPES))}, found {dtype!r}")
    if dtype == "int8" and device.type != "cpu":
        raise ValueError(f"dtype 'int8' is for a CPU, found device {device.type!r}")
    return DTYPES[dtype]


def has_bfloat16(device: torch.device) -> bool:
    """Whether the processor multiplies bfloat16 itself rather than by way of float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
