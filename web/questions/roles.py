"""What every head of a model does, measured once for its weights and kept."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from model import LoadedModel
from model.errors import InvalidValue
from model.lens.copying import CHANCE, CLEAR_COPYING, copying_scores
from model.lens.head_roles import LOOKS, MIN_CONTEXT_LENGTH, clear_role, role_scores, sampled_tokens
from model.lens.questions.progress import Cancelled, Progress, ignore
from model.serving.engine import Busy

from ..serving.budget import trim_heap
from .service import Questions
from .turns import lower_priority

VERSION = 2  # another one whenever the definition of a score changes
NO_ROLE = "no clear role"
COPYING = "copying"
IDLE_SECONDS = 0.2  # between two looks at whether anybody is writing

Grid = list[list[float]]  # [layer][head]
Measured = dict[str, Any]  # {"scores": {role: Grid}, "entropy": Grid, "copying": Grid, "uniform": float, ...}


def measure_roles(questions: Questions, loaded: LoadedModel, progress: Progress = ignore) -> Measured:
    """The role scores of every head, in float32. Raises ``InputError`` if the context is too short for them."""
    if loaded.config.context_length < MIN_CONTEXT_LENGTH:
        allowed = f"one with a context_length of at least {MIN_CONTEXT_LENGTH}, to repeat two tokens"
        raise InvalidValue("model", loaded.name, allowed)
    name = f"roles-{VERSION}-{loaded.sha256}-{str(loaded.dtype).removeprefix('torch.')}"
    kept = questions.disk.get(name) if loaded.sha256 else None
    if kept is not None and fits(kept, loaded):
        return kept
    gpt = questions.gpt(loaded)
    found = role_scores(replace(loaded, gpt=gpt), progress=progress)
    measured: Measured = {
        "scores": {role: found.scores[role].tolist() for role in LOOKS},
        "entropy": found.entropy.tolist(),
        "copying": copying_scores(gpt, sampled_tokens(loaded)).tolist(),
        "uniform": found.uniform,
        "uniform_entropy": found.uniform_entropy,
    }
    if loaded.sha256:
        questions.disk.put(name, measured)
    return measured


def prepare_roles(questions: Questions, models: Iterable[LoadedModel], is_busy: Callable[[], bool]) -> None:
    """Measure ``models`` in the background, while nobody writes; only where the results are kept on disk."""
    if questions.disk.folder is not None:
        arguments = [questions, list(models), is_busy]
        threading.Thread(target=measure_in_turn, args=arguments, name="head roles", daemon=True).start()


def measure_in_turn(questions: Questions, models: Sequence[LoadedModel], is_busy: Callable[[], bool]) -> None:
    """The background thread: one model after the other."""
    lower_priority()

    def wait(_fraction: float) -> None:
        while is_busy() and not questions.turns.closed:
            time.sleep(IDLE_SECONDS)
        if questions.turns.closed:
            raise Cancelled

    with suppress(Cancelled):
        for loaded in models:
            if loaded.config.context_length >= MIN_CONTEXT_LENGTH:
                wait(0)
                # A later question reports it.
                with suppress(FloatingPointError, MemoryError, RuntimeError, Busy):
                    measure_roles(questions, loaded, wait)
                questions.let_go(loaded)  # nobody may ever ask
                trim_heap()


def fits(measured: Measured, loaded: LoadedModel) -> bool:
    """Whether a file holds what this version writes for a model of this shape."""
    scores = measured.get("scores")
    looks = [scores.get(role) for role in LOOKS] if isinstance(scores, dict) else [None]
    grids = [*looks, measured.get("entropy"), measured.get("copying")]
    numbers = (measured.get("uniform"), measured.get("uniform_entropy"))
    return all(is_grid(grid, loaded) for grid in grids) and all(map(is_number, numbers))


def is_grid(value: object, loaded: LoadedModel) -> bool:
    n_layer, n_head = loaded.config.n_layer, loaded.config.n_head
    rows = value if isinstance(value, list) and len(value) == n_layer else [None]
    return all(isinstance(row, list) and len(row) == n_head and all(map(is_number, row)) for row in rows)


def is_number(value: object) -> bool:
    return isinstance(value, float | int) and math.isfinite(value)


def describe_heads(measured: Measured) -> list[list[dict[str, Any]]]:
    """``[layer][head]``: the label of each head, its scores, and what uniform attention or random weights would score.

    The label says where the head looks. One that looks at nothing in particular may still be said to copy.
    """
    scores, uniform = measured["scores"], measured["uniform"]
    baseline = dict.fromkeys(LOOKS, uniform) | {"copying": CHANCE, "entropy": measured["uniform_entropy"]}

    def head(layer: int, index: int) -> dict[str, Any]:
        own = {role: scores[role][layer][index] for role in LOOKS}
        more = {name: measured[name][layer][index] for name in ("copying", "entropy")}
        role = clear_role(own, uniform)
        label = role.replace("_", " ") if role else COPYING if more["copying"] >= CLEAR_COPYING else NO_ROLE
        return {"label": label, "scores": own | more, "baseline": baseline}

    n_layer, n_head = len(measured["entropy"]), len(measured["entropy"][0])
    return [[head(layer, index) for index in range(n_head)] for layer in range(n_layer)]
