"""Background computations that take turns: a long one pauses while others wait, and continues later."""

import logging
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future

import torch

from model import InputError
from model.errors import Busy, Closed, counted
from model.lens.progress import Cancelled, Progress
from model.serving.fair_queue import FairQueue

from ..settings import NICENESS

log = logging.getLogger(__name__)

TURN_SECONDS = 1.0  # after which a computation pauses for others
ESTIMATE_SECONDS = 5.0  # of a computation, after which its progress tells how long it takes
MIN_FRACTION = 0.002  # assumed to be done by then, even if less is: early steps may be slow
DOUBT = 1.5  # factor by which an estimate may exceed the limit, since parts of a computation differ in speed
MAX_BEGUN = 4  # computations that have started, running or paused


def lower_priority() -> None:
    """Give this thread, and those that it starts, a lower priority than the threads that write texts."""
    if sys.platform == "linux":  # elsewhere this would set the priority of the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class OutOfTime(Exception):
    """A computation took longer than the server allows, or would take ``expected`` or more; ``less`` may not."""

    def __init__(self, max_seconds: float, less: str, expected: float | None = None) -> None:
        super().__init__(max_seconds, less, expected)
        self.max_seconds, self.less, self.expected = max_seconds, less, expected

    def __str__(self) -> str:
        took = "took longer" if self.expected is None else f"would take {duration(self.expected)} or more"
        allowed = f"the server allows {duration(self.max_seconds)} for a question (--max-question-seconds)"
        return f"This {took}, but {allowed}: ask about {self.less}."


def duration(seconds: float) -> str:
    """A length of time as it is said: "45 seconds", "7 minutes", "3 hours"."""
    for size, unit in ((3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return counted(round(seconds / size), unit)
    return counted(round(seconds), "second")


class Job:
    """One computation for one ``client``: ``done`` is the future of its result, ``fraction`` its progress from 0 to 1.

    ``less`` says what would take less time.
    """

    def __init__(self, client: Hashable, compute: Callable[[Progress], bytes], less: str = "less") -> None:
        self.client, self.compute, self.less = client, compute, less
        self.fraction = 0.0
        self.done: Future[bytes] = Future()
        self.cancelled = False
        self.is_running = False
        self.turn_began = 0.0
        self.seconds = 0.0  # the total length of its finished turns


class Turns:
    """Runs at most ``max_running`` jobs at once, each for ``max_seconds`` and in a low-priority thread of its own.

    Jobs wait in a queue that is fair by client. When its turn is over, a job pauses in its next call of ``progress`` if
    others are waiting, so that no client has to wait for a long job to end.
    """

    def __init__(self, max_running: int, max_waiting: int, max_seconds: float) -> None:
        self.max_running, self.max_waiting, self.max_seconds = max_running, max_waiting, max_seconds
        self.queue: FairQueue[Job] = FairQueue()  # jobs that have not begun
        self.paused: deque[Job] = deque()
        self.running: set[Job] = set()
        self.changed = threading.Condition()
        self.queue_first = False  # whether the next turn goes to a job that has not begun rather than to a paused one
        self.closed = False

    def submit(self, job: Job) -> None:
        """Queue a job. Raises ``Busy`` if the queue is full and no client has more jobs in it, and ``Closed``."""
        with self.changed:
            if self.closed:
                raise Closed
            can_begin = len(self.running) < self.max_running and not self.queue
            if not can_begin:
                for refused in self.queue.to_refuse(job.client, len(self.queue) + 1 - self.max_waiting):
                    self.queue.remove(refused)
                    refused.done.set_exception(Busy())
            self.queue.append(job)
            self.give_turns()

    def cancel(self, job: Job) -> None:
        """End a job: immediately if it is queued, otherwise in its next call of ``progress``."""
        with self.changed:
            job.cancelled = True
            if job in self.queue:
                self.queue.remove(job)
                job.done.set_exception(Cancelled())
            self.changed.notify_all()

    def close(self) -> None:
        """Accept no more jobs and cancel the existing ones."""
        with self.changed:
            self.closed = True
            jobs = [*self.queue, *self.paused, *self.running]
        for job in jobs:
            self.cancel(job)

    def give_turns(self) -> None:
        """Start queued and resume paused jobs while there is room. The caller holds the lock."""
        while len(self.running) < self.max_running:
            begun = Counter(job.client for job in [*self.running, *self.paused])
            can_begin = len(self.queue) and begun.total() < MAX_BEGUN
            if can_begin and (self.queue_first or not self.paused):
                job = self.queue.take(begun)
                self.queue_first = False
                self.start_turn(job)
                threading.Thread(target=self.run, args=[job], name="question", daemon=True).start()
            elif self.paused:
                self.queue_first = True
                self.start_turn(self.paused.popleft())
            else:
                break
        self.changed.notify_all()

    def start_turn(self, job: Job) -> None:
        self.running.add(job)
        job.is_running, job.turn_began = True, time.monotonic()

    def end_turn(self, job: Job) -> None:
        self.running.discard(job)
        job.is_running = False
        job.seconds += time.monotonic() - job.turn_began

    def run(self, job: Job) -> None:
        """The thread of a job."""
        lower_priority()
        result: bytes | BaseException
        try:
            with torch.inference_mode():
                result = job.compute(lambda fraction: self.progress(job, fraction))
        except BaseException as error:
            result = error
            if not isinstance(error, InputError | Cancelled | OutOfTime | Busy):
                log.exception("A question failed")
        with self.changed:
            self.end_turn(job)
            self.give_turns()
        if isinstance(result, BaseException):
            job.done.set_exception(result)
        else:
            job.done.set_result(result)

    def progress(self, job: Job, fraction: float) -> None:
        """Record a job's progress, and pause it if its turn is over. Raises ``Cancelled`` or ``OutOfTime``."""
        job.fraction = min(max(fraction, job.fraction), 1.0)
        with self.changed:
            turn = time.monotonic() - job.turn_began
            if turn > TURN_SECONDS and (self.queue or self.paused) and not job.cancelled:
                self.end_turn(job)
                self.paused.append(job)
                self.queue_first = True
                self.give_turns()
                self.changed.wait_for(lambda: job.is_running or job.cancelled)
                if not job.is_running:  # it was cancelled and must run to its end
                    self.paused.remove(job)
                    self.start_turn(job)
                turn = 0.0
            if job.cancelled:
                raise Cancelled
            most, spent = self.max_seconds, job.seconds + turn
            if spent > most:
                raise OutOfTime(most, job.less)
            expected = spent / max(job.fraction, MIN_FRACTION)
            if spent > ESTIMATE_SECONDS and expected > DOUBT * most:
                raise OutOfTime(most, job.less, expected)
