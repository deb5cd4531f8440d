"""Keeps texts and their attention weights while visitors may look at them, up to a limit in bytes."""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from torch import Tensor

from model import LoadedModel, Step
from model.serving.sequence import ContextShift, Cut, Event, PromptPart, is_last
from model.serving.threads import compute_alone

from ..serving.bounded_cache import BoundedCache
from ..settings import MIN_RUN_BYTES, MIN_RUN_PASS_BYTES
from .exact import ExactNumbers
from .run import Run

MAX_CACHED_RUNS = 1_000


class Runs:
    """The runs of all visitors by id, with the passes they were read with, up to ``max_bytes`` and ``spare()`` more.

    Of those used least recently, first the weights are released and only thumbnails are kept; then they are evicted. A
    run that is being written is neither counted nor evicted: whoever writes it holds a part of the memory budget.
    Passes may take half of the spare bytes before any of them is evicted: a pass is a fraction of the weights that it
    replaces, and while all of them fit, a text is read again once, not whenever a head is opened.
    """

    def __init__(
        self,
        max_bytes: int = MIN_RUN_BYTES,
        may_see: Callable[[str], bool] = lambda _name: True,
        spare: Callable[[], int] = lambda: 0,
    ) -> None:
        self.may_see = may_see
        self.secret = secrets.token_bytes(16)  # keeps others from computing the id of a run
        # Records texts that are being written, and encodes frames: much work in small pieces. More threads would mostly
        # wait for Python's lock, and make others wait. A text's first piece has a thread of its own, to be shown soon.
        self.recorder = ThreadPoolExecutor(1, "recorder", initializer=compute_alone)
        self.first_recorder = ThreadPoolExecutor(1, "first recorder", initializer=compute_alone)
        self.exact = ExactNumbers(lambda: MIN_RUN_PASS_BYTES + spare() // 2, on_read=lambda: self.cache.trim())
        self.cache = BoundedCache[str, Run](
            max_entries=MAX_CACHED_RUNS,
            max_bytes=lambda: max_bytes + spare() - max(0, self.exact.text_passes.nbytes - MIN_RUN_PASS_BYTES),
            size=lambda run: 0 if run.writing else run.nbytes,
            can_evict=lambda run: not run.writing,
            shrink=Run.release_weights,
            on_evict=self.exact.forget,
        )

    def new(
        self,
        loaded: LoadedModel,
        given: Sequence[int],
        max_new_tokens: int,
        n_prompt: int | None = None,
        head_mask: Tensor | None = None,
    ) -> Run:
        """A run that is about to be written, with an id that cannot be guessed."""
        run = Run(secrets.token_urlsafe(16), loaded, given, len(given) + max_new_tokens, n_prompt, head_mask)
        run.writing = True
        self.cache.put(run.id, run)
        return run

    def shifted(self, before: Run, ids: Sequence[int]) -> Run:
        """The run that continues with ``ids``, the last tokens of a run whose context was full."""
        n_dropped = len(before.ids) - len(ids)
        n_left = before.target_length - len(before.ids)
        run = self.new(before.loaded, ids, n_left, max(0, before.n_prompt - n_dropped), before.head_mask)
        run.drop_beginning(before, before.ids[:n_dropped])
        if not before.recording.keeps_weights:
            run.release_weights()
        return run

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes + self.exact.text_passes.nbytes

    def trim(self) -> None:
        """Release what exceeds the limits, because there is less spare memory than before."""
        self.exact.text_passes.trim()
        self.cache.trim()

    def end(self, run: Run) -> None:
        """Mark a run as complete. It may be evicted from now on, but starts as the most recently used."""
        run.end()
        self.cache.get(run.id)  # now the most recently used
        self.cache.trim()

    def get(self, run_id: str) -> Run | None:
        """The run with this id, or None if it is not cached or belongs to another visitor's model."""
        run = self.cache.get(run_id)
        return run if run is not None and self.may_see(run.loaded.name) else None

    def forget(self, name: str) -> None:
        """Remove the runs of a model that is no longer served and of its snapshots."""
        self.remove(lambda loaded: loaded.name.partition("@")[0] == name)

    def forget_read_with(self, loaded: LoadedModel) -> None:
        """Remove the runs that keep these weights in memory. A run that is requested again is recomputed."""
        self.remove(lambda other: other is loaded, even_if_writing=False)

    def remove(self, is_gone: Callable[[LoadedModel], bool], *, even_if_writing: bool = True) -> None:
        def is_removed(_run_id: str, run: Run | None) -> bool:
            if run is None:  # It is being recomputed; its model is unknown here, so it is never cached. This is rare.
                return True
            return is_gone(run.loaded) and (even_if_writing or not run.writing)

        self.cache.remove(is_removed)
        self.exact.forget_models(is_gone)

    def recompute(self, loaded: LoadedModel, ids: Sequence[int], n_prompt: int, head_mask: Tensor | None = None) -> Run:
        """The run of these token ids, read with ``head_mask``: the cached one, or else recomputed."""
        mask = "" if head_mask is None else head_mask.tolist()
        text = f"{loaded.name}:{loaded.sha256}:{n_prompt}:{list(ids)}:{mask}"
        run_id = hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()

        def compute() -> Run:
            run = Run(run_id, loaded, ids, len(ids), min(n_prompt, len(ids)), head_mask)
            run.fill(self.exact.text_pass(run, len(run.readable_ids)))
            run.end()
            return run

        return self.cache.get_or_compute(run_id, compute)


class RunWriter:
    """Records the events of one text in its ``run``, which each context shift replaces with a new one.

    Any thread may call ``end``.
    """

    def __init__(self, runs: Runs, run: Run) -> None:
        self.runs, self.run = runs, run
        self.run_ids = [run.id]
        self.ended = False
        self.cut: str | None = None  # why the text was cut off, if it was
        self.lock = threading.Lock()

    def take(self, events: list[tuple[int, Event]], stopped: bool) -> None:
        """Record events. Once the text is ``stopped``, its last step only reads."""
        with self.lock:
            for _, event in events:
                if self.ended:
                    return
                if isinstance(event, ContextShift):
                    self.runs.end(self.run)
                    self.run = self.runs.shifted(self.run, event.ids)
                    self.run_ids.append(self.run.id)
                elif isinstance(event, PromptPart | Step):
                    self.run.take(event, last=stopped and is_last(event))
                elif isinstance(event, Cut):
                    self.cut = event.reason

    def end(self) -> None:
        """Nothing more will be written."""
        self.ended = True  # before the lock is taken, so that a ``take`` that holds it returns early
        with self.lock:
            self.runs.end(self.run)
