"""What answers the inquiries of Ask: their computation, and the caches of answers and passes."""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from torch import Tensor

from model import LoadedModel
from model.gpt import GPT
from model.lens.float32 import served_difference
from model.lens.interventions.reference import mean_contexts
from model.lens.lens import Lens
from model.lens.text_pass import Text, TextPass

from ..prometheus import Metrics, outcome_of
from ..serving.bounded_cache import BoundedCache
from ..settings import MAX_ANSWER_BYTES, MAX_ASK_PASS_BYTES, MEGABYTE, Limits
from .disk_cache import DiskCache
from .float32_copies import Float32Copies
from .inquiry import Content, Inquiry, identity, mask_bytes, to_json
from .question_runner import Job, QuestionRunner

PROGRESS_SECONDS = 0.1  # between two reports of a computation's progress
MAX_DIFFERENCES = 1_000  # cached numbers
MAX_MEANS = 16  # cached means over reference sets, each the size of one token's context vectors


class Answered(NamedTuple):
    """An answer, and the rows in it of a question about many prompts, as JSON."""

    body: bytes
    rows: Sequence[bytes]

    @property
    def nbytes(self) -> int:
        return len(self.body) + sum(map(len, self.rows))


class CachedLens(Lens):
    """A lens that keeps what it reads, in float32, and reads every text with the same head mask."""

    def __init__(self, service: "AnswerService", loaded: LoadedModel, head_mask: Tensor | None = None) -> None:
        super().__init__(loaded)
        self.service, self.loaded, self.head_mask = service, loaded, head_mask

    @property
    def gpt(self) -> GPT:
        return self.service.gpt(self.loaded)

    def read(self, text: Text) -> TextPass:
        return self.pass_over(self.parse(text), self.head_mask)

    def pass_over(self, ids: Sequence[int], head_mask: Tensor | None) -> TextPass:
        return self.service.text_pass(self.loaded, tuple(ids), head_mask)

    def mean_contexts(self, texts: Sequence[Sequence[int]], head_mask: Tensor | None) -> Tensor:
        return self.service.mean_contexts(self.loaded, texts, head_mask)


class AnswerService:
    """Computes answers, a few at a time for all models together, and caches answers, passes and float32 copies."""

    def __init__(self, limits: Limits, metrics: Metrics, cache: Path | None = None) -> None:
        self.metrics, self.disk, self.limits = metrics, DiskCache(cache), limits
        self.runner = QuestionRunner(limits.max_questions, limits.max_waiting, limits.max_question_seconds)
        self.copies = Float32Copies(limits.max_float32_mb * MEGABYTE, self.forget_text_passes)
        self.text_passes: BoundedCache[Any, TextPass] = BoundedCache(
            max_bytes=MAX_ASK_PASS_BYTES, size=lambda text: text.nbytes
        )
        self.answers: BoundedCache[Hashable, Answered] = BoundedCache(
            max_bytes=MAX_ANSWER_BYTES, size=lambda answered: answered.nbytes
        )
        self.differences: BoundedCache[Hashable, float] = BoundedCache(max_entries=MAX_DIFFERENCES)
        self.means: BoundedCache[Hashable, Tensor] = BoundedCache(max_entries=MAX_MEANS)

    def gpt(self, loaded: LoadedModel) -> GPT:
        """``loaded`` in float32; if it is served in another precision, a copy is made on demand."""
        return self.copies.get(identity(loaded), loaded)

    def forget(self, loaded: LoadedModel) -> None:
        """Drop everything that is kept in memory for a model."""
        self.forget_text_passes(identity(loaded))
        self.copies.drop(identity(loaded))

    def forget_text_passes(self, model: Hashable) -> None:
        """Drop the passes that were made with a model: each refers to its weights."""
        self.text_passes.remove(lambda key, _text: bool(key[0] == model))

    def text_pass(self, loaded: LoadedModel, ids: tuple[int, ...], head_mask: Tensor | None) -> TextPass:
        """A pass over a text; the most recently used ones are cached."""
        gpt = self.gpt(loaded)
        key = identity(loaded), ids, mask_bytes(head_mask)
        return self.text_passes.get_or_compute(key, lambda: TextPass(gpt, ids, head_mask, CachedLens(self, loaded)))

    def lens(self, inquiry: Inquiry, field: str = "model") -> CachedLens:
        """The model that a field of an inquiry names, with the head mask of the inquiry."""
        return CachedLens(self, inquiry.models[field], inquiry.head_mask)

    def precision(self, inquiry: Inquiry) -> Content:
        """The precision of the answer and of the served model, and how much a difference between the two matters."""
        served = str(inquiry.loaded.dtype).removeprefix("torch.")
        if served == "float32" or not inquiry.ids:
            return {"computed": "float32", "served": served}
        difference = self.served_difference(inquiry.loaded, self.lens(inquiry).read(inquiry.ids))
        return {"computed": "float32", "served": served, "largest_difference": difference}

    def served_difference(self, loaded: LoadedModel, text: TextPass) -> float:
        key = identity(loaded), tuple(text.ids), mask_bytes(text.head_mask)
        return self.differences.get_or_compute(key, lambda: served_difference(loaded.gpt, text))

    def mean_contexts(self, loaded: LoadedModel, texts: Sequence[Sequence[int]], head_mask: Tensor | None) -> Tensor:
        """The mean of every head over a reference set, as ``model.lens`` takes it."""
        key = identity(loaded), mask_bytes(head_mask), tuple(map(tuple, texts))
        return self.means.get_or_compute(key, lambda: mean_contexts(self.gpt(loaded), texts, head_mask))

    def close(self) -> None:
        self.runner.close()


class PendingAnswer:
    """An answer being computed. Entering queues the computation unless the answer is cached; leaving cancels it.

    ``rows`` are those computed so far, of a question about many prompts, or what a search has found so far.
    """

    def __init__(self, service: AnswerService, key: Hashable, job: Job, route: str, rows: list[bytes]) -> None:
        self.service, self.key, self.job, self.route, self.rows = service, key, job, route, rows
        self.outcome = "cancelled"  # until another outcome is known

    async def __aenter__(self) -> Self:
        """Raises ``Busy`` or ``Closed``."""
        self.future = asyncio.wrap_future(self.job.done)
        # Reading the exception keeps asyncio from logging that it was never retrieved.
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())
        cached = self.service.answers.get(self.key)
        if cached is not None:
            self.rows.extend(cached.rows)
            self.job.done.set_result(cached.body)
            return self
        try:
            self.service.runner.submit(self.job)
        except Exception as error:
            self.service.metrics.count(self.route, outcome_of(error))
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.job.done.done():
            self.service.runner.cancel(self.job)
        self.service.metrics.count(self.route, self.outcome)

    async def progress(self) -> AsyncIterator[bytes]:
        """JSON until the answer is ready: ``{"progress": 0..1}`` whenever it has changed, each row as ``{"row": ...}``.

        The rows of a cached answer come at once.
        """
        reported, n_sent = -1.0, 0
        while True:
            is_done = self.future.done()  # all rows are there then
            for row in (rows := self.rows[n_sent:]):
                yield b'{"row":' + row + b"}"
            n_sent += len(rows)
            if is_done:
                return
            if self.job.fraction != reported:
                reported = self.job.fraction
                yield to_json({"progress": round(reported, 4)})
            await asyncio.wait([self.future], timeout=PROGRESS_SECONDS)

    async def answer(self) -> bytes:
        """The answer as JSON. Raises what the computation raised."""
        try:
            answer = await asyncio.shield(self.future)
        except Exception as error:
            self.outcome = outcome_of(error)
            raise
        self.service.answers.put(self.key, Answered(answer, self.rows))
        self.outcome = "ok"
        return answer
