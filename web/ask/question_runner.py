"""Background computations that take turns: a long one pauses while others wait, and continues later."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future

import torch

from model import InputError
from model.errors import Busy, Closed, OutOfTime, counted
from model.lens.progress import Cancelled, Progress

from ..serving.fair_pool import FairPool, Place
from ..settings import NICENESS

log = logging.getLogger(__name__)

SLICE_SECONDS = 1.0  # after which a computation pauses for others
ESTIMATE_SECONDS = 5.0  # of a computation, after which its progress tells how long it takes
MIN_FRACTION = 0.002  # assumed to be done by then, even if less is: early steps may be slow
DOUBT = 1.5  # factor by which an estimate may exceed the limit, since parts of a computation differ in speed
MAX_BEGUN = 4  # computations that have started, running or paused


def lower_priority() -> None:
    """Give this thread, and those that it starts, a lower priority than the threads that write texts."""
    if sys.platform == "linux":  # elsewhere this would set the priority of the whole process
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def out_of_time(max_seconds: float, less: str, expected: float | None = None) -> OutOfTime:
    """The error of a computation that took too long, or would take ``expected`` seconds or more; ``less`` may not."""
    took = "took longer" if expected is None else f"would take {duration(expected)} or more"
    allowed = f"the server allows {duration(max_seconds)} for a question (--max-question-seconds)"
    return OutOfTime(f"This {took}, but {allowed}: ask about {less}.")


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
        self.begun: Place | None = None  # its place among the jobs that have begun
        self.running: Place | None = None  # its newest place among those that run
        self.slice_began = 0.0
        self.seconds = 0.0  # the total length of its finished time slices


class QuestionRunner:
    """Runs at most ``max_running`` jobs at once, each for ``max_seconds`` and in a low-priority thread of its own.

    A few have begun, and take turns at running: when its time slice is over, a job pauses in its next call of
    ``progress`` if others wait, so that no client has to wait for a long job to end. One client cannot begin all of
    them.
    """

    def __init__(self, max_running: int, max_waiting: int, max_seconds: float) -> None:
        self.max_seconds = max_seconds
        n_begun = min(MAX_BEGUN, max_running + max_waiting)
        self.begun = FairPool(n_begun, max_running + max_waiting - n_begun, max_per_client=max(1, n_begun - 1))
        self.running = FairPool(max_running, 0)
        self.jobs: set[Job] = set()
        self.closed = False

    def submit(self, job: Job) -> None:
        """Queue a job. Raises ``Busy`` if the queue is full and no client has more jobs in it, and ``Closed``."""
        with self.begun.lock:
            if self.closed:
                raise Closed
            job.begun = place = self.begun.join(job.client)
            self.jobs.add(job)
        place.given.add_done_callback(lambda _: self.begin(job, place))

    def begin(self, job: Job, place: Place) -> None:
        """Start a job's thread if it has been given a place, or end it."""
        if place.is_held:
            threading.Thread(target=self.run, args=[job, place], name="question", daemon=True).start()
        else:
            self.end(job, Cancelled() if job.cancelled else Busy())

    def cancel(self, job: Job) -> None:
        """End a job: immediately if it waits, otherwise in its next call of ``progress``."""
        job.cancelled = True
        for pool, place in ((self.begun, job.begun), (self.running, job.running)):
            if place:
                pool.give_up(place)

    def close(self) -> None:
        """Accept no more jobs and cancel the existing ones."""
        with self.begun.lock:
            self.closed = True
            jobs = list(self.jobs)
        for job in jobs:
            self.cancel(job)

    def run(self, job: Job, place: Place) -> None:
        """The thread of a job."""
        lower_priority()
        result: bytes | BaseException
        try:
            self.begin_slice(job)
            with torch.no_grad():
                result = job.compute(lambda fraction: self.progress(job, fraction))
        except BaseException as error:
            result = error
            if not isinstance(error, InputError | Cancelled | OutOfTime | Busy):
                log.exception("A question failed")
        if job.running:
            self.running.leave(job.running)
        self.begun.leave(place)
        self.end(job, result)

    def end(self, job: Job, result: bytes | BaseException) -> None:
        self.jobs.discard(job)
        if isinstance(result, BaseException):
            job.done.set_exception(result)
        else:
            job.done.set_result(result)

    def begin_slice(self, job: Job) -> None:
        """Wait until a job may run. Raises ``Cancelled``."""
        job.running = self.running.join(job.client, continues=True)
        if job.cancelled:  # before there was this place to give up
            self.running.give_up(job.running)
        try:
            job.running.given.result()
        except CancelledError:
            raise Cancelled from None
        job.slice_began = time.monotonic()

    def progress(self, job: Job, fraction: float) -> None:
        """Record a job's progress, and pause it if its time slice is over. Raises ``Cancelled`` or ``OutOfTime``."""
        job.fraction = min(max(fraction, job.fraction), 1.0)
        seconds = time.monotonic() - job.slice_began
        if seconds > SLICE_SECONDS and self.running.queue and job.running and not job.cancelled:
            self.running.leave(job.running)
            job.seconds += seconds
            self.begin_slice(job)
            seconds = 0.0
        if job.cancelled:
            raise Cancelled
        most, spent = self.max_seconds, job.seconds + seconds
        if spent > most:
            raise out_of_time(most, job.less)
        expected = spent / max(job.fraction, MIN_FRACTION)
        if spent > ESTIMATE_SECONDS and expected > DOUBT * most:
            raise out_of_time(most, job.less, expected)
