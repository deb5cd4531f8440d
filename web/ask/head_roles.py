"""What every head of a model does, measured once per checkpoint and stored on disk."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from torch import Tensor

from model import LoadedModel
from model.config import is_number
from model.errors import Busy, InputError
from model.lens.answer import with_tensors_as
from model.lens.head_roles import (
    LOOKS,
    check_repeats,
    describe_roles,
    head_roles,
)
from model.lens.progress import Cancelled, Progress, ignore

from ..serving.process_memory import trim_heap
from .inquiry import Content, Inquiry
from .question_runner import lower_priority
from .service import AnswerService

VERSION = 3  # of the definitions of the scores; incremented whenever one changes
IDLE_SECONDS = 0.2  # between two checks for texts being written

Grid = list[list[float]]  # [layer][head]
Measured = dict[str, Any]  # {"scores": {role: Grid}, "entropy": Grid, "copying": Grid, "uniform": float, ...}


def measure_roles(service: AnswerService, loaded: LoadedModel, progress: Progress = ignore) -> Measured:
    """The role scores of every head, in float32. Raises ``InputError`` if the context is too short to measure them."""
    check_repeats(loaded.config)
    kept = stored_roles(service, loaded)
    if kept is not None:
        return kept
    roles = head_roles(replace(loaded, gpt=service.gpt(loaded)), progress=progress)
    measured: Measured = with_tensors_as(Tensor.tolist, roles.numbers())
    if loaded.sha256:
        service.disk.put(roles_file(loaded), measured)
    return measured


def stored_roles(service: AnswerService, loaded: LoadedModel) -> Measured | None:
    kept = service.disk.get(roles_file(loaded)) if loaded.sha256 else None
    return kept if kept is not None and has_roles(kept, loaded) else None


def roles_file(loaded: LoadedModel) -> str:
    return f"roles-{VERSION}-{loaded.sha256}-{str(loaded.dtype).removeprefix('torch.')}"


def prepare_roles(service: AnswerService, models: Iterable[LoadedModel], is_busy: Callable[[], bool]) -> None:
    """Measure ``models`` in the background while no text is being written, if results can be stored on disk."""
    if service.disk.folder is not None:
        arguments = [service, list(models), while_idle(service, is_busy)]
        threading.Thread(target=measure_in_turn, args=arguments, name="head roles", daemon=True).start()


def while_idle(service: AnswerService, is_busy: Callable[[], bool]) -> Progress:
    """A progress callback that waits while texts are written; it raises ``Cancelled`` if the server is stopping."""

    def wait(_fraction: float) -> None:
        while is_busy() and not service.runner.closed:
            time.sleep(IDLE_SECONDS)
        if service.runner.closed:
            raise Cancelled

    return wait


def measure_in_turn(service: AnswerService, models: Sequence[LoadedModel], wait: Progress) -> None:
    """The background thread: one model after the other."""
    lower_priority()
    with suppress(Cancelled):
        for loaded in models:
            wait(0)
            # The error is reported when somebody asks for the roles.
            with suppress(InputError, FloatingPointError, MemoryError, RuntimeError, Busy):
                measure_roles(service, loaded, wait)
            service.forget(loaded)  # free its memory, since no question may follow
            trim_heap()


def has_roles(measured: Measured, loaded: LoadedModel) -> bool:
    """Whether the content of a file has the form that this version writes for a model of this shape."""
    by_role = [measured.get(name) for name in ("scores", "errors")]
    looks = [each.get(role) if isinstance(each, dict) else None for each in by_role for role in LOOKS]
    grids = [*looks, measured.get("entropy"), measured.get("copying")]
    numbers = (measured.get("uniform"), measured.get("uniform_entropy"))
    return all(is_grid(grid, loaded) for grid in grids) and all(map(is_number, numbers))


def is_grid(value: object, loaded: LoadedModel) -> bool:
    n_layer, n_head = loaded.config.n_layer, loaded.config.n_head
    rows = value if isinstance(value, list) and len(value) == n_layer else [None]
    return all(isinstance(row, list) and len(row) == n_head and all(map(is_number, row)) for row in rows)


def answer_roles(service: AnswerService, inquiry: Inquiry, progress: Progress, _rows: list[bytes]) -> Content:
    return {**describe_roles(measure_roles(service, inquiry.loaded, progress))}
