"""One text of one model, with its recorded attention."""

import codecs
import threading
import time
from collections import deque
from collections.abc import Sequence

from torch import Tensor

from model import LoadedModel, Step
from model.drawing.frame import encode_frame
from model.drawing.pictures import GrowingRollout, n_pictures
from model.drawing.recording import Recording
from model.drawing.weight_buffer import triangle
from model.lens.text_pass import TextPass
from model.serving.sequence import PromptPart

MAX_RUN_BYTES = 9_000_000  # of a larger run, only thumbnails and a few heads are kept; the rest is recomputed
MAX_ROLLOUT_BYTES = 64_000_000  # while a text is written; rollouts of a longer one are computed when they are opened
FILLED_WEIGHTS = 8_000_000  # of a layer at a time
MAX_RECENT_LOGITS_BYTES = 8_000_000  # newest logits of a text being written: over half a second of GPT-2's

MIN_SECONDS = 0.4  # a shorter span gives no reliable rate, so none is shown


class Run:
    """One text of one model, with its recorded attention.

    ``ids`` grows while the text is written. ``recording`` has a row for each token that was read: in the end all of
    them, except a last one for which the context has no room. ``n_prompt`` of the tokens were typed; a branch or a
    recomputed run is ``given`` more tokens than those. ``head_mask`` ``(n_layer, n_head)``, if any, scaled the heads'
    context vectors while the text was read.
    """

    def __init__(
        self,
        run_id: str,
        loaded: LoadedModel,
        given: Sequence[int],
        capacity: int,
        n_prompt: int | None = None,
        head_mask: Tensor | None = None,
    ) -> None:
        config = loaded.config
        self.head_mask = head_mask
        self.id, self.loaded, self.n_given = run_id, loaded, len(given)
        self.n_prompt = self.n_given if n_prompt is None else n_prompt
        self.ids = list(given)
        self.logprobs: list[float | None] = [None] * self.n_given
        # Visitors look at the newest logits of a text while it is written: kept here, they need no pass of the model.
        n_recent = max(1, MAX_RECENT_LOGITS_BYTES // (4 * config.vocab_size))
        self.recent_logits: deque[tuple[int, Tensor]] = deque(maxlen=n_recent)
        self.target_length = capacity
        rows = min(capacity, config.context_length)
        keep = 4 * n_pictures(config.n_layer, config.n_head) * triangle(rows) <= MAX_RUN_BYTES
        has_rollout = GrowingRollout.nbytes(config.n_layer, rows) <= MAX_ROLLOUT_BYTES
        self.recording = Recording(config.n_layer, config.n_head, rows, keep_weights=keep, has_rollout=has_rollout)
        # Text and number of the tokens that context shifts have dropped; a character may be split between two shifts.
        self.earlier, self.n_earlier = "", 0
        self.earlier_decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.writing = False
        self.lock = threading.Lock()  # of the writer
        self.began = self.latest = 0.0  # when the first and the newest token were written

    @property
    def nbytes(self) -> int:
        return self.recording.nbytes

    def release_weights(self) -> None:
        """Keep only thumbnails and the head that was opened last; others are recomputed if requested."""
        self.recording.release_weights()

    @property
    def most_bytes(self) -> int:
        """The maximum number of bytes that the run takes while it is being written."""
        logits = (self.recent_logits.maxlen or 0) * self.loaded.config.vocab_size
        return (
            self.nbytes
            + self.recording.working_bytes
            + 4 * min(logits, self.target_length * self.loaded.config.vocab_size)
        )

    def drop_beginning(self, before: "Run", dropped: Sequence[int]) -> None:
        """Continue the run ``before`` without its first tokens, ``dropped``."""
        tokenizer = self.loaded.tokenizer
        raw = map(tokenizer.token_bytes, dropped) if before.n_earlier else tokenizer.text_bytes(dropped)
        self.earlier_decoder = before.earlier_decoder
        self.earlier = before.earlier + self.earlier_decoder.decode(b"".join(raw))
        self.n_earlier = before.n_earlier + len(dropped)

    @property
    def readable_ids(self) -> list[int]:
        """The tokens that the model can read: all but a last one for which the context has no room."""
        return self.ids[: self.recording.capacity]

    def n_written(self, n_given: int) -> int:
        """How many tokens follow the first ``n_given``, with those that a context shift has dropped."""
        return self.n_earlier + len(self.ids) - n_given

    def take(self, event: PromptPart | Step, last: bool = False) -> None:
        """Record an event of the text. The ``last`` step only reads, so the token that it drew is dropped."""
        with self.lock:
            if self.writing and isinstance(event, PromptPart):
                self.take_prompt(event)
            elif self.writing and isinstance(event, Step):
                self.take_step(event, last)

    def take_prompt(self, part: PromptPart) -> None:
        self.logprobs[part.start + 1 : part.start + 1 + len(part.logprobs)] = part.logprobs
        if part.attention is not None:
            self.recording.extend(part.attention)

    def take_step(self, step: Step, last: bool) -> None:
        if step.attention is not None and step.attention.shape[-1] > self.recording.n_rows:
            self.recording.append(step.attention)
        if step.logits is not None:
            self.recent_logits.append((len(self.ids) - 1, step.logits))
        ended = step.token_id in self.loaded.end_token_ids
        if not last and not ended and len(self.ids) < self.target_length:
            self.logprobs.append(step.logprob)
            self.ids.append(step.token_id)
            self.latest = time.perf_counter()
            self.began = self.began or self.latest

    def end(self) -> None:
        """Nothing more will be written."""
        with self.lock:
            self.recording.finish()
            self.recent_logits.clear()
            self.writing = False

    def fill(self, text_pass: TextPass) -> None:
        """Recompute every row, and how probable each token was, from one pass over ``readable_ids``."""
        T, config = len(text_pass.ids), self.loaded.config
        at_once = max(1, FILLED_WEIGHTS // (config.n_head * T))
        for first in range(0, T, at_once):
            for layer in range(config.n_layer):
                rows = text_pass.attention(layer, min(first + at_once, T), first=first)
                self.recording.extend(rows[None], range(layer, layer + 1))
        self.logprobs[1:] = text_pass.logprobs(self.ids[len(text_pass.ids) :])

    def frame(self, start: int, until: int | None = None) -> bytes:
        """The frame of the rows from ``start`` on, up to about row ``until`` if that is given."""
        thumbnails, metrics = self.recording.thumbnails(start, until), self.recording.metrics(until)
        # Read after the rows: the writer may add to both meanwhile, and no row may lack its token.
        n_tokens = len(self.ids)
        tokens = self.loaded.text_tokens(self.ids[:n_tokens], start)
        return encode_frame(thumbnails, metrics, start, tokens, self.logprobs[start:n_tokens])

    @property
    def tokens_per_second(self) -> float:
        """The writing speed, without the first token, which had to wait for the prompt and perhaps for other texts.

        0 until it can be measured: several tokens arrive here at a time.
        """
        seconds = self.latest - self.began
        return (len(self.ids) - self.n_given - 1) / seconds if seconds >= MIN_SECONDS else 0.0
