"""One text in the engine: its request, its state, and the events for its listener."""

import logging
import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from ..generate import Continuation, FinishReason, GenerationRequest, Step
from ..loaded import LoadedModel
from ..sampling import token_logprobs, top_logprobs
from .reader import Part, Reader, Reading

log = logging.getLogger(__name__)

NO_SLOT = -1
READING_PACE = 20.0  # tokens per second, at which the page shows a text
MAX_STEP_BYTES = 32_000_000  # of the attention weights that are recorded of one text in one step
ROWS_AT_ONCE = 8  # that the compiled loops multiply together
MAX_UNTAKEN_BYTES = 64_000_000  # of what was recorded that a listener has not taken yet


@dataclass(frozen=True, eq=False)
class PromptPart:
    """A piece of a prompt that was read, its tokens from ``start`` on.

    ``attention`` ``(n_layer, n_head, n, start + n)`` holds their attention weights where they are recorded;
    ``logprobs`` are those of the tokens that follow them in the prompt, ``top_logprobs`` those of the most probable
    tokens in the same places.
    """

    start: int
    attention: Tensor | None
    logprobs: list[float]
    top_logprobs: list[dict[int, float]]


@dataclass(frozen=True, eq=False)
class ContextShift:
    """The context was full: writing continues from ``ids``, its newer part, which is read again like a prompt.

    Reported only where attention weights are recorded; positions in later events count within ``ids``.
    """

    ids: list[int]


@dataclass(frozen=True, eq=False)
class Cut:
    """The end of a text between two tokens, with the characters that were held back.

    Texts that another engine writes always end this way, others only if they are cut off.
    """

    reason: FinishReason | Literal["deadline", "cancelled"]
    text: str

    @property
    def is_early(self) -> bool:
        return self.reason in ("deadline", "cancelled")


@dataclass(frozen=True, eq=False)
class Failure:
    """The end of a text that could not be finished."""

    error: Exception


Event = PromptPart | Step | ContextShift | Cut | Failure


def recorded_bytes(event: Event) -> int:
    """The bytes of what was recorded, in an event."""
    recorded = event.attention if isinstance(event, PromptPart) else getattr(event, "recorded", None)
    return 0 if recorded is None else recorded.nbytes


Listener = Callable[[Event], None]


def is_last(event: Event) -> bool:
    """Whether ``event`` is the last one of its text."""
    return isinstance(event, Cut | Failure) or (isinstance(event, Step) and event.finish_reason is not None)


class TextSequence(Continuation):
    """A request in progress. ``listener`` gets its events in the engine's thread, in order, up to one that ``is_last``.

    Texts of one ``client`` share its turns; ``deadline`` is on ``time.monotonic()``.
    """

    def __init__(
        self,
        request: GenerationRequest,
        loaded: LoadedModel,
        listener: Listener,
        client: Hashable = None,
        deadline: float = float("inf"),
    ) -> None:
        super().__init__(request, loaded.tokenizer, loaded.end_token_ids, loaded.config.context_length)
        self.listener, self.client, self.deadline = listener, client, deadline
        never, self.n_drawable = request.never_drawn, loaded.config.vocab_size - len(request.never_drawn)
        # Whether ``Reading.choose`` can draw: rows without a token must be the last ones of the vocabulary.
        self.is_plain = request.sampling.is_plain and (not never or never[0] == self.n_drawable)
        # All tokens to read: the prompt and the written tokens, or the newer part of these.
        self.ids = list(request.prompt)
        # How many of ``ids`` were given: the prompt, or the tokens kept by a context shift.
        self.n_given = len(self.ids)
        self.n_reported = 0  # how many of the given tokens were reported
        self.n_read = 0
        self.n_planned = 0  # how many tokens it reads in the current step
        self.row_bytes = 4 * loaded.config.n_layer * loaded.config.n_head if request.record else 0  # for each key
        # ``recorded_bytes`` of all events so far, counted by a listener that keeps events for others, and those that
        # were taken from it. Each is written by one thread.
        self.n_reported_bytes = self.n_taken_bytes = 0
        self.slot = NO_SLOT
        self.reader: Reader | None = None  # set while it is in the batch
        self.stamp = 0  # grows with each admission to the batch
        self.n_before = 0  # how many of ``ids`` there were when it was admitted
        self.requested_at = time.monotonic()
        self.first_token_at: float | None = None
        self.cancelled = False
        self.refused = False  # to make room in the queue for another client

    @property
    def is_active(self) -> bool:
        """Whether it has a slot in the batch; it waits otherwise."""
        return self.slot != NO_SLOT

    @property
    def is_leaving(self) -> bool:
        return self.cancelled or self.refused

    @property
    def n_unread(self) -> int:
        """How many tokens must be read before the next one can be written: one while it writes."""
        return len(self.ids) - self.n_read

    @property
    def seconds_ahead(self) -> float:
        """For how many seconds the written tokens keep its viewer busy; negative since they were all seen."""
        return len(self.written) / READING_PACE - (time.monotonic() - (self.first_token_at or self.requested_at))

    @property
    def may_pause(self) -> bool:
        """Whether reading it again later takes little in comparison with what it has written since it was admitted."""
        return 2 * (len(self.ids) - self.n_before) >= len(self.ids)

    @property
    def max_rows(self) -> int:
        """How many tokens it may read in a step, so that what is recorded of them takes little memory."""
        if not self.row_bytes:
            return len(self.ids)
        # The most rows with ``rows * (n_read + rows)`` weights in each head, as they see ``n_read + rows`` keys.
        weights = MAX_STEP_BYTES // self.row_bytes
        rows = (math.isqrt(self.n_read**2 + 4 * weights) - self.n_read) // 2
        return rows - rows % ROWS_AT_ONCE if rows > ROWS_AT_ONCE else max(1, rows)

    @property
    def is_stalled(self) -> bool:
        """Whether it must not read on until its listener has taken more of what was recorded."""
        return self.n_reported_bytes - self.n_taken_bytes > MAX_UNTAKEN_BYTES

    @property
    def part(self) -> Part:
        """The part to read in the current step."""
        request = self.request
        ids = self.ids[self.n_read : self.n_read + self.n_planned]
        return Part(self.slot, self.n_read, ids, self.wanted_logits, request.record, request.head_mask)

    @property
    def reports_prompt(self) -> bool:
        """Whether the current step reads prompt tokens that must be reported and have not been."""
        is_wanted = self.request.record or self.request.prompt_logprobs
        return is_wanted and self.n_reported < min(self.n_read + self.n_planned, self.n_given)

    @property
    def wanted_logits(self) -> list[bool]:
        """For which of the planned tokens the following logits are needed."""
        if self.request.prompt_logprobs and self.reports_prompt:
            return [True] * self.n_planned
        return [False] * (self.n_planned - 1) + [self.n_planned == self.n_unread]

    def plan(self, n: int) -> None:
        """Read ``n`` tokens in the current step."""
        self.n_planned = n

    def advance(self) -> None:
        """Go on after the planned tokens, which were read."""
        self.n_read += self.n_planned

    def start_after(self, n: int) -> None:
        """Read from token ``n`` on: the reader has the keys and values of the tokens before it."""
        self.n_read = n

    def count_reported(self, n_bytes: int) -> None:
        """Count ``recorded_bytes`` of an event that the listener keeps for others."""
        self.n_reported_bytes += n_bytes

    def count_taken(self, n_bytes: int) -> None:
        """Count those of an event that was taken from the listener."""
        self.n_taken_bytes += n_bytes

    def cancel(self) -> None:
        """Leave at the next step. Can be called from any thread."""
        self.cancelled = True

    def stop_soon(self) -> None:
        """End with the next token, or at once if the text is waiting. Can be called from any thread."""
        if not self.is_active:
            self.cancel()
        else:
            self.max_new_tokens = min(self.max_new_tokens, len(self.written) + 1)

    def report(self, event: Event) -> None:
        """Pass an event to the listener; if the listener fails, only its own text ends."""
        try:
            self.listener(event)
        except Exception:
            log.exception("the listener of a text failed")
            self.cancelled = True

    def clear(self) -> None:
        """Clear its slot in the cache, which may contain values that are not finite."""
        if self.reader:
            self.reader.clear(self.slot, len(self.ids))

    def report_prompt(self, logits: Tensor, attention: Tensor | None) -> None:
        """Report the prompt tokens of this step, from ``logits`` ``(n_planned, vocab_size)`` and their weights."""
        start, request = self.n_read, self.request
        first, end = max(start, self.n_reported), min(start + self.n_planned, self.n_given)
        followers = self.ids[first + 1 : min(end + 1, self.n_given)] if request.prompt_logprobs else []
        logits = logits[first - start :][: len(followers)]
        self.n_reported = end
        part = PromptPart(
            start=first,
            attention=None if attention is None else attention[:, :, first - start : end - start, :end],
            logprobs=token_logprobs(logits, followers),
            top_logprobs=top_logprobs(logits, request.n_top_logprobs) if request.n_top_logprobs else [],
        )
        self.report(part)

    def next_step(self, reading: Reading) -> Step:
        """Draw the next token from the logits after the last token read."""
        request = self.request
        fields: dict[str, Any] = {}
        if request.n_top_logprobs:
            fields["top_logprobs"] = top_logprobs(reading.logits[-1:], request.n_top_logprobs)[0]
        if request.record:
            fields["recorded"] = reading.record(self.n_read)
        drawn = (
            reading.choose(request.sampling, self.generator, self.n_drawable)
            if self.is_plain and self.may_end
            else None
        )
        step = self.add(*drawn, **fields) if drawn else self.write(reading.logits[-1], **fields)
        self.ids.append(step.token_id)
        if len(self.written) == 1:
            self.first_token_at = time.monotonic()
        if len(self.ids) > self.context_length:  # only a text with ``context_shift`` gets here
            self.ids, self.n_read = self.ids[-max(1, self.context_length // 2) :], 0
            self.n_given = len(self.ids)
            self.n_reported = 0 if request.record else self.n_given  # the prompt's log-probabilities are reported once
        return step
