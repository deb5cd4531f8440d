"""Loading a checkpoint from any source, as a GPT and its tokenizer."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..config import GPTConfig
from ..gpt import GPT
from ..kernels.int8 import quantize
from ..seams.torch import has_native_bfloat16
from ..tokenizer import Tokenizer
from .source import read_source
from .weights import gpt_on_meta

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}
LINEAR = re.compile(r"h\.\d+\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight")
BFLOAT16_ABOVE = 50_000_000  # with fewer weights, reading them from memory is not the bottleneck


def choose_device(device: str) -> torch.device:
    """The torch device of that name, or the best one for "auto". Raises ``ValueError`` if it cannot be used here."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=device).item()  # unlike "meta", a usable device holds values that can be read back
        return torch.device(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].partition("Expected one of")[0].rstrip(" .,:") or type(error).__name__
        raise ValueError(f"device {device!r} cannot be used here ('auto' and 'cpu' always can): {reason}") from None


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
    return device.type == "cpu" and has_native_bfloat16()


class Checkpoint(NamedTuple):
    """A checkpoint in memory. ``sha256`` is the hash of its weight files."""

    name: str
    gpt: GPT
    tokenizer: Tokenizer
    bos_token_id: int | None
    eos_token_id: int | None
    sha256: str
    chat_template: str
    other_end_ids: tuple[int, ...]
    model_type: str
    declared_context: int
    named_tokens: Mapping[str, str] | None
    generation_config: Mapping[str, object]


def load_checkpoint(source: str | Path, device: str = "auto", dtype: str = "auto") -> Checkpoint:
    """Load the checkpoint that ``model.load`` wraps in a ``LoadedModel``, with the same arguments and errors."""
    target = choose_device(device)

    def keep(config: GPTConfig, name: str, tensor: Tensor) -> Tensor:
        precision = choose_dtype(dtype, config, target)
        return in_fastest_layout(name, tensor.to(target, torch.float32 if precision == torch.int8 else precision))

    checkpoint = read_source(source, keep=keep)
    config, state = checkpoint.config, checkpoint.state
    gpt = gpt_on_meta(config)
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["wte.weight"]
    gpt.load_state_dict(state, assign=True)
    gpt.tie_weights()  # the assignment untied them
    gpt.eval().requires_grad_(False)
    if choose_dtype(dtype, config, target) == torch.int8:
        quantize(gpt)
    return Checkpoint(
        checkpoint.name,
        gpt,
        checkpoint.tokenizer,
        checkpoint.bos_token_id,
        checkpoint.eos_token_id,
        checkpoint.sha256,
        checkpoint.chat_template,
        checkpoint.other_end_ids,
        checkpoint.model_type,
        checkpoint.declared_context,
        checkpoint.named_tokens,
        checkpoint.generation_config,
    )


def in_fastest_layout(name: str, tensor: Tensor) -> Tensor:
    """A weight in the memory layout that multiplies fastest.

    On a CPU, the product of one float32 row and a matrix is a third faster if the matrix is stored ``(in, out)``, as in
    a checkpoint folder; in every other case ``(out, in)`` is best.
    """
    keep = tensor.device.type == "cpu" and tensor.dtype == torch.float32 and LINEAR.fullmatch(name)
    return tensor.t().contiguous().t() if keep else tensor.contiguous()
