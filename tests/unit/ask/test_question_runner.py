"""The order of jobs, without a clock: the tests let each job take its steps."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.gate import Gate, News
from model.errors import Busy, Closed, OutOfTime
from model.lens.progress import Cancelled
from web.ask import question_runner as module
from web.ask.question_runner import MAX_BEGUN, Job, QuestionRunner, duration


class Stepper:
    """Jobs that record when they begin, and take a step whenever the test allows it."""

    def __init__(self, places: int = 1, max_waiting: int = 9, max_seconds: float = 60.0) -> None:
        self.runner = QuestionRunner(places, max_waiting, max_seconds)
        self.news = News()
        self.begun: list[str] = []
        self.gates: dict[str, Gate] = {}
        self.steps: list[str] = []

    def submit(self, name: str, client: str = "me", n_steps: int = 1) -> Job:
        gate = self.gates[name] = Gate(self.news)

        def compute(progress: Callable[[float], None]) -> bytes:
            self.begun.append(name)
            self.news.tell()
            for step in range(n_steps):
                while not gate.pass_through(lambda: job.cancelled):
                    progress(0.0)
                self.steps.append(name)
                self.news.tell()
                progress((step + 1) / n_steps)
            return name.encode()

        job = Job(client, compute)
        self.runner.submit(job)
        return job

    def has_begun(self, *names: str) -> None:
        self.news.wait_until(lambda: self.begun == list(names))

    def step(self, name: str) -> None:
        self.gates[name].release()


@pytest.fixture
def stepper() -> Iterator[Stepper]:
    stepper = Stepper()
    yield stepper
    end(stepper)


def end(stepper: Stepper) -> None:
    stepper.runner.close()
    stepper.news.tell()


def test_clients_take_turns(stepper: Stepper) -> None:
    first = stepper.submit("first")
    jobs = [stepper.submit("second"), stepper.submit("third"), stepper.submit("other", client="you")]
    stepper.has_begun("first")
    for name in ("first", "second", "third", "other"):
        stepper.step(name)
    assert first.done.result(20) == b"first"
    assert {job.done.result(20) for job in jobs} == {b"second", b"third", b"other"}
    assert stepper.begun.index("other") < stepper.begun.index("third")


def test_concurrency_is_limited() -> None:
    stepper = Stepper(places=2)
    jobs = [stepper.submit(name) for name in "abc"]
    stepper.news.wait_until(lambda: len(stepper.begun) == 2)
    assert stepper.runner.running.active.total() == 2 and len(stepper.runner.running.queue) == 1
    for name in "abc":
        stepper.step(name)
    assert [job.done.result(20) for job in jobs] == [b"a", b"b", b"c"]
    end(stepper)


def test_long_computation_yields_and_resumes(stepper: Stepper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_SECONDS", -1.0)  # every time slice is over at the next step
    long = stepper.submit("long", n_steps=2)
    stepper.has_begun("long")
    short = stepper.submit("short")
    stepper.step("long")
    stepper.has_begun("long", "short")
    assert not long.done.done() and long.fraction == 0.5
    stepper.step("short")
    stepper.step("long")
    assert (short.done.result(20), long.done.result(20)) == (b"short", b"long")
    assert stepper.steps == ["long", "short", "long"]


def test_started_computations_are_limited(stepper: Stepper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_SECONDS", -1.0)
    names = [str(i) for i in range(MAX_BEGUN + 2)]
    jobs = [stepper.submit(name, client=name, n_steps=2) for name in names]
    for _ in range(2):
        for name in names:
            stepper.step(name)
            assert stepper.runner.begun.active.total() <= MAX_BEGUN
    assert sorted(job.done.result(20).decode() for job in jobs) == names


def test_long_computations_of_one_client_leave_a_place_for_another(
    stepper: Stepper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE_SECONDS", -1.0)
    many = [stepper.submit(str(i), n_steps=9) for i in range(MAX_BEGUN + 1)]
    stepper.has_begun("0")
    other = stepper.submit("other", client="you")
    stepper.step("0")  # its time slice is over, and none of the others has to end
    stepper.has_begun("0", "other")
    monkeypatch.undo()
    stepper.step("other")
    assert other.done.result(20) == b"other" and not any(job.done.done() for job in many)


def test_cancelling_in_every_state(stepper: Stepper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE_SECONDS", -1.0)
    paused = stepper.submit("paused", n_steps=2)
    stepper.has_begun("paused")
    working = stepper.submit("working")
    stepper.step("paused")
    stepper.has_begun("paused", "working")
    never_ran, waiting = stepper.submit("never ran"), stepper.submit("waiting")
    runner = stepper.runner
    assert runner.begun.active.total() == MAX_BEGUN - 1 and len(runner.begun.queue) == 1
    for job in (waiting, never_ran, paused, working):
        runner.cancel(job)
        stepper.news.tell()
        with pytest.raises(Cancelled):
            job.done.result(20)
    for pool in (runner.begun, runner.running):
        assert not pool.active and not pool.queue
    assert not runner.jobs


def test_full_queue_refuses_the_busiest_client() -> None:
    stepper = Stepper(max_waiting=4)
    for name in ("working", "one", "two"):
        stepper.submit(name)
    waiting = [stepper.submit(name) for name in ("three",)]
    with pytest.raises(Busy):
        stepper.submit("four")
    stepper.submit("other", client="you")
    stepper.submit("another", client="him")  # the newest job of a client with more jobs makes room
    assert isinstance(waiting[0].done.exception(20), Busy)
    end(stepper)


def test_zero_queue_length_still_allows_running() -> None:
    stepper = Stepper(max_waiting=0)
    job = stepper.submit("one")
    stepper.has_begun("one")
    with pytest.raises(Busy):
        stepper.submit("two", client="you")
    stepper.step("one")
    assert job.done.result(20) == b"one"
    end(stepper)


def test_deadline_and_close_end_computations() -> None:
    stepper = Stepper(max_seconds=0.0)
    job = stepper.submit("one")
    stepper.step("one")
    with pytest.raises(OutOfTime):
        job.done.result(20)
    stepper.runner.close()
    with pytest.raises(Closed):
        stepper.submit("two")


@pytest.mark.parametrize(
    ("spent", "fraction", "took"),
    [
        (100.0, 0.01, "would take 3 hours or more"),
        (100.0, 0.1, ""),
        (1.0, 0.001, ""),
        (4.0, 0.0, ""),
        (6.0, 0.0, "would take 50 minutes or more"),
        (1001.0, 0.9, "took longer"),
    ],
)
def test_a_computation_that_would_take_too_long_ends_early(spent: float, fraction: float, took: str) -> None:
    runner = QuestionRunner(1, 9, 1000.0)
    job = Job("me", lambda progress: progress(fraction) or b"read")
    job.seconds = spent
    runner.submit(job)
    if not took:
        assert job.done.result(20) == b"read"
        return
    with pytest.raises(OutOfTime, match=f"^This {took}, but the server allows 17 minutes for a question"):
        job.done.result(20)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1, "1 second"), (119, "119 seconds"), (120, "2 minutes"), (7_000, "117 minutes"), (7_300, "2 hours")],
)
def test_durations_are_said_in_the_unit_that_fits(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_exceptions_are_passed_on(stepper: Stepper) -> None:
    def fail(_progress: Any) -> bytes:
        raise FloatingPointError("not a number")

    job = Job("me", fail)
    stepper.runner.submit(job)
    with pytest.raises(FloatingPointError):
        job.done.result(20)
