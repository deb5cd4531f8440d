"""Texts and their attention weights while somebody may still look at them, bounded in bytes."""

import hashlib
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from model import LoadedModel, Step
from model.reading import Reading
from model.recording import Recording, last_rows, n_pictures, picture, triangle
from model.ticket import PromptPart

from .readings import Readings
from .settings import MAX_CACHED_BYTES, MAX_CACHED_RUNS, MAX_FRESH_BYTES, MAX_RUN_BYTES, UPDATE_SECONDS

LEAST_SECONDS = 2 * UPDATE_SECONDS  # from which a speed is told


class Run:
    """One text of one model with what its heads looked at.

    ``ids`` grows while the text is written. ``recording`` has a row for each token that was read: all of them in the
    end, except a last one for which the context has no room. ``n_prompt`` of the tokens were typed; of a branch or of a
    run that is computed anew, more than those are ``given``.
    """

    def __init__(
        self,
        run_id: str,
        gpt: LoadedModel,
        readings: Readings,
        given: Sequence[int],
        capacity: int,
        n_prompt: int | None = None,
    ) -> None:
        config = gpt.config
        self.id, self.gpt, self.readings, self.given = run_id, gpt, readings, len(given)
        self.n_prompt = self.given if n_prompt is None else n_prompt
        self.ids = list(given)
        self.logprobs: list[float | None] = [None] * self.given
        # While it is written its newest logits are looked at, which then need no pass through the model.
        self.fresh: deque[tuple[int, Tensor]] = deque(maxlen=max(1, MAX_FRESH_BYTES // (4 * config.vocab_size)))
        self.wanted = capacity
        rows = min(capacity, config.context_length)
        keep = 4 * n_pictures(config.n_layer, config.n_head) * triangle(rows) <= MAX_RUN_BYTES
        self.recording = Recording(config.n_layer, config.n_head, rows, keep_weights=keep)
        self.earlier, self.n_earlier = "", 0  # text and number of the tokens that the context has no room for any more
        self.writing = False
        self.lock = threading.Lock()  # of the writer
        self.began = self.latest = 0.0  # when the first and the newest token were written

    @property
    def nbytes(self) -> int:
        return self.recording.nbytes

    def take(self, event: PromptPart | Step, last: bool = False) -> None:
        """Keep what was read and the token that was written; of the ``last`` step, which only reads, no token."""
        with self.lock:
            if self.writing:
                self.keep(event, last)

    def keep(self, event: PromptPart | Step, last: bool) -> None:
        if isinstance(event, PromptPart):
            self.logprobs[event.start + 1 : event.start + 1 + len(event.logprobs)] = event.logprobs
            if event.attention is not None:
                self.recording.extend(event.attention)
            return
        if event.attention is not None and event.attention.shape[-1] > self.recording.n_rows:
            self.recording.append(event.attention)
        if event.logits is not None:
            self.fresh.append((len(self.ids) - 1, event.logits))
        ended = event.token_id == self.gpt.eos_token_id
        if not last and not ended and len(self.ids) < self.wanted:
            self.logprobs.append(event.logprob)
            self.ids.append(event.token_id)
            self.latest = time.perf_counter()
            self.began = self.began or self.latest

    def end(self) -> None:
        """Nothing more will be written."""
        with self.lock:
            self.recording.finish()
            self.fresh.clear()
            self.writing = False

    def read(self, least: int) -> Reading:
        """One pass over all that the model has read, at least ``least`` tokens; kept for a while."""
        return self.readings.get(self.id, self.gpt, self.ids[: self.recording.capacity], least)

    def read_all(self) -> None:
        """Recompute every row, and how probable each token was, from the token ids."""
        reading = self.read(min(len(self.ids), self.recording.capacity))
        for layer in range(self.gpt.config.n_layer):
            self.recording.extend(reading.attention(layer)[None], range(layer, layer + 1))
        self.logprobs[1 : len(reading.ids)] = reading.logprobs()

    def head(self, layer: int, column: int, start: int) -> bytes:
        """The float32 weights of one picture (``Recording.index``), rows ``start`` to the newest."""
        n_layer, n_head = self.gpt.config.n_layer, self.gpt.config.n_head

        def recompute(n_rows: int) -> Tensor:
            reading = self.read(n_rows)
            if layer == n_layer:
                needed = range(n_layer)
            else:
                needed = range(layer + 1) if column == n_head + 1 else range(layer, layer + 1)
            return picture((reading.attention(i, n_rows) for i in needed), column, n_head)

        return self.recording.head(layer, column, start, recompute)

    def query(self, query: int) -> bytes:
        """The float32 weights that one query has in every picture, ``(n_pictures, query + 1)``."""

        def recompute(n_rows: int) -> Tensor:
            reading = self.read(n_rows)
            return last_rows(reading.attention(layer, n_rows) for layer in range(self.gpt.config.n_layer))

        return self.recording.query(query, recompute)

    def logits(self, position: int) -> bytes:
        """The float32 logits that followed the token at ``position``, from which the next one was drawn."""
        for place, logits in list(self.fresh):
            if place == position:
                return logits.cpu().numpy().tobytes()
        return self.read(position + 1).logits(position, position + 1)[0].numpy().tobytes()

    def frame(self, start: int) -> tuple[dict[str, Any], bytes]:
        """What a browser that has ``start`` rows lacks: tokens, and the bytes of all metrics and of the thumbnails."""
        rows, factor, first, data = self.recording.thumbnails(start)
        metrics = self.recording.metrics()
        n_tokens = len(self.ids)  # the writer goes on meanwhile: at least as many as the rows
        tokens = self.gpt.tokens(self.ids[start:n_tokens])
        return {
            "rows": rows,
            "factor": factor,
            "first": first,
            "start": start,
            "pictures": self.recording.n_pictures,
            "tokens": [token.text for token in tokens],
            "ids": [token.id for token in tokens],
            "logprobs": self.logprobs[start:n_tokens],
        }, metrics.numpy().tobytes() + data

    @property
    def tokens_per_second(self) -> float:
        """Of all tokens but the first, for which the prompt had to be read and others may have been waited for.

        0 until it can be told: tokens are taken here several at a time.
        """
        seconds = self.latest - self.began
        return (len(self.ids) - self.given - 1) / seconds if seconds >= LEAST_SECONDS else 0.0


class Runs:
    """The runs of all visitors by id, at most ``max_bytes`` of them: the one longest unused goes first.

    A run that is being written stays, as the engines bound how many there are.
    """

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES) -> None:
        self.max_bytes = max_bytes
        self.runs: OrderedDict[str, Run] = OrderedDict()
        self.readings = Readings()
        self.lock = threading.Lock()
        self.reading = threading.Lock()

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in list(self.runs.values()))  # while others come and go

    def new(self, gpt: LoadedModel, given: Sequence[int], max_new_tokens: int, n_prompt: int | None = None) -> Run:
        """A run that is about to be written; its id cannot be guessed."""
        run = Run(secrets.token_urlsafe(16), gpt, self.readings, given, len(given) + max_new_tokens, n_prompt)
        run.writing = True
        self.add(run)
        return run

    def shifted(self, before: Run, ids: Sequence[int]) -> Run:
        """The run that goes on with ``ids``, the last ones of a run whose context was full."""
        n_dropped = len(before.ids) - len(ids)
        n_left = before.wanted - len(before.ids)
        run = self.new(before.gpt, ids, n_left, max(0, before.n_prompt - n_dropped))
        run.earlier = before.earlier + before.gpt.tokenizer.decode(before.ids[:n_dropped])
        run.n_earlier = before.n_earlier + n_dropped
        return run

    def add(self, run: Run) -> None:
        with self.lock:
            self.runs[run.id] = run
            self.trim(run)

    def trim(self, newest: Run) -> None:
        idle = [run for run in self.runs.values() if not run.writing and run is not newest]
        for run in idle:
            if self.nbytes <= self.max_bytes and len(self.runs) <= MAX_CACHED_RUNS:
                return
            del self.runs[run.id]

    def get(self, run_id: str) -> Run | None:
        with self.lock:
            if run_id in self.runs:
                self.runs.move_to_end(run_id)
            return self.runs.get(run_id)

    def reread(self, gpt: LoadedModel, ids: Sequence[int], n_prompt: int) -> Run:
        """The run of these token ids, recomputed unless it is still here."""
        run_id = hashlib.sha256(f"{gpt.sha256}:{n_prompt}:{list(ids)}".encode()).hexdigest()
        with self.reading:  # several requests for one lost run arrive together: read it once
            if run := self.get(run_id):
                return run
            run = Run(run_id, gpt, self.readings, ids, len(ids), min(n_prompt, len(ids)))
            run.read_all()
            run.end()
            self.add(run)
            return run
