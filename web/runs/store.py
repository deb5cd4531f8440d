"""Texts and their attention weights while somebody may still look at them, bounded in bytes."""

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from torch import Tensor

from model import LoadedModel

from ..settings import MAX_CACHED_BYTES, MAX_CACHED_RUNS
from .exact import ExactNumbers
from .run import Run


class Runs:
    """The runs of all visitors by id, at most ``max_bytes`` of them: the least recently used goes first.

    A run that is being written stays; the engines bound how many there are.
    """

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES, may_see: Callable[[str], bool] = lambda _name: True) -> None:
        self.max_bytes, self.may_see = max_bytes, may_see
        self.secret = secrets.token_bytes(16)  # so that nobody else can work out the id of a run
        self.runs: OrderedDict[str, Run] = OrderedDict()
        self.exact = ExactNumbers()
        self.lock = threading.Lock()
        self.recomputing = threading.Lock()

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in list(self.runs.values()))  # while others come and go

    def new(
        self,
        loaded: LoadedModel,
        given: Sequence[int],
        max_new_tokens: int,
        n_prompt: int | None = None,
        head_mask: Tensor | None = None,
    ) -> Run:
        """A run that is about to be written; its id cannot be guessed."""
        run = Run(secrets.token_urlsafe(16), loaded, given, len(given) + max_new_tokens, n_prompt, head_mask)
        run.writing = True
        self.add(run)
        return run

    def shifted(self, before: Run, ids: Sequence[int]) -> Run:
        """The run that goes on with ``ids``, the last ones of a run whose context was full."""
        n_dropped = len(before.ids) - len(ids)
        n_left = before.target_length - len(before.ids)
        run = self.new(before.loaded, ids, n_left, max(0, before.n_prompt - n_dropped), before.head_mask)
        run.earlier = before.earlier + before.loaded.tokenizer.decode(before.ids[:n_dropped])
        run.n_earlier = before.n_earlier + n_dropped
        return run

    def add(self, run: Run) -> None:
        with self.lock:
            self.runs[run.id] = run
            self.trim(run)

    def end(self, run: Run) -> None:
        """Nothing more will be written of a run, which may make way from now on."""
        run.end()
        with self.lock:
            self.trim(run)

    def trim(self, newest: Run) -> None:
        idle = [run for run in self.runs.values() if not run.writing and run is not newest]
        for run in idle:
            if self.nbytes <= self.max_bytes and len(self.runs) <= MAX_CACHED_RUNS:
                return
            del self.runs[run.id]

    def get(self, run_id: str) -> Run | None:
        with self.lock:
            run = self.runs.get(run_id)
            if run is None or not self.may_see(run.loaded.name):
                return None
            self.runs.move_to_end(run_id)
            return run

    def forget(self, name: str) -> None:
        """Drop the runs of a model that is no longer served, and of its snapshots."""
        with self.lock:
            for run_id in [run.id for run in self.runs.values() if run.loaded.name.partition("@")[0] == name]:
                del self.runs[run_id]
                self.exact.residuals.forget(run_id)

    def forget_read_with(self, loaded: LoadedModel) -> None:
        """Drop the runs that hold on to these weights; whoever looks at one has it computed again."""
        with self.lock:
            for run_id in [run.id for run in self.runs.values() if run.loaded is loaded and not run.writing]:
                del self.runs[run_id]
                self.exact.residuals.forget(run_id)

    def recompute(self, loaded: LoadedModel, ids: Sequence[int], n_prompt: int, head_mask: Tensor | None = None) -> Run:
        """The run of these token ids, read with ``head_mask``, computed again unless it is still here."""
        mask = "" if head_mask is None else head_mask.tolist()
        text = f"{loaded.name}:{loaded.sha256}:{n_prompt}:{list(ids)}:{mask}"
        run_id = hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()
        with self.recomputing:  # several requests for one lost run arrive together: compute it once
            if run := self.get(run_id):
                return run
            run = Run(run_id, loaded, ids, len(ids), min(n_prompt, len(ids)), head_mask)
            run.fill(self.exact.read(run, len(run.readable_ids)))
            run.end()
            self.add(run)
            return run
