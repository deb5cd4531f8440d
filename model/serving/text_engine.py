"""The texts of one model that a few slots are for: who gets one, who waits, and how texts end."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from ..errors import Busy, Closed
from ..generate import GenerationRequest
from ..loaded import LoadedModel
from .fair_queue import FairQueue
from .sequence import NO_SLOT, Cut, Event, Failure, Listener, TextSequence

log = logging.getLogger(__name__)

T = TypeVar("T", bound=TextSequence)


class TextEngine(Generic[T]):
    """The texts of one model. Call ``submit`` from any thread, and ``run`` in a dedicated one.

    At most ``max_batch`` texts are active, each in a slot; ``max_waiting`` more may wait, queued fairly by client.
    A class derived from this says in ``new_sequence`` what a text is, and has them written in ``run``.
    """

    def __init__(self, loaded: LoadedModel, *, max_batch: int, max_waiting: int) -> None:
        self.loaded, self.max_batch, self.max_waiting = loaded, max_batch, max_waiting
        self.queue = FairQueue[T](can_wait)
        self.slots: list[T | None] = [None] * max_batch
        self.changed = threading.Condition()
        self.closed = False
        self.tokens_read = self.tokens_shared = self.tokens_written = 0

    @property
    def active(self) -> list[T]:
        """The texts in the batch, in the order of their slots."""
        return [sequence for sequence in self.slots if sequence]

    def new_sequence(self, request: GenerationRequest, listener: Listener, client: Hashable, deadline: float) -> T:
        """The text of ``request``, ready for ``submit``."""
        raise NotImplementedError

    def run(self) -> None:
        """Have texts written until this is closed and no work is left."""
        raise NotImplementedError

    def submit(self, *sequences: T) -> None:
        """Add all of these to the queue, or none. Raises ``Busy`` or ``Closed``."""
        with self.changed:
            if self.closed:
                raise Closed
            for sequence in self.to_refuse(sequences) if sequences else ():
                sequence.refused = True  # its listener is notified at the next step
            for sequence in sequences:
                self.queue.append(sequence)
            self.changed.notify()

    def to_refuse(self, sequences: Sequence[T]) -> list[T]:
        """The texts that must leave the queue to make room for these, all of one client. Raises ``Busy`` if that fails.

        They are the newest waiting texts of the client with the most texts, provided that it would still have more
        texts than the client of ``sequences``.
        """
        here = [each for each in [*self.queue, *self.active] if not each.is_leaving]
        return self.queue.to_refuse(
            sequences[0].client,
            len(here) + len(sequences) - self.max_waiting - self.max_batch,
            Counter(sequence.client for sequence in here),
            may_be_refused=lambda sequence: not sequence.is_leaving and not sequence.written,
            n_new=len(sequences),
        )

    def close(self, grace: float = 0.0) -> None:
        """Accept no more requests; those already accepted have ``grace`` seconds left."""
        with self.changed:
            self.closed = True
            deadline = time.monotonic() + grace
            for sequence in [*self.queue, *self.active]:
                sequence.deadline = min(sequence.deadline, deadline)
            self.changed.notify()

    def drop_ended(self) -> None:
        """Remove texts that were cancelled or refused, or whose deadline has passed."""
        now = time.monotonic()
        for sequence in [*self.queue, *self.active]:
            if sequence.refused:
                self.end(sequence, Failure(Busy()))
            elif sequence.cancelled:
                self.end(sequence, Cut("cancelled", sequence.out.finish()))
            elif now >= sequence.deadline:
                self.end(sequence, Cut("deadline", sequence.out.finish()))

    def admit(self) -> None:
        """Give free slots to waiting texts."""
        while self.queue and None in self.slots:
            self.fill_slot(Counter(sequence.client for sequence in self.active))

    def fill_slot(self, counts: Counter[Hashable]) -> T:
        """Give a free slot to the next waiting text, where ``counts`` are the clients' texts in the batch."""
        sequence = self.queue.take(counts)
        sequence.slot = self.free_slot()
        self.slots[sequence.slot] = sequence
        return sequence

    def free_slot(self) -> int:
        return self.slots.index(None)

    def release_slot(self, sequence: T) -> None:
        self.slots[sequence.slot] = None
        sequence.slot = NO_SLOT

    def end(self, sequence: T, event: Event) -> None:
        """Remove a text from the batch or the queue, with a last event."""
        if sequence.is_active:
            self.release_slot(sequence)
        else:
            self.queue.remove(sequence)
        sequence.report(event)

    def fail_all(self, error: Exception) -> None:
        """Fail all requests and reset, because the cause of the error is unknown."""
        with self.changed:
            sequences = [*self.queue, *self.active]
            self.queue, self.slots = FairQueue(can_wait), [None] * self.max_batch
            for sequence in sequences:
                sequence.slot = NO_SLOT
                sequence.report(Failure(error))


class SteppedEngine(TextEngine[T]):
    """Writes its texts itself, in steps."""

    def step(self) -> None:
        """Write a part of the active texts, after ``drop_ended`` and ``admit``."""
        raise NotImplementedError

    def run(self) -> None:
        while True:
            with self.changed:
                while not self.queue and not self.active:
                    if self.closed:
                        return
                    self.changed.wait()
            try:
                self.step()
            except Exception as error:
                log.exception("a step failed outside of its forward pass")
                self.fail_all(error)


def can_wait(sequence: TextSequence) -> bool:
    """Whether the text's viewer still has tokens to look at."""
    return sequence.seconds_ahead > 0
