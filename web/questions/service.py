"""Questions as the routes ask them: what they are about, the computations, and the answers that are kept."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
from torch import Tensor

from model import InputError, LoadedModel
from model.gpt import GPT
from model.lens.questions.float32 import served_difference
from model.lens.questions.progress import Progress
from model.lens.questions.text_pass import TextPass
from model.serving.engine import Busy

from ..prometheus import Metrics
from ..serving.budget import MEGABYTE
from ..settings import MAX_ANSWER_BYTES, MAX_TEXT_PASS_BYTES, Limits
from .byte_cache import ByteCache
from .copies import Copies
from .disk_cache import DiskCache
from .turns import Job, OutOfTime, Turns

PROGRESS_SECONDS = 0.1  # between two reports of how far a question is
DIFFERENCES_AT_MOST = 100_000  # bytes of the cache: each takes next to none

Answer = dict[str, object]  # JSON, with NumPy arrays in the place of lists of numbers


@dataclass(frozen=True, eq=False)
class Asked:
    """What one question is about, checked: a model, and a text unless the question is about the model alone."""

    questions: "Questions"
    loaded: LoadedModel
    ids: tuple[int, ...] = ()
    head_mask: Tensor | None = None  # (n_layer, n_head)
    parameters: dict[str, Any] = field(default_factory=dict)  # JSON
    other: LoadedModel | None = None  # a second model to compare with

    @property
    def gpt(self) -> GPT:
        """The model in float32 with its weights as served."""
        return self.questions.gpt(self.loaded)

    @property
    def text(self) -> TextPass:
        """The pass over the text."""
        return self.text_of(self.ids)

    def text_of(self, ids: tuple[int, ...]) -> TextPass:
        """A pass over another text, such as the corrupted one of a pair, with the same model and head mask."""
        return self.questions.text(self.loaded, ids, self.head_mask)

    def precision(self) -> Answer:
        """In what the answer was computed, and how far what is served is from it for this text."""
        served = str(self.loaded.dtype).removeprefix("torch.")
        if served == "float32" or not self.ids:
            return {"computed": "float32", "served": served}
        difference = self.questions.served_difference(self.loaded, self.text)
        return {"computed": "float32", "served": served, "largest_difference": difference}

    def key(self, question: str) -> Hashable:
        """Questions with the same key have the same answer."""
        parameters = hashlib.sha256(orjson.dumps(self.parameters, option=orjson.OPT_SORT_KEYS)).digest()
        models = [(identity(each), each.name) for each in (self.loaded, self.other) if each]
        return question, *models, self.ids, mask_bytes(self.head_mask), parameters


def identity(loaded: LoadedModel) -> Hashable:
    """The weights of a model as they are served: models that agree in this answer alike."""
    return loaded.sha256 or id(loaded), str(loaded.dtype), str(loaded.device)


def mask_bytes(head_mask: Tensor | None) -> bytes | None:
    return None if head_mask is None else head_mask.cpu().numpy().tobytes()


class Questions:
    """Computes answers, a few at a time for all models together, and keeps what may be asked for again."""

    def __init__(self, limits: Limits, metrics: Metrics, cache: Path | None = None) -> None:
        self.metrics, self.disk = metrics, DiskCache(cache)
        self.turns = Turns(limits.max_questions, limits.max_waiting, limits.max_seconds)
        self.gpts = Copies(limits.max_float32_mb * MEGABYTE, self.forget_texts)
        self.texts: ByteCache[TextPass] = ByteCache(MAX_TEXT_PASS_BYTES)
        self.answers: ByteCache[bytes] = ByteCache(MAX_ANSWER_BYTES)
        self.differences: ByteCache[float] = ByteCache(DIFFERENCES_AT_MOST)

    def gpt(self, loaded: LoadedModel) -> GPT:
        """``loaded`` in float32; a copy is made on demand where it is served in another precision."""
        return self.gpts.get(identity(loaded), loaded)

    def let_go(self, loaded: LoadedModel) -> None:
        """Keep nothing of a model in memory until there is a question about it."""
        self.forget_texts(identity(loaded))
        self.gpts.drop(identity(loaded))

    def forget_texts(self, model: Hashable) -> None:
        """Drop the texts that were read with a model: each holds on to its weights."""
        self.texts.drop(lambda key: key[0] == model)

    def text(self, loaded: LoadedModel, ids: tuple[int, ...], head_mask: Tensor | None) -> TextPass:
        """One pass over a text; the newest are kept."""
        gpt = self.gpt(loaded)
        key = identity(loaded), ids, mask_bytes(head_mask)
        return self.texts.get_or_make(key, lambda: TextPass(gpt, ids, head_mask), lambda text: text.nbytes)

    def served_difference(self, loaded: LoadedModel, text: TextPass) -> float:
        key = identity(loaded), tuple(text.ids), mask_bytes(text.head_mask)
        return self.differences.get_or_make(key, lambda: served_difference(loaded.gpt, text), lambda _: 100)

    def ask(
        self,
        question: str,
        asked: Asked,
        compute: Callable[[Asked, Progress], Answer],
        client: Hashable,
        route: str,
        max_seconds: float | None = None,
    ) -> "Asking":
        """``async with questions.ask(...) as asking``, then ``asking.progress()`` or ``await asking.answer()``.

        ``compute`` gives the answer to the ``question`` in a thread, unless one is kept. The outcome is counted for
        ``route``. ``max_seconds`` is how long it may take where that is not the usual time.
        """
        job = Job(client, lambda progress: to_json(compute(asked, progress)), max_seconds)
        return Asking(self, asked.key(question), job, route)

    def close(self) -> None:
        self.turns.close()


def to_json(answer: Answer) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


class Asking:
    """One question on its way: it joins those that wait on entering, unless its answer is kept, and ends on leaving."""

    def __init__(self, questions: Questions, key: Hashable, job: Job, route: str) -> None:
        self.questions, self.key, self.job, self.route = questions, key, job, route
        self.outcome = "cancelled"  # until another is known

    async def __aenter__(self) -> Self:
        """Raises ``Busy`` or ``Closed``."""
        self.future = asyncio.wrap_future(self.job.done)
        self.future.add_done_callback(lambda future: future.cancelled() or future.exception())  # nobody may ask for it
        kept = self.questions.answers.get(self.key)
        if kept is not None:
            self.job.done.set_result(kept)
            return self
        try:
            self.questions.turns.submit(self.job)
        except Exception as error:
            self.questions.metrics.count(self.route, "busy" if isinstance(error, Busy) else "refused")
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.job.done.done():
            self.questions.turns.cancel(self.job)
        self.questions.metrics.count(self.route, self.outcome)

    async def progress(self) -> AsyncIterator[float]:
        """How far it is, whenever that has changed, until the answer is there."""
        told = -1.0
        while not self.future.done():
            if self.job.fraction != told:
                told = self.job.fraction
                yield told
            await asyncio.wait([self.future], timeout=PROGRESS_SECONDS)

    async def answer(self) -> bytes:
        """The answer as JSON; raises what went wrong."""
        try:
            answer = await asyncio.shield(self.future)
        except Exception as error:
            self.outcome = outcome_of(error)
            raise
        self.questions.answers.put(self.key, answer, len(answer))
        self.outcome = "ok"
        return answer


def outcome_of(error: Exception) -> str:
    """The word for it in the metrics."""
    if isinstance(error, OutOfTime):
        return "deadline"
    return "busy" if isinstance(error, Busy) else "refused" if isinstance(error, InputError) else "failed"
