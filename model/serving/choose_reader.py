"""The fastest reader for a model on this machine."""

import importlib.util
from pathlib import Path

import torch

from ..gpt import GPT
from .reader import MAX_PROMPT_TOKENS, Reader
from .threads import available_cores


def choose_reader(gpt: GPT, n_slots: int, cache: Path | None = None, *, share: bool = True) -> Reader | None:
    """A reader that is faster than torch's modules: compiled loops on a CPU, CUDA graphs on an NVIDIA GPU.

    None if there is neither: on other devices, GPUs after the first, without Numba, on processors that the loops do not
    support, and for a model with choices that they do not know (``GPTConfig.has_loops``). Compiling takes a few
    seconds, most of them only the first time if ``cache`` is a folder that can be written. Afterwards, with ``share``,
    a large ``gpt`` computes with the weights of the loops, and its own are gone. A bfloat16 model multiplies in
    bfloat16 where that is faster. Products in bfloat16 or int8 are in tiles (AMX) where that is faster.
    """
    device = gpt.device.type
    if device == "cuda":
        if gpt.device.index != torch.cuda.current_device():  # where a graph is captured and kernels are launched
            return None
        from .graph_reader import GraphReader

        return GraphReader(gpt, n_slots)
    if device != "cpu" or not gpt.config.has_loops or importlib.util.find_spec("numba") is None:
        return None
    from ..kernels import jit

    if not jit.is_supported():
        return None
    jit.keep_compiled_code(cache)
    from ..kernels.compiled import CompiledGPT
    from ..kernels.products import KINDS, choose_products
    from .compiled_reader import CompiledReader

    options = KINDS[choose_products(gpt.lm_head.weight.dtype, cache)]
    n_rows = MAX_PROMPT_TOKENS + n_slots
    return CompiledReader(CompiledGPT(gpt, n_slots, n_rows, available_cores(), share=share, **options))
