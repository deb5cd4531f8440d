"""The question of what every head of a model does, measured once per checkpoint and stored on disk."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import BaseModel
from pydantic import Field as Described
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
    roles_in_text,
)
from model.lens.progress import Cancelled, Progress, ignore

from ..process_memory import trim_heap
from .inquiry import Answer, Ask, Inquiry
from .prompts import of_many
from .question import HEAD_MASK, MODEL, PROMPT, ModelAnswer, PerHead, Question, TextAnswer
from .turns import lower_priority

VERSION = 3  # of the definitions of the scores; incremented whenever one changes
IDLE_SECONDS = 0.2  # between two checks for texts being written

Grid = list[list[float]]  # [layer][head]
Measured = dict[str, Any]  # {"scores": {role: Grid}, "entropy": Grid, "copying": Grid, "uniform": float, ...}


def measure_roles(ask: Ask, loaded: LoadedModel, progress: Progress = ignore) -> Measured:
    """The role scores of every head, in float32. Raises ``InputError`` if the context is too short to measure them."""
    check_repeats(loaded.config)
    kept = stored_roles(ask, loaded)
    if kept is not None:
        return kept
    roles = head_roles(replace(loaded, gpt=ask.gpt(loaded)), progress=progress)
    measured: Measured = with_tensors_as(Tensor.tolist, roles.numbers())
    if loaded.sha256:
        ask.disk.put(file_name(loaded), measured)
    return measured


def stored_roles(ask: Ask, loaded: LoadedModel) -> Measured | None:
    kept = ask.disk.get(file_name(loaded)) if loaded.sha256 else None
    return kept if kept is not None and fits(kept, loaded) else None


def file_name(loaded: LoadedModel) -> str:
    return f"roles-{VERSION}-{loaded.sha256}-{str(loaded.dtype).removeprefix('torch.')}"


def prepare_roles(ask: Ask, models: Iterable[LoadedModel], is_busy: Callable[[], bool]) -> None:
    """Measure ``models`` in the background while no text is being written, if results can be stored on disk."""
    if ask.disk.folder is not None:
        arguments = [ask, list(models), while_idle(ask, is_busy)]
        threading.Thread(target=measure_in_turn, args=arguments, name="head roles", daemon=True).start()


def while_idle(ask: Ask, is_busy: Callable[[], bool]) -> Progress:
    """A progress callback that waits while texts are written; it raises ``Cancelled`` if the server is stopping."""

    def wait(_fraction: float) -> None:
        while is_busy() and not ask.turns.closed:
            time.sleep(IDLE_SECONDS)
        if ask.turns.closed:
            raise Cancelled

    return wait


def measure_in_turn(ask: Ask, models: Sequence[LoadedModel], wait: Progress) -> None:
    """The background thread: one model after the other."""
    lower_priority()
    with suppress(Cancelled):
        for loaded in models:
            wait(0)
            # The error is reported when somebody asks for the roles.
            with suppress(InputError, FloatingPointError, MemoryError, RuntimeError, Busy):
                measure_roles(ask, loaded, wait)
            ask.forget(loaded)  # free its memory, since no question may follow
            trim_heap()


def fits(measured: Measured, loaded: LoadedModel) -> bool:
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


class LookScores(BaseModel):
    previous_token: float
    first_token: float
    self: float
    duplicate_token: float
    induction: float


class RoleGrids(BaseModel):
    previous_token: PerHead
    first_token: PerHead
    self: PerHead
    duplicate_token: PerHead
    induction: PerHead


class HeadScores(LookScores):
    copying: float = Described(
        description="The share of other tokens whose logits the head raises by less than that of the token it looks "
        "at. It is computed from the weights, on a sample of tokens."
    )
    entropy: float = Described(description="In bits.")


class HeadRole(BaseModel):
    label: str = Described(
        description='What it clearly looks at, else "copying" if it clearly copies, else "no clear role".'
    )
    scores: HeadScores = Described(
        description="Mean attention weights on random tokens that are repeated once, unless a score says otherwise."
    )
    errors: LookScores = Described(description="The standard errors of these mean weights, over the random texts.")
    baseline: HeadScores = Described(
        description="The scores of uniform attention on the same texts, and, for copying, of random weights."
    )


class RolesAnswer(ModelAnswer):
    threshold: float = Described(description="The lowest score that counts as a clear role.")
    copying_threshold: float = Described(description="The lowest score at which a head counts as copying.")
    heads: list[list[HeadRole]] = Described(description="`[layer][head]`")


def answer_roles(inquiry: Inquiry, progress: Progress) -> Answer:
    return describe_roles(measure_roles(inquiry.ask, inquiry.loaded, progress))


ROLES = Question(
    "roles",
    "What each head of a model looks at on random tokens that are repeated once, and whether it copies.",
    [MODEL],
    "For each layer and head a label, its scores, and the scores of uniform attention or random weights.",
    RolesAnswer,
    answer_roles,
    less="a smaller model",
)


class TextRolesAnswer(TextAnswer):
    """For each role, what each head gives to its keys in this text."""

    scores: RoleGrids = Described(description="`[layer][head]`: the mean weight over the queries that have such keys.")
    uniform: LookScores = Described(description="The same for uniform attention.")
    queries: LookScores = Described(description="How many queries have such keys.")


def answer_text_roles(inquiry: Inquiry, progress: Progress) -> Answer:
    return roles_in_text(inquiry.text, progress=progress).to_dict()


TEXT_ROLES = Question(
    "text-roles",
    "How well each head of a model fits each role in a text, instead of random tokens.",
    [PROMPT, MODEL, HEAD_MASK],
    "For each role the mean attention weight on its keys by layer and head, the same for uniform attention, and the "
    "number of queries that have such keys.",
    TextRolesAnswer,
    answer_text_roles,
)

TEXT_ROLES_PROMPTS = of_many(TEXT_ROLES, "text_roles")
