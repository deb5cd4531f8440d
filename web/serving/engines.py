"""The engines of the served models, each in its own thread."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from model import GenerationRequest, LoadedModel
from model.errors import Closed
from model.gpt import GPT
from model.serving.engine import Engine
from model.serving.reader import Reader
from model.serving.text_engine import TextEngine

from ..prometheus import Metrics
from ..settings import LEAST_BATCH, MEGABYTE, Limits
from .engine_addresses import EngineAddress
from .engine_client import check_supported
from .generation import Generation, Pace
from .process_memory import trim_heap
from .remote_engine import RemoteEngine
from .served_models import PRIVATE_PREFIX
from .zero_gpu import ZeroGpuEngine

log = logging.getLogger(__name__)

MakeReader = Callable[[GPT, int], Reader | None]

MOST_BATCH = 128  # texts that a small model writes at once
CACHE_BYTES = 400 * MEGABYTE  # for the keys and values of all texts, where more than the least are written


class Engines:
    """One engine per model, created when it is first needed."""

    def __init__(
        self,
        limits: Limits,
        metrics: Metrics,
        elsewhere: Mapping[str, EngineAddress] | None = None,
        make_reader: MakeReader | None = None,
        *,
        zero_gpu: bool = False,
    ) -> None:
        """``elsewhere`` maps the names of models to the remote engines that write for them.

        ``make_reader`` makes a faster reader for a model and a number of texts, if possible. It runs in its own thread;
        until it is done, torch reads.
        """
        self.limits, self.metrics, self.elsewhere, self.zero_gpu = limits, metrics, elsewhere or {}, zero_gpu
        self.make_reader = make_reader
        self.engines: dict[LoadedModel, TextEngine[Any]] = {}
        self.gpu_engines: dict[LoadedModel, TextEngine[Any]] = {}  # on ZeroGPU, for texts requested by a Gradio event
        self.threads: list[threading.Thread] = []
        self.tidy_up: Callable[[], None] = trim_heap
        self.lock = threading.Lock()
        self.closed = False

    def generate(
        self,
        loaded: LoadedModel,
        *requests: GenerationRequest,
        client: Hashable,
        route: str,
        pace: Pace = 0.0,
        in_event: bool = False,
    ) -> Generation:
        """Write texts: ``async with engines.generate(...) as generation``, then ``async for events in generation``.

        Texts of one ``client`` share its turns; the outcome is counted for ``route``. After the first, events are
        handed out at most every ``pace`` seconds, a number or what it is for the texts so far. ``in_event`` says that a
        Gradio event made the request: ZeroGPU has a GPU only there.
        """
        return Generation(
            self.engine_for(loaded, in_event=in_event),
            requests,
            client=client,
            deadline=time.monotonic() + self.limits.max_seconds,
            pace=pace,
            route=route,
            metrics=self.metrics,
        )

    def engine_for(self, loaded: LoadedModel, *, in_event: bool = False) -> TextEngine[Any]:
        on_gpu = in_event and self.zero_gpu and not self.writes_elsewhere(loaded)
        with self.lock:
            if loaded not in (self.gpu_engines if on_gpu else self.engines):
                self.add(loaded, self.new_engine(loaded, on_gpu), on_gpu=on_gpu)
            return (self.gpu_engines if on_gpu else self.engines)[loaded]

    def new_engine(self, loaded: LoadedModel, on_gpu: bool) -> TextEngine[Any]:
        max_batch, max_waiting = self.limits.max_batch, self.limits.max_waiting
        if on_gpu:
            return ZeroGpuEngine(loaded, max_waiting=max_waiting)
        if address := self.elsewhere.get(loaded.name):
            return RemoteEngine(loaded, address, max_batch=max_batch or LEAST_BATCH, max_waiting=max_waiting)
        return Engine(loaded, max_batch=max_batch or best_batch(loaded), max_waiting=max_waiting)

    def writes_elsewhere(self, loaded: LoadedModel) -> bool:
        """Whether another engine writes for this model."""
        return loaded.name in self.elsewhere

    def check(self, loaded: LoadedModel, *requests: GenerationRequest, same_ids: bool = True) -> None:
        """Raise ``InputError`` if this model's engine cannot handle a request; see ``check_supported``."""
        for request in requests if self.writes_elsewhere(loaded) else ():
            check_supported(loaded, request, same_ids=same_ids)

    def add(self, loaded: LoadedModel, engine: TextEngine[Any], *, on_gpu: bool = False) -> None:
        (self.gpu_engines if on_gpu else self.engines)[loaded] = engine
        if self.closed:
            engine.close()
        thread = threading.Thread(target=engine.run, name=f"engine of {loaded.name}", daemon=True)
        self.threads.append(thread)
        thread.start()
        if self.make_reader and isinstance(engine, Engine):
            threading.Thread(target=self.speed_up, args=(engine,), name=f"reader of {loaded.name}", daemon=True).start()

    def prepare(self, models: Iterable[LoadedModel]) -> None:
        """Start making the faster readers of these models, so that they are ready for the first request."""
        if self.make_reader:
            for loaded in models:
                self.engine_for(loaded)

    def speed_up(self, engine: Engine) -> None:
        """Give an engine its faster reader once that is ready; texts that have begun keep their reader."""
        assert self.make_reader
        try:
            reader = self.make_reader(engine.loaded.gpt, engine.max_batch)
        except Exception:
            log.exception("%s writes with torch alone: its compiled loops could not be built", engine.loaded.name)
            return
        self.tidy_up()  # frees the memory that was needed to make it
        if reader:
            engine.use(reader)
            if engine.closed:
                reader.close()

    def remove(self, loaded: LoadedModel) -> None:
        """Close the engine of a model that is no longer served, and end its texts."""
        with self.lock:
            removed = [engines.pop(loaded, None) for engines in (self.engines, self.gpu_engines)]
        for engine in filter(None, removed):
            engine.close()

    def are_busy(self) -> bool:
        """Whether any text is being written."""
        return any(engine.active for _, engine in self.all())

    def all(self) -> list[tuple[LoadedModel, TextEngine[Any]]]:
        """Every engine with its model; a model may have two."""
        return [*self.engines.items(), *self.gpu_engines.items()]

    def check_open(self) -> None:
        """Raise ``Closed`` if new requests are no longer accepted."""
        if self.closed:
            raise Closed

    def close(self, grace: float = 0.0) -> None:
        """Accept no more requests, give running ones ``grace`` seconds to finish, and return when all have ended."""
        with self.lock:
            self.closed = True
            for _, engine in self.all():
                engine.close(grace)
        until = time.monotonic() + grace + 5.0  # the step in progress may take long
        for thread in self.threads:
            while thread.is_alive() and (left := until - time.monotonic()) > 0:
                # Short waits, since a second signal that arrives just before one is handled after it.
                thread.join(min(left, 1.0))


def best_batch(loaded: LoadedModel) -> int:
    """How many texts a model should write at once: from ``LEAST_BATCH`` to ``MOST_BATCH``, within ``CACHE_BYTES``.

    A crowd's texts are written faster together than in turns. Visitors' own models, of which there may be many, get the
    least; so do models on a GPU, which computes all slots of the batch at every step.
    """
    if loaded.device.type != "cpu" or loaded.name.startswith(PRIVATE_PREFIX):
        return LEAST_BATCH
    config = loaded.config
    numbers = 2 * config.n_layer * config.n_kv_head * config.head_dim * config.context_length
    return max(LEAST_BATCH, min(MOST_BATCH, CACHE_BYTES // (4 * numbers)))
