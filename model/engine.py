"""Many requests at once: they join and leave a running batch at every step."""

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .batch import BatchCache, Segment, forward_batch, neighbours
from .line import Line
from .loaded import LoadedModel
from .ticket import Cut, Event, Failure, Shift, Ticket, Turn

log = logging.getLogger(__name__)

PREFILL_TOKENS = 64  # of all prompts together in one step, while somebody writes and would have to wait
PREFILL_ALONE = 512  # while nobody does


class Busy(Exception):
    """The waiting line is full."""


class Closed(Exception):
    """The engine takes no more requests."""


class Engine:
    """One model's requests. ``submit`` from any thread; ``run`` in one of its own, or ``step`` by hand.

    At most ``max_batch`` are at work, each in a slot of the cache; ``max_waiting`` more may wait, fairly by client.
    """

    def __init__(self, model: LoadedModel, *, max_batch: int = 16, max_waiting: int = 64) -> None:
        self.model, self.max_batch, self.max_waiting = model, max_batch, max_waiting
        self.cache = BatchCache(model.gpt, max_batch)
        self.line: Line[Ticket] = Line()
        self.slots: list[Ticket | None] = [None] * max_batch
        self.turns = itertools.count()
        self.changed = threading.Condition()
        self.closed = False
        self.tokens_read = self.tokens_written = 0

    @property
    def at_work(self) -> list[Ticket]:
        """The requests in the batch, in the order of their slots."""
        return [ticket for ticket in self.slots if ticket]

    def submit(self, *tickets: Ticket) -> None:
        """Let all of these join, or none: raises ``Busy`` or ``Closed``."""
        with self.changed:
            if self.closed:
                raise Closed
            for ticket in self.to_refuse(tickets) if tickets else ():
                ticket.refused = True  # it is told at the next step
            for ticket in tickets:
                self.line.append(ticket)
            self.changed.notify()

    def to_refuse(self, tickets: Sequence[Ticket]) -> list[Ticket]:
        """Who must leave the line so that these, all of one client, find a place; raises ``Busy`` where nobody must.

        They are the newest of the client with the most, if that has more than theirs would have.
        """
        here = [ticket for ticket in [*self.line, *self.at_work] if not ticket.is_leaving]
        counts = Counter(ticket.client for ticket in here)
        counts[tickets[0].client] += len(tickets)
        n_over = len(here) + len(tickets) - self.max_waiting - self.max_batch
        waiting = [ticket for ticket in here if ticket.slot is None and not ticket.draft.written]
        refused: list[Ticket] = []
        while len(refused) < n_over:
            client, _ = max(counts.items(), key=lambda item: (item[1], item[0] == tickets[0].client))
            theirs = [ticket for ticket in waiting if ticket.client == client and ticket not in refused]
            if client == tickets[0].client or not theirs:
                raise Busy
            refused.append(theirs[-1])
            counts[client] -= 1
        return refused

    def run(self) -> None:
        """Work until the engine is closed and nothing is left to do."""
        while True:
            with self.changed:
                while not self.line and not self.at_work:
                    if self.closed:
                        return
                    self.changed.wait()
            try:
                self.step()
            except Exception as error:
                log.exception("a step failed outside of its forward pass")
                self.start_anew(error)

    def close(self, grace: float = 0.0) -> None:
        """Take no more requests; those that are here have ``grace`` seconds, and end where they are then."""
        with self.changed:
            self.closed = True
            deadline = time.monotonic() + grace
            for ticket in [*self.line, *self.at_work]:
                ticket.deadline = min(ticket.deadline, deadline)
            self.changed.notify()

    def step(self) -> None:
        """One forward pass in which every request has its turn. What it raises ends those requests alone."""
        with self.changed:
            self.dismiss()
            self.admit()
        turns = self.plan()
        try:
            if turns:
                self.forward(turns)
        except Exception as error:
            log.exception("a step failed")
            for ticket in [turn.ticket for turn in turns if turn.ticket.slot is not None]:
                self.fail(ticket, error)

    def dismiss(self) -> None:
        """Let go of those that were cancelled or whose time is up."""
        now = time.monotonic()
        for ticket in [*self.line, *self.at_work]:
            if ticket.refused:
                self.end(ticket, Failure(Busy()))
            elif ticket.cancelled or now >= ticket.deadline:
                reason: Any = "cancelled" if ticket.cancelled else "deadline"
                self.end(ticket, Cut(reason, ticket.draft.out.finish()))

    def admit(self) -> None:
        """Give free slots to those that wait, and one of a client that has several to a client that has fewer."""
        while self.line:
            counts = Counter(ticket.client for ticket in self.at_work)
            if None not in self.slots:
                client, most = counts.most_common(1)[0]
                if most - counts[self.line.next_client(counts)] < 2:
                    return
                self.pause(max((t for t in self.at_work if t.client == client), key=lambda ticket: ticket.turn))
            ticket = self.line.take(counts)
            ticket.slot, ticket.turn = self.slots.index(None), next(self.turns)
            self.slots[ticket.slot] = ticket

    def pause(self, ticket: Ticket) -> None:
        """Back into the line: what it has written stays, and is read anew when its turn comes."""
        self.leave(ticket)
        ticket.n_read = 0
        self.line.put_back(ticket)

    def leave(self, ticket: Ticket) -> None:
        assert ticket.slot is not None, "it is not at work"
        if ticket.n_read and ticket.n_todo > 1:  # no logits have shown yet whether all of it is finite
            self.cache.clear(ticket.slot, len(ticket.ids))
        self.slots[ticket.slot] = None
        ticket.slot = None

    def end(self, ticket: Ticket, event: Event) -> None:
        """Remove a request from wherever it is, with a last event."""
        if ticket.slot is None:
            self.line.remove(ticket)
        else:
            self.leave(ticket)
        ticket.tell(event)

    def fail(self, ticket: Ticket, error: Exception) -> None:
        assert ticket.slot is not None, "it is not at work"
        self.cache.clear(ticket.slot, len(ticket.ids))
        self.end(ticket, Failure(error))

    def start_anew(self, error: Exception) -> None:
        """End everybody, and begin with nothing: which request is to blame is not known."""
        with self.changed:
            tickets = [*self.line, *self.at_work]
            self.line, self.slots = Line(), [None] * self.max_batch
            for ticket in tickets:
                ticket.slot = None
                ticket.tell(Failure(error))
            self.cache = BatchCache(self.model.gpt, self.max_batch)

    def plan(self) -> list[Turn]:
        """What each request reads now: its newest token where it writes, else a piece of what it has to read.

        Those that write come first, in the order of their slots; then the clients that have the fewest prompts to be
        read, each prompt in the order in which they joined.
        """
        turns = [Turn(ticket, 1) for ticket in self.at_work if ticket.n_todo == 1]
        budget = PREFILL_TOKENS if turns else PREFILL_ALONE
        reading = [ticket for ticket in self.at_work if ticket.n_todo > 1]
        counts = Counter(ticket.client for ticket in reading)
        for ticket in sorted(reading, key=lambda ticket: (counts[ticket.client], ticket.turn)):
            if budget:
                turns.append(Turn(ticket, min(ticket.n_todo, budget)))
                budget -= turns[-1].n_tokens
        return turns

    def forward(self, turns: Sequence[Turn]) -> None:
        """Read all in one pass, and let everyone who has read everything write a token."""
        single = [turn for turn in turns if turn.ticket.n_todo == 1]
        groups = neighbours([(turn.slot, turn.start, turn.ticket.record) for turn in single])
        together = [[single[i] for i in group] for group in groups]
        together += [[turn] for turn in turns[len(single) :]]
        ordered = list(itertools.chain(*together))
        wanted = itertools.chain(*(turn.wanted for turn in ordered))
        result = forward_batch(
            self.model.gpt,
            list(itertools.chain(*(turn.ids for turn in ordered))),
            [self.segment(group) for group in together],
            [row for row, needed in enumerate(wanted) if needed],
        )
        logits = result.logits.split([sum(turn.wanted) for turn in ordered])
        attention = [
            None if part is None else part[:, i].cpu()
            for group, part in zip(together, result.attention, strict=True)
            for i in range(len(group))
        ]
        for turn, *found in zip(ordered, logits, attention, strict=True):
            try:
                self.take(turn, *found)
            except Exception as error:  # of one request, as when its logits are NaN
                log.exception("a request failed")
                self.fail(turn.ticket, error)

    def segment(self, group: Sequence[Turn]) -> Segment:
        tickets = [turn.ticket for turn in group]
        head_mask = None
        if any(ticket.head_mask is not None for ticket in tickets):
            whole = torch.ones(self.model.config.n_layer, self.model.config.n_head, device=self.model.device)
            masks = [whole if ticket.head_mask is None else ticket.head_mask for ticket in tickets]
            head_mask = torch.stack(masks, 1)
        lengths = [ticket.n_read for ticket in tickets]
        return Segment(self.cache, group[0].slot, lengths, group[0].n_tokens, head_mask, tickets[0].record)

    def take(self, turn: Turn, logits: Tensor, attention: Tensor | None) -> None:
        """Report what one request has read, and write its next token where it has read everything."""
        ticket = turn.ticket
        self.tokens_read += turn.n_tokens
        if turn.tells_prompt:
            ticket.tell(turn.prompt_part(logits, attention))
        ticket.n_read += turn.n_tokens
        if ticket.n_todo:
            return
        step = ticket.write(logits[-1], attention, self.model.config.context_length)
        self.tokens_written += 1
        if step.finish_reason:
            self.end(ticket, step)
            return
        ticket.tell(step)
        if not ticket.n_read and ticket.record:
            ticket.tell(Shift(list(ticket.ids)))
