"""Continuous batching: texts join and leave a running batch at every step."""

import itertools
import logging
import time
from collections import Counter
from collections.abc import Hashable, Sequence

from ..generate import GenerationRequest
from ..loaded import LoadedModel
from .prefixes import MIN_SHARED, NOTHING, kept_of, may_share, n_shared
from .reader import MAX_PROMPT_TOKENS, Reader, Reading
from .sequence import ContextShift, Failure, Listener, TextSequence
from .text_engine import SteppedEngine, can_wait
from .torch_reader import TorchReader

log = logging.getLogger(__name__)

PREFILL_TOKENS = 64  # for all prompts together in one step, while other texts are being written and would have to wait
SLOTS_TO_REUSE = 16  # free slots of which a new text takes the one that was used least recently
STALL_SECONDS = 0.005  # while no text may read on because nobody takes what is recorded
# With at least this many texts being written, a step takes longer than an extra pass for prompts alone.
MIN_WRITING_FOR_SEPARATE_PROMPTS = 4
MIN_SECONDS_AHEAD = 0.5  # seconds: a text that can be read on for so long gives its slot to one with nothing to read


class Engine(SteppedEngine[TextSequence]):
    """Writes the texts of one model. Call ``run`` in a dedicated thread, or ``step`` directly.

    Each slot is one of the cache. ``reader`` serves texts admitted from now on; each text keeps the reader it started
    with. The default reader uses torch.
    """

    def __init__(
        self, loaded: LoadedModel, *, max_batch: int = 16, max_waiting: int = 64, reader: Reader | None = None
    ) -> None:
        super().__init__(loaded, max_batch=max_batch, max_waiting=max_waiting)
        self.reader = reader
        self.kept = [NOTHING] * max_batch  # the latest text of each free slot, until another one begins there
        self.stamps = itertools.count(1)
        self.prompts_alone = False  # whether the latest step read only prompts

    def new_sequence(
        self, request: GenerationRequest, listener: Listener, client: Hashable, deadline: float
    ) -> TextSequence:
        """The text of ``request``, ready for ``submit``."""
        return TextSequence(request, self.loaded, listener, client, deadline)

    def use(self, reader: Reader) -> None:
        """Let ``reader`` serve the texts admitted from now on; never overwritten by the default of a text just then."""
        with self.changed:
            self.reader = reader

    def run(self) -> None:
        super().run()
        with self.changed:
            if self.reader:
                self.reader.close()

    def step(self) -> None:
        """One forward pass for the texts chosen by ``plan``. An error ends only these texts."""
        with self.changed:
            self.drop_ended()
            self.admit()
        planned = self.plan()
        try:
            if planned:
                self.forward(planned)
            elif self.active:  # what was recorded of them must be taken first
                time.sleep(STALL_SECONDS)
        except Exception as error:
            log.exception("a step failed")
            for sequence in [each for each in planned if each.is_active]:
                self.fail(sequence, error)

    def admit(self) -> None:
        """Give free slots to waiting texts, and those of texts that pause for them."""
        while self.queue:
            counts = Counter(sequence.client for sequence in self.active)
            if None not in self.slots:
                paused = self.to_pause(counts)
                if paused is None:
                    return
                self.preempt(paused)
            sequence = self.fill_slot(counts)
            sequence.stamp, sequence.n_before = next(self.stamps), len(sequence.ids)
            sequence.reader = self.reader = self.reader or TorchReader(self.loaded.gpt, self.max_batch)

    def to_pause(self, counts: Counter[Hashable]) -> TextSequence | None:
        """The text that gives its slot to the next waiting one; None if that has to wait."""
        waiting = self.queue.next_item(counts)
        return self.newest_of_the_busiest(waiting, counts) or self.furthest_ahead(waiting, counts)

    def newest_of_the_busiest(self, waiting: TextSequence, counts: Counter[Hashable]) -> TextSequence | None:
        """The newest text of the client with the most, if those are at least two more than the waiting one's has."""
        client, most = counts.most_common(1)[0]
        if most - counts[waiting.client] < 2:
            return None
        return max((each for each in self.active if each.client == client), key=lambda each: each.stamp)

    def furthest_ahead(self, waiting: TextSequence, counts: Counter[Hashable]) -> TextSequence | None:
        """The text that is furthest ahead of its viewer, if the waiting one's viewer has nothing to look at.

        It belongs to a client with more texts, and is ahead far enough, unless the waiting one has not even begun.
        """
        if can_wait(waiting):
            return None
        ahead = [each for each in self.active if counts[each.client] > counts[waiting.client] and each.may_pause]
        furthest = max(ahead, key=lambda each: each.seconds_ahead, default=None)
        return furthest if furthest and (not waiting.written or furthest.seconds_ahead > MIN_SECONDS_AHEAD) else None

    def free_slot(self) -> int:
        free = [slot for slot, used in enumerate(self.slots) if used is None]
        # Later slots only if needed, because the system provides their memory at the first use.
        return min(free[:SLOTS_TO_REUSE], key=lambda slot: self.kept[slot].stamp)

    def preempt(self, sequence: TextSequence) -> None:
        """Put a text back into the queue; its written tokens are kept, and read again when its turn comes."""
        self.release_slot(sequence)
        sequence.start_after(0)
        self.queue.put_back(sequence)

    def release_slot(self, sequence: TextSequence) -> None:
        if sequence.n_read and sequence.n_unread > 1:  # no logits yet show whether all its keys and values are finite
            sequence.clear()
        elif sequence.n_read:
            self.kept[sequence.slot] = kept_of(sequence)._replace(stamp=next(self.stamps))
        super().release_slot(sequence)
        sequence.reader = None

    def fail(self, sequence: TextSequence, error: Exception) -> None:
        sequence.clear()
        sequence.start_after(0)  # nothing for others to take over
        self.end(sequence, Failure(error))

    def fail_all(self, error: Exception) -> None:
        with self.changed:
            self.kept = [NOTHING] * self.max_batch
            for sequence in self.active:
                sequence.clear()
                sequence.reader = None
            super().fail_all(error)

    def plan(self) -> list[TextSequence]:
        """Decide how much each text reads now: its newest token if it is writing, else a piece of its prompt.

        Texts being written come first, in the order of their slots; then the clients with the fewest prompts to read,
        each prompt in the order in which it joined. But every other step, prompts that can be finished are read alone,
        so that their first tokens need not wait for those of many others. A new prompt takes over the beginning that is
        in the cache at once, because what the next ones can take over depends on it.
        """
        reading_on = [sequence for sequence in self.active if not sequence.is_stalled]
        writing = [sequence for sequence in reading_on if sequence.n_unread == 1]
        for sequence in writing:
            sequence.plan(1)
        budget = PREFILL_TOKENS if writing else MAX_PROMPT_TOKENS
        unread = [sequence for sequence in reading_on if sequence.n_unread > 1]
        if not unread:
            self.prompts_alone = False
            return writing
        counts = Counter(sequence.client for sequence in unread)
        reading: list[TextSequence] = []
        for sequence in sorted(unread, key=lambda sequence: (counts[sequence.client], sequence.stamp)):
            if budget and not self.must_wait(sequence, reading):
                self.take_over_beginning(sequence)
                sequence.plan(min(sequence.n_unread, sequence.max_rows, budget))
                budget -= sequence.n_planned
                reading.append(sequence)
        finishing = [sequence for sequence in reading if sequence.n_planned == sequence.n_unread]
        self.prompts_alone = (
            bool(finishing) and len(writing) >= MIN_WRITING_FOR_SEPARATE_PROMPTS and not self.prompts_alone
        )
        return finishing if self.prompts_alone else writing + reading

    def must_wait(self, sequence: TextSequence, reading: Sequence[TextSequence]) -> bool:
        """Whether one of the texts ``reading`` will have read more of its beginning than any has so far."""
        if sequence.n_unread <= MIN_SHARED or not may_share(sequence):
            return False
        _, n = self.longest_beginning(sequence)
        return any(n_shared(sequence, kept_of(other, planned=True)) >= n + MIN_SHARED for other in reading)

    def take_over_beginning(self, sequence: TextSequence) -> None:
        """Let a new text take over the beginning that it shares with another one in the cache."""
        if sequence.n_unread <= MIN_SHARED or not may_share(sequence):
            return
        source, n = self.longest_beginning(sequence)
        if n and sequence.reader:
            sequence.reader.copy(source, sequence.slot, n)
            sequence.start_after(n)
            self.tokens_shared += n
            self.kept[source] = self.kept[source]._replace(stamp=next(self.stamps))

    def longest_beginning(self, sequence: TextSequence) -> tuple[int, int]:
        """The slot that holds most of a text's beginning, and how many tokens of it."""
        kept = [kept_of(other) if other and other.n_read else self.kept[i] for i, other in enumerate(self.slots)]
        return max(enumerate(n_shared(sequence, each) for each in kept), key=lambda found: found[1])

    def forward(self, planned: Sequence[TextSequence]) -> None:
        """Read all planned tokens, then write a token of each text that has read everything."""
        for sequence in planned:
            self.kept[sequence.slot] = NOTHING
        for reader in dict.fromkeys(sequence.reader for sequence in planned):
            sequences = [sequence for sequence in planned if sequence.reader is reader]
            assert reader
            for sequence, reading in zip(sequences, reader.read([each.part for each in sequences]), strict=True):
                try:
                    self.take(sequence, reading)
                except Exception as error:  # an error of one text, such as NaN logits
                    log.exception("a request failed")
                    self.fail(sequence, error)

    def take(self, sequence: TextSequence, reading: Reading) -> None:
        """Report what one text has read, and write its next token if it has read everything."""
        self.tokens_read += sequence.n_planned
        if sequence.reports_prompt:
            sequence.report_prompt(reading.logits, reading.attention)
        sequence.advance()
        if sequence.n_unread:
            return
        step = sequence.next_step(reading)
        self.tokens_written += 1
        if step.finish_reason:
            self.end(sequence, step)
            return
        sequence.report(step)
        if not sequence.n_read and sequence.request.record:
            sequence.report(ContextShift(list(sequence.ids)))
