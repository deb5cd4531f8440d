"""Visitors' trainings: those in the queue, those running, and finished ones that are kept for a while."""

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import shutil
import string
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Literal

import model
from model.errors import Busy

from ..gauges import TrainingGauges
from ..services import Services
from ..serving.fair_pool import FairPool, Place
from ..serving.served_models import PRIVATE_PREFIX
from .process import TrainingProcess, command
from .training_request import TrainingRequest, seconds_of
from .visitor_cookie import new_visitor
from .work_folder import WorkFolder, remove_leftovers

LEAVING_SECONDS = 15  # for which a training continues while no page watches it: a reload takes less
KEPT_SECONDS = 600  # for which a trained model is kept after its page was closed
MAX_KEPT_TRAININGS = 32  # the one whose visitor has been away longest is removed first

log = logging.getLogger(__name__)

State = Literal["waiting", "starting", "writing", "training", "finishing", "done", "failed"]
ENDED: tuple[State, ...] = ("done", "failed")
REPLACED = {"waiting", "step", "writing", "loan"}  # a late follower gets only the newest of these
KEEP_ALIVE_SECONDS = 5.0
EXPIRY_CHECK_SECONDS = 1.0
CLOSING_CHECK_SECONDS = 0.1
GRACE_SECONDS = 120  # added to the training time, for starting, finishing and a busy machine
WRITING_SECONDS = 300  # the longest time that a model may take to write the text
OUT_OF_TIME = "The time limit of this server was reached."
DISK_FULL = "The server's disk is full. Nothing was kept; try again later."
TOO_MANY = "Too many visitors are waiting to train. Try again in a few minutes."
RETRY_SECONDS = 120  # with this message
SHUT_DOWN = "The server was shut down, and this training ended with it."
GAVE_WAY = (
    "The queue was full, and most of it came from your address, so another visitor took this place. Try again in a few "
    "minutes."
)


class Training:
    """The events of a training, sent from the first one on to everybody who follows it.

    ``events`` holds what the process reports, and events of the kind "state". It is used from the event loop only.
    """

    def __init__(
        self, visitor: str, name: str, request: TrainingRequest, work_folder: Path, client: str | None
    ) -> None:
        self.visitor, self.name, self.request = visitor, name, request
        self.work_folder, self.client = work_folder, client
        self.state: State = "waiting"
        self.events: list[dict[str, Any] | None] = []
        self.newest: dict[str, int] = {}  # index of the newest event, by kind
        self.follower_events: set[asyncio.Event] = set()  # one for each follower
        self.place: Place | None = None
        self.process: TrainingProcess | None = None
        self.stopping = False
        self.archiving = threading.Lock()
        self.n_followers = 0
        self.seen_at = self.ended_at = time.monotonic()

    @property
    def folder(self) -> Path:
        """The folder of the checkpoint that is being trained."""
        return self.work_folder / self.name

    @property
    def text_file(self) -> Path:
        return self.work_folder / "text.txt"

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def tell(self, event: dict[str, Any]) -> None:
        """Add an event and wake all followers. Every state is kept, but only the newest place in the queue."""
        kind = "waiting" if event.get("state") == "waiting" else event["kind"]
        if kind in REPLACED and kind in self.newest:
            self.events[self.newest[kind]] = None
        self.newest[kind] = len(self.events)
        self.events.append(event)
        for changed in self.follower_events:
            changed.set()

    def enter(self, state: State, **more: Any) -> None:
        """Change the state and report it; ``more`` is the place in the queue, the model's token, or why it failed."""
        self.state = state
        if self.ended:
            self.ended_at = time.monotonic()
        self.tell({"kind": "state", "state": state, "name": self.name, **more})

    async def follow(self) -> AsyncGenerator[dict[str, Any] | None]:
        """All events, past and future, to the end; None after every few seconds without one."""
        changed = asyncio.Event()
        self.follower_events.add(changed)
        self.n_followers += 1
        place = 0
        try:
            while True:
                changed.clear()
                while place < len(self.events):
                    event = self.events[place]
                    place += 1
                    if event is not None:
                        yield event
                if self.ended:
                    return
                try:
                    await asyncio.wait_for(changed.wait(), KEEP_ALIVE_SECONDS)
                except TimeoutError:
                    yield None
        finally:
            self.follower_events.discard(changed)
            self.n_followers -= 1
            self.seen_at = time.monotonic()

    def stop(self) -> None:
        """End it early and keep what it has learned so far."""
        self.stopping = True
        if self.process:
            self.process.stop()

    def discard(self) -> None:
        """End it if it is still running, and remove its files."""
        if self.process:
            self.process.kill()
        if not self.ended:
            self.enter("failed", why="This training has ended.")
        self.remove_files()

    def remove_files(self) -> None:
        shutil.rmtree(self.work_folder, ignore_errors=True)


class AlreadyTraining(Exception):
    """The visitor's training has not ended yet."""


class DiskFull(Exception):
    """The disk has no room for a text or a model."""


@contextlib.contextmanager
def writing_files() -> Iterator[None]:
    """Raise ``DiskFull`` instead of the ``OSError`` of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise DiskFull(DISK_FULL) from None


class Trainings:
    """At most one training per visitor, and clients take turns.

    Must be used from the server's event loop, except ``close``.
    """

    def __init__(self, services: Services) -> None:
        self.services, self.limits = services, services.limits
        self.by_visitor: dict[str, Training] = {}
        busy = partial(Busy, TOO_MANY, RETRY_SECONDS)
        self.places = FairPool(self.limits.max_trainings, self.limits.max_waiting_trainings, busy=busy)
        self.tasks: set[asyncio.Task[None]] = set()
        self.root: WorkFolder | None = None
        self.closed = False
        self.lock = threading.Lock()
        services.closers.append(self.close)
        remove_leftovers()
        services.metrics.registry.register(TrainingGauges(self.places))

    def get(self, visitor: str) -> Training | None:
        """The training of a visitor, running or ended."""
        return self.by_visitor.get(visitor)

    def start(self, previous: str, request: TrainingRequest, client: str | None) -> Training:
        """Put a training of ``client`` into the queue, of a visitor with a new id.

        It replaces the training of the visitor with the id ``previous``, if that has ended. An id that somebody else
        may have put into the visitor's browser thus gives no access to it.

        If the queue is full, the newest of the client with the most trainings leaves it. Raises ``Closed``,
        ``AlreadyTraining``, ``Busy`` if that client is this one, or ``DiskFull``; then nothing has given way to it.
        """
        self.services.engines.check_open()
        before = self.by_visitor.get(previous)
        if before and not before.ended:
            raise AlreadyTraining
        self.places.check_room(client)
        with writing_files():
            training = Training(
                new_visitor(), self.new_name(), request, Path(tempfile.mkdtemp(dir=self.make_root())), client
            )
            try:
                if request.text is not None:
                    training.text_file.write_text(request.text, encoding="utf-8", newline="")
            except OSError:
                training.discard()
                raise
        self.forget(previous)
        self.by_visitor[training.visitor] = training
        training.place = self.places.join(client)
        training.place.given.add_done_callback(lambda _: self.begin(training))
        self.report_places()
        if not any(task.get_name() == "expire" for task in self.tasks):
            self.run_task(self.expire(), "expire")
        return training

    def new_name(self) -> str:
        """A name that no model has yet."""
        while True:
            name = PRIVATE_PREFIX + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(4))
            if name not in self.services.served.shared and self.services.served.private.reserve_name(name):
                return name

    def make_root(self) -> Path:
        with self.lock:
            if self.root is None:
                self.root = WorkFolder()
            return self.root.path

    def run_task(self, steps: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(steps, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def begin(self, training: Training) -> None:
        """Start a training if it is its turn, or else end it."""
        if training.place and training.place.is_held:
            training.enter("starting")
            self.run_task(self.train_and_serve(training), "training")
        elif not training.ended:
            self.fail(training, GAVE_WAY)

    def report_places(self) -> None:
        """Tell the trainings that wait their place, and everybody whether any is at work."""
        if self.places.active:
            self.services.is_training.set()
        else:
            self.services.is_training.clear()
        waiting = {training.place: training for training in self.by_visitor.values()}
        for number, place in enumerate(self.places.in_order(), 1):
            waiting[place].enter("waiting", place=number)

    async def train_and_serve(self, training: Training) -> None:
        """Train, then serve the model to the visitor who trained it."""
        try:
            seconds = seconds_of(training.request.size, self.limits) + GRACE_SECONDS
            async with asyncio.timeout(seconds + (WRITING_SECONDS if training.request.writer else 0)):
                with writing_files():
                    await self.run_process(training)
            if not training.ended:
                await self.serve(training)
        except TimeoutError:
            self.fail(training, OUT_OF_TIME)
        except DiskFull as error:
            self.fail(training, str(error))
        except Exception:
            log.exception("training failed")
            self.fail(training, "Training failed: see the server's log.")
        finally:
            if training.state == "failed":  # its process may have written files until it ended
                training.remove_files()
            assert training.place
            self.places.leave(training.place)
            self.report_places()

    async def run_process(self, training: Training) -> None:
        """Pass on what the process reports. If the process ends early, the training has failed."""
        request = training.request
        writer = self.services.served.shared_sources[request.writer] if request.writer else None
        device = self.services.served.settings.device
        words = command(request, self.limits, device, training.text_file, training.folder, writer)
        training.process = TrainingProcess(words, training.work_folder / "errors.txt")
        async with aclosing(training.process.reports()) as reports:
            if training.stopping:  # it was stopped before it started
                training.process.stop()
            async for event in reports:
                if training.ended:
                    return
                match event["kind"]:
                    case "writing" if training.state != "writing":
                        training.enter("writing")
                    case "start":
                        training.enter("training")
                    case "finishing":
                        training.enter("finishing")
                    case "error":
                        is_full = os.strerror(errno.ENOSPC) in event["message"]
                        self.fail(training, DISK_FULL if is_full else event["message"])
                        return
                    case "end":
                        training.tell(event)
                        continue
                training.tell(event)
        if self.closed:
            self.fail(training, SHUT_DOWN)
        elif "end" not in training.newest and not training.ended:
            log.error("a training process ended early: %s", training.process.errors)
            self.fail(training, "The training process ended unexpectedly.")

    def fail(self, training: Training, why: str) -> None:
        """End a training that leaves no model, and remove its files."""
        training.enter("failed", why=why)
        training.discard()

    async def serve(self, training: Training) -> None:
        settings = self.services.served.settings
        loaded = await asyncio.to_thread(model.load, training.folder, settings.device, settings.dtype)
        if training.ended:  # the visitor has left in the meantime
            return
        served = self.services.served.private.add(training.visitor, loaded, training.folder)
        training.enter("done", token=served.token)

    def forget(self, visitor: str) -> None:
        """End a visitor's training and delete everything that came of it."""
        training = self.by_visitor.pop(visitor, None)
        if training is None:
            return
        self.services.forget(visitor)
        training.discard()
        if training.place:
            self.places.give_up(training.place)
        self.report_places()

    async def expire(self) -> None:
        """End the trainings whose visitors have left, and forget models that have expired."""
        while self.by_visitor and not self.closed:
            await asyncio.sleep(EXPIRY_CHECK_SECONDS)
            for visitor in self.to_forget(time.monotonic()):
                self.forget(visitor)

    def to_forget(self, now: float) -> list[str]:
        """The visitors who have left, whose time is up, or who are too many.

        If there are too many, the client with the most loses the one whose visitor has been away longest, those that
        are lent last.
        """
        gone = [visitor for visitor, training in self.by_visitor.items() if self.is_over(training, now)]
        kept = [each for each in self.by_visitor.values() if each.ended and each.visitor not in gone]
        while len(kept) > MAX_KEPT_TRAININGS:
            counts = Counter(each.client for each in kept)
            first = max(kept, key=lambda each: (counts[each.client], not self.is_lent(each), -each.seen_at))
            kept.remove(first)
            gone.append(first.visitor)
        return gone

    def is_over(self, training: Training, now: float) -> bool:
        away = 0.0 if training.n_followers else now - training.seen_at
        if not training.ended:
            return away > LEAVING_SECONDS
        is_left = away > KEPT_SECONDS and not self.is_lent(training)
        return is_left or now - training.ended_at > 60 * self.limits.max_trained_minutes

    def is_lent(self, training: Training) -> bool:
        return self.services.served.private.is_lent(training.visitor)

    def lend(self, training: Training) -> dict[str, Any]:
        """The secret with which the model of a training is lent, "loan", and "until" when, in seconds since 1970.

        Raises ``KeyError`` if there is no model yet.
        """
        left = training.ended_at + 60 * self.limits.max_trained_minutes - time.monotonic()
        until = round(time.time() + left)
        lent = {"loan": self.services.served.private.lend(training.visitor, until), "until": until}
        training.tell({"kind": "loan", **lent})
        return lent

    def withdraw(self, training: Training) -> None:
        """Lend the model of a training no more."""
        self.services.served.private.withdraw(training.visitor)
        training.tell({"kind": "loan", "loan": "", "until": 0})

    def close(self, grace: float = 0.0) -> None:
        """End everything, after ``grace`` seconds in which visitors can stop trainings and download what was learned.

        May be called from any thread but the event loop's.
        """
        until = time.monotonic() + grace
        leaving = [each for each in list(self.by_visitor.values()) if not each.ended and each.n_followers]
        while any(self.get(each.visitor) for each in leaving) and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, CLOSING_CHECK_SECONDS))
        self.closed = True
        for training in list(self.by_visitor.values()):
            if training.process:
                training.process.kill()
        with self.lock:
            if self.root:
                self.root.remove()
                self.root = None
