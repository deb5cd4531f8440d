"""One request in the engine: what is asked for, how far it is, and what is reported of it."""

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

from .generate import Draft, Step
from .reading import token_logprobs

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PromptPart:
    """A piece of a prompt that was read, its tokens from ``start`` on.

    ``attention`` ``(n_layer, n_head, n, start + n)`` are their attention weights where they are recorded; ``logprobs``
    are of the tokens after each of them in the prompt, ``top_logprobs`` of the most probable ones in their places.
    """

    start: int
    attention: Tensor | None
    logprobs: list[float]
    top_logprobs: list[dict[int, float]]


@dataclass(frozen=True, eq=False)
class Shift:
    """The context was full: writing goes on from ``ids``, its newer part, which are read as a prompt is.

    Told only where attention weights are recorded; places in what follows are those in ``ids``.
    """

    ids: list[int]


@dataclass(frozen=True, eq=False)
class Cut:
    """The end of a request between two tokens, with the text that was held back."""

    reason: Literal["deadline", "cancelled"]
    text: str


@dataclass(frozen=True, eq=False)
class Failure:
    """The end of a request that could not be finished."""

    error: Exception


Event = PromptPart | Step | Shift | Cut | Failure
Sink = Callable[[Event], None]


@dataclass(eq=False)
class Ticket:
    """A request: ``draft`` draws its tokens, ``sink`` gets its events, in the engine's thread, the last one last."""

    draft: Draft
    sink: Sink
    client: Hashable = None  # requests of one client share its turns
    head_mask: Tensor | None = None  # (n_layer, n_head)
    record: bool = False  # attention weights of all heads, and logits
    read_prompt: bool = False  # log-probabilities of the prompt's own tokens
    n_top: int = 0  # most probable tokens to name at each place
    deadline: float = float("inf")  # on time.monotonic()

    ids: list[int] = field(init=False)  # all that is to be read: the prompt and what was written, or its newer part
    n_read: int = field(default=0, init=False)
    n_given: int = field(init=False)  # of ``ids``: the prompt, or what a shift left
    n_told: int = field(default=0, init=False)  # of those given, the ones of which was reported
    slot: int | None = field(default=None, init=False)
    turn: int = field(default=0, init=False)  # counts those that joined
    cancelled: bool = field(default=False, init=False)
    refused: bool = field(default=False, init=False)  # to make room in the line for another client

    def __post_init__(self) -> None:
        self.ids = list(self.draft.prompt)
        self.n_given = len(self.ids)

    @property
    def is_leaving(self) -> bool:
        return self.cancelled or self.refused

    @property
    def n_todo(self) -> int:
        """How many tokens are to be read before the next one can be written: one while it writes."""
        return len(self.ids) - self.n_read

    def cancel(self) -> None:
        """Leave at the next step. From any thread."""
        self.cancelled = True

    def finish(self) -> None:
        """End with the next token, when all before it were read; at once where it waits. From any thread."""
        if self.slot is None:
            self.cancel()
        else:
            self.draft.max_new_tokens = min(self.draft.max_new_tokens, len(self.draft.written) + 1)

    def tell(self, event: Event) -> None:
        """Hand an event over; a consumer that fails ends its own request alone."""
        try:
            self.sink(event)
        except Exception:
            log.exception("the consumer of a request failed")
            self.cancelled = True

    def write(self, logits: Tensor, attention: Tensor | None, context_length: int) -> Step:
        """Draw the next token from the raw ``logits`` ``(vocab_size,)`` behind all that was read.

        ``attention`` ``(n_layer, n_head, n, S)`` are the weights of what was read last.
        """
        recorded: dict[str, Any] = {}
        if attention is not None:
            recorded = {"attention": attention[:, :, -1, : self.n_read].clone(), "logits": logits.clone()}
        if self.n_top:
            (recorded["top_logprobs"],) = top_logprobs(logits[None], self.n_top)
        step = self.draft.write(logits, **recorded)
        self.ids.append(step.token_id)
        if len(self.ids) > context_length:  # a draft that may become longer than the context
            self.ids, self.n_read = self.ids[-max(1, context_length // 2) :], 0
            self.n_given = len(self.ids)
            self.n_told = 0 if self.record else self.n_given  # whoever asked for the prompt alone has had it
        return step


@dataclass(frozen=True, eq=False)
class Turn:
    """What one request reads in one step: the next ``n_tokens`` of its ids."""

    ticket: Ticket
    n_tokens: int

    @property
    def slot(self) -> int:
        assert self.ticket.slot is not None, "it is not at work"
        return self.ticket.slot

    @property
    def start(self) -> int:
        return self.ticket.n_read

    @property
    def ids(self) -> list[int]:
        return self.ticket.ids[self.start : self.start + self.n_tokens]

    @property
    def tells_prompt(self) -> bool:
        """Whether somebody wants to know of prompt tokens that are read here for the first time."""
        ticket = self.ticket
        asked = ticket.record or ticket.read_prompt
        return asked and ticket.n_told < min(self.start + self.n_tokens, ticket.n_given)

    @property
    def wanted(self) -> list[bool]:
        """Behind which of its tokens the logits are needed."""
        if self.tells_prompt and self.ticket.read_prompt:
            return [True] * self.n_tokens
        return [False] * (self.n_tokens - 1) + [self.n_tokens == self.ticket.n_todo]

    def prompt_part(self, logits: Tensor, attention: Tensor | None) -> PromptPart:
        """The report of the prompt tokens among these, from ``logits`` ``(n_tokens, vocab_size)`` and their weights."""
        ticket, start = self.ticket, self.start
        first, end = max(start, ticket.n_told), min(start + self.n_tokens, ticket.n_given)
        followers = ticket.ids[first + 1 : min(end + 1, ticket.n_given)] if ticket.read_prompt else []
        logits = logits[first - start :][: len(followers)]
        ticket.n_told = end
        return PromptPart(
            start=first,
            attention=None if attention is None else attention[:, :, first - start : end - start, :end],
            logprobs=token_logprobs(logits, followers),
            top_logprobs=top_logprobs(logits, ticket.n_top) if ticket.n_top else [],
        )


def top_logprobs(logits: Tensor, n: int) -> list[dict[int, float]]:
    """The ``n`` most probable tokens of each row of raw ``logits`` ``(rows, vocab_size)``, with their probabilities."""
    values, ids = logits.float().log_softmax(-1).topk(min(n, logits.shape[-1]))
    return [dict(zip(*row, strict=True)) for row in zip(ids.tolist(), values.tolist(), strict=True)]
