"""Computations in the background that take turns: a long one makes way for those that wait, and goes on later."""

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
from model.lens.questions.progress import Cancelled, Progress
from model.serving.engine import Busy, Closed
from model.serving.fair_queue import FairQueue

log = logging.getLogger(__name__)

TURN_SECONDS = 1.0  # after which a computation makes way for others
MAX_BEGUN = 4  # computations in memory, at work or waiting for their next turn
NICENESS = 10  # below the threads that write texts, where the system knows such a thing per thread


def lower_priority() -> None:
    """Let this thread, and those that it starts, wait for the threads that write texts."""
    if sys.platform == "linux":  # elsewhere it would be the priority of the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class OutOfTime(Exception):
    """A computation took longer than the server allows."""


class Job:
    """One computation for one ``client``: ``done`` is its result, ``fraction`` says how far it is.

    ``max_seconds`` is how long it may take where that is not the usual time.
    """

    def __init__(
        self, client: Hashable, compute: Callable[[Progress], bytes], max_seconds: float | None = None
    ) -> None:
        self.client, self.compute, self.max_seconds = client, compute, max_seconds
        self.fraction = 0.0
        self.done: Future[bytes] = Future()
        self.cancelled = False
        self.has_turn = False
        self.turn_began = self.seconds = 0.0  # seconds of all its turns together


class Turns:
    """Runs at most ``places`` jobs at once, each in a low-priority thread of its own.

    Jobs wait in a queue that is fair by client. A job that has had its turn pauses in its next call of ``progress`` if
    others are waiting, so that a long one keeps nobody waiting for its end.
    """

    def __init__(self, places: int, max_waiting: int, max_seconds: float) -> None:
        self.places, self.max_waiting, self.max_seconds = places, max_waiting, max_seconds
        self.queue: FairQueue[Job] = FairQueue()  # not begun
        self.paused: deque[Job] = deque()
        self.working: set[Job] = set()
        self.changed = threading.Condition()
        self.newest_first = False  # whether a job that has not begun comes before one that is paused
        self.closed = False

    def submit(self, job: Job) -> None:
        """Let a job join. Raises ``Busy`` if the queue is full, most of all of this client's, and ``Closed``."""
        with self.changed:
            if self.closed:
                raise Closed
            can_begin = len(self.working) < self.places and not self.queue
            if not can_begin and len(self.queue) >= self.max_waiting:
                self.make_room(job.client)
            self.queue.append(job)
            self.hand_out()

    def make_room(self, client: Hashable) -> None:
        """Refuse the newest job of the client with the most waiting; raises ``Busy`` if that is this ``client``."""
        refused = self.queue.newest_of_most(client)
        if refused is None:
            raise Busy
        self.queue.remove(refused)
        refused.done.set_exception(Busy())

    def cancel(self, job: Job) -> None:
        """End a job: at once if it waits, otherwise in its next call of ``progress``."""
        with self.changed:
            job.cancelled = True
            if job in self.queue:
                self.queue.remove(job)
                job.done.set_exception(Cancelled())
            self.changed.notify_all()

    def close(self) -> None:
        """Accept no more jobs and end those there are."""
        with self.changed:
            self.closed = True
            jobs = [*self.queue, *self.paused, *self.working]
        for job in jobs:
            self.cancel(job)

    def hand_out(self) -> None:
        """Give free places to those who wait. Called with the lock held."""
        while len(self.working) < self.places:
            begun = Counter(job.client for job in [*self.working, *self.paused])
            can_begin = len(self.queue) and begun.total() < MAX_BEGUN
            if can_begin and (self.newest_first or not self.paused):
                job = self.queue.take(begun)
                self.newest_first = False
                self.give_place(job)
                threading.Thread(target=self.run, args=[job], name="question", daemon=True).start()
            elif self.paused:
                self.newest_first = True
                self.give_place(self.paused.popleft())
            else:
                break
        self.changed.notify_all()

    def give_place(self, job: Job) -> None:
        self.working.add(job)
        job.has_turn, job.turn_began = True, time.monotonic()

    def take_place(self, job: Job) -> None:
        self.working.discard(job)
        job.has_turn = False
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
            self.take_place(job)
            self.hand_out()
        if isinstance(result, BaseException):
            job.done.set_exception(result)
        else:
            job.done.set_result(result)

    def progress(self, job: Job, fraction: float) -> None:
        """Note how far a job is; pause it if its turn is over, and raise ``Cancelled`` or ``OutOfTime``."""
        job.fraction = min(max(fraction, job.fraction), 1.0)
        with self.changed:
            turn = time.monotonic() - job.turn_began
            if turn > TURN_SECONDS and (self.queue or self.paused) and not job.cancelled:
                self.take_place(job)
                self.paused.append(job)
                self.newest_first = True
                self.hand_out()
                self.changed.wait_for(lambda: job.has_turn or job.cancelled)
                if not job.has_turn:  # it was cancelled: it needs no place to end
                    self.paused.remove(job)
                    self.give_place(job)
                turn = 0.0
            if job.cancelled:
                raise Cancelled
            if job.seconds + turn > (self.max_seconds if job.max_seconds is None else job.max_seconds):
                raise OutOfTime
