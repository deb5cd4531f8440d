"""Inquiries of Ask: their computation, and the caches of answers and passes."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from torch import Tensor

from model import InputError, LoadedModel
from model.errors import Busy, Closed
from model.gpt import GPT
from model.lens.float32 import served_difference
from model.lens.interventions.reference import mean_contexts
from model.lens.lens import Lens
from model.lens.text_pass import Text, TextPass

from ..bounded_cache import BoundedCache
from ..prometheus import Metrics
from ..settings import MAX_ANSWER_BYTES, MAX_ASK_PASS_BYTES, MEGABYTE, Limits
from .disk_cache import DiskCache
from .float32_copies import Float32Copies
from .turns import Job, OutOfTime, Turns

PROGRESS_SECONDS = 0.1  # between two reports of a computation's progress
MAX_DIFFERENCES = 1_000  # cached numbers
MAX_MEANS = 16  # cached means over reference sets, each the size of one token's context vectors

Content = dict[str, Any]  # JSON, with NumPy arrays in place of lists of numbers


@dataclass(frozen=True, eq=False)
class Inquiry:
    """A question whose fields have been checked: its models, and its text unless it is about a model alone."""

    ask: "Ask"
    models: dict[str, LoadedModel]  # keyed by the field that names them
    ids: tuple[int, ...]
    head_mask: Tensor | None  # (n_layer, n_head)
    values: dict[str, Any]  # of all other fields, as JSON
    rows: list[Content] = field(default_factory=list)  # those computed so far, of a question about many prompts

    @property
    def loaded(self) -> LoadedModel:
        return self.models["model"]

    @property
    def lens(self) -> "CachedLens":
        """The model that the question is about, with the head mask."""
        return self.lens_of(self.loaded)

    def lens_of(self, loaded: LoadedModel) -> "CachedLens":
        return CachedLens(self.ask, loaded, self.head_mask)

    def precision(self) -> Content:
        """The precision of the answer and of the served model, and how much a difference between the two matters."""
        served = str(self.loaded.dtype).removeprefix("torch.")
        if served == "float32" or not self.ids:
            return {"computed": "float32", "served": served}
        difference = self.ask.served_difference(self.loaded, self.lens.read(self.ids))
        return {"computed": "float32", "served": served, "largest_difference": difference}

    def key(self, question: str) -> Hashable:
        """A key under which answers are cached: inquiries with the same key have the same answer."""
        values = hashlib.sha256(orjson.dumps(self.values, option=orjson.OPT_SORT_KEYS)).digest()
        models = [(field, identity(each), each.name) for field, each in sorted(self.models.items())]
        return question, *models, self.ids, mask_bytes(self.head_mask), values


def identity(loaded: LoadedModel) -> Hashable:
    """A key for the weights of a model as they are served: models with the same key give the same answers."""
    return loaded.sha256 or id(loaded), str(loaded.dtype), str(loaded.device)


def mask_bytes(head_mask: Tensor | None) -> bytes | None:
    return None if head_mask is None else head_mask.cpu().numpy().tobytes()


class CachedLens(Lens):
    """A lens that keeps what it reads, in float32, and reads every text with the same head mask."""

    def __init__(self, ask: "Ask", loaded: LoadedModel, head_mask: Tensor | None = None) -> None:
        super().__init__(loaded)
        self.ask, self.loaded, self.head_mask = ask, loaded, head_mask

    @property
    def gpt(self) -> GPT:
        return self.ask.gpt(self.loaded)

    def read(self, text: Text) -> TextPass:
        return self.pass_over(self.parse(text), self.head_mask)

    def pass_over(self, ids: Sequence[int], head_mask: Tensor | None) -> TextPass:
        return self.ask.text(self.loaded, tuple(ids), head_mask)

    def mean_contexts(self, texts: Sequence[Sequence[int]], head_mask: Tensor | None) -> Tensor:
        return self.ask.mean_contexts(self.loaded, texts, head_mask)


class Ask:
    """Computes answers, a few at a time for all models together, and caches answers, passes and float32 copies."""

    def __init__(self, limits: Limits, metrics: Metrics, cache: Path | None = None) -> None:
        self.metrics, self.disk, self.limits = metrics, DiskCache(cache), limits
        self.turns = Turns(limits.max_questions, limits.max_waiting, limits.max_question_seconds)
        self.copies = Float32Copies(limits.max_float32_mb * MEGABYTE, self.forget_texts)
        self.texts: BoundedCache[Any, TextPass] = BoundedCache(
            max_bytes=MAX_ASK_PASS_BYTES, size=lambda text: text.nbytes
        )
        self.answers: BoundedCache[Hashable, bytes] = BoundedCache(max_bytes=MAX_ANSWER_BYTES, size=len)
        self.differences: BoundedCache[Hashable, float] = BoundedCache(max_entries=MAX_DIFFERENCES)
        self.means: BoundedCache[Hashable, Tensor] = BoundedCache(max_entries=MAX_MEANS)

    def gpt(self, loaded: LoadedModel) -> GPT:
        """``loaded`` in float32; if it is served in another precision, a copy is made on demand."""
        return self.copies.get(identity(loaded), loaded)

    def forget(self, loaded: LoadedModel) -> None:
        """Drop everything that is kept in memory for a model."""
        self.forget_texts(identity(loaded))
        self.copies.drop(identity(loaded))

    def forget_texts(self, model: Hashable) -> None:
        """Drop the passes that were made with a model: each refers to its weights."""
        self.texts.remove(lambda key, _text: bool(key[0] == model))

    def text(self, loaded: LoadedModel, ids: tuple[int, ...], head_mask: Tensor | None) -> TextPass:
        """A pass over a text; the most recently used ones are cached."""
        gpt = self.gpt(loaded)
        key = identity(loaded), ids, mask_bytes(head_mask)
        return self.texts.get_or_compute(key, lambda: TextPass(gpt, ids, head_mask, CachedLens(self, loaded)))

    def served_difference(self, loaded: LoadedModel, text: TextPass) -> float:
        key = identity(loaded), tuple(text.ids), mask_bytes(text.head_mask)
        return self.differences.get_or_compute(key, lambda: served_difference(loaded.gpt, text))

    def mean_contexts(self, loaded: LoadedModel, texts: Sequence[Sequence[int]], head_mask: Tensor | None) -> Tensor:
        """The mean of every head over a reference set, as ``model.lens`` takes it."""
        key = identity(loaded), mask_bytes(head_mask), tuple(map(tuple, texts))
        return self.means.get_or_compute(key, lambda: mean_contexts(self.gpt(loaded), texts, head_mask))

    def close(self) -> None:
        self.turns.close()


def to_json(answer: Content) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


class PendingAnswer:
    """An answer being computed. Entering queues the computation unless the answer is cached; leaving cancels it.

    ``rows`` are those computed so far, of a question about many prompts.
    """

    def __init__(self, ask: Ask, key: Hashable, job: Job, route: str, rows: Sequence[Content]) -> None:
        self.ask, self.key, self.job, self.route, self.rows = ask, key, job, route, rows
        self.outcome = "cancelled"  # until another outcome is known

    async def __aenter__(self) -> Self:
        """Raises ``Busy`` or ``Closed``."""
        self.future = asyncio.wrap_future(self.job.done)
        # Reading the exception keeps asyncio from logging that it was never retrieved.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())
        kept = self.ask.answers.get(self.key)
        if kept is not None:
            self.job.done.set_result(kept)
            return self
        try:
            self.ask.turns.submit(self.job)
        except Exception as error:
            self.ask.metrics.count(self.route, "refused" if isinstance(error, Closed) else outcome_of(error))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.job.done.done():
            self.ask.turns.cancel(self.job)
        self.ask.metrics.count(self.route, self.outcome)

    async def progress(self) -> AsyncIterator[float]:
        """The fraction done, whenever it has changed, until the answer is ready."""
        reported = -1.0
        while not self.future.done():
            if self.job.fraction != reported:
                reported = self.job.fraction
                yield reported
            await asyncio.wait([self.future], timeout=PROGRESS_SECONDS)

    async def answer(self) -> bytes:
        """The answer as JSON. Raises what the computation raised."""
        try:
            answer = await asyncio.shield(self.future)
        except Exception as error:
            self.outcome = outcome_of(error)
            raise
        self.ask.answers.put(self.key, answer)
        self.outcome = "ok"
        return answer


def outcome_of(error: Exception) -> str:
    """The outcome's name in the metrics."""
    if isinstance(error, OutOfTime):
        return "deadline"
    return "busy" if isinstance(error, Busy) else "refused" if isinstance(error, InputError) else "failed"
