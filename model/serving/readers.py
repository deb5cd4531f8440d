"""Which reader an engine gets: a compiled one where this machine can have it."""

import importlib.util
import logging
from pathlib import Path

from ..gpt import GPT
from .engine import PREFILL_ALONE
from .parts import Reader
from .threads import available_cores

log = logging.getLogger(__name__)


def compiled_reader(gpt: GPT, n_slots: int, cache: Path | None = None) -> Reader | None:
    """A reader whose forward pass is compiled; None if ``gpt`` is not on a CPU, or not on one that Numba can serve.

    Takes a few seconds, most of them only the first time if ``cache`` is a folder that can be written.
    """
    if gpt.wte.weight.device.type != "cpu" or importlib.util.find_spec("numba") is None:
        return None
    from ..kernels import jit

    if not jit.is_supported():
        return None
    jit.keep_compiled_code(cache)
    from ..kernels.compiled import CompiledGPT
    from .compiled import CompiledReader

    return CompiledReader(CompiledGPT(gpt, n_slots, PREFILL_ALONE + n_slots, available_cores()))
