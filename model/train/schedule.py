"""When a run validates, samples and keeps a snapshot: after certain steps, or at certain fractions of its time."""

from typing import Protocol

from .settings import TrainSettings, log_spaced

EVALUATIONS = 12  # in a run with a time limit
SAMPLES = 6
SNAPSHOTS_LOG_FROM = 0.05  # fraction of the time after which the spacing of the snapshots becomes logarithmic


class Schedule(Protocol):
    """Queried once per step; ``done`` is the completed fraction of the run. At the end of a run, all are due."""

    def evaluation_due(self, step: int, done: float) -> bool: ...

    def sample_due(self, step: int, done: float) -> bool: ...

    def snapshot_due(self, step: int, done: float) -> bool: ...


class ByStep:
    """For a run of a known number of steps."""

    def __init__(self, settings: TrainSettings) -> None:
        self.settings, self.snapshots = settings, settings.snapshot_steps()

    def evaluation_due(self, step: int, done: float) -> bool:
        return step % self.settings.eval_every == 0 or done >= 1

    def sample_due(self, step: int, done: float) -> bool:
        every = self.settings.sample_every
        return every > 0 and (step % every == 0 or done >= 1)

    def snapshot_due(self, step: int, done: float) -> bool:  # noqa: ARG002 - the steps are known
        return step in self.snapshots


class ByClock:
    """For a run with a time limit, whose number of steps is not known in advance."""

    def __init__(self, settings: TrainSettings, done: float = 0.0) -> None:
        self.settings = settings
        self.evaluations = Marks([i / EVALUATIONS for i in range(1, EVALUATIONS + 1)], done)
        self.samples = Marks([i / SAMPLES for i in range(1, SAMPLES + 1)] if settings.sample_every else [], done)
        places = log_spaced(settings.snapshots, SNAPSHOTS_LOG_FROM, 1.0) if settings.snapshots > 1 else [1.0]
        self.snapshots = Marks([*places[:-1], 1.0] if settings.snapshots else [], done)

    def evaluation_due(self, step: int, done: float) -> bool:  # noqa: ARG002 - the clock decides
        return self.evaluations.passed(done)

    def sample_due(self, step: int, done: float) -> bool:  # noqa: ARG002
        return self.samples.passed(done)

    def snapshot_due(self, step: int, done: float) -> bool:
        return self.snapshots.passed(0.0 if step == 0 else done)


class Marks:
    """Fractions of a run in ascending order, each passed once; a slow step may cross several."""

    def __init__(self, places: list[float], done: float) -> None:
        self.places = [place for place in places if place > done or done == 0.0]

    def skip(self, until: float) -> None:
        """Skip the marks before ``until``, but never the last one."""
        self.places = [place for place in self.places if place >= min(until, 1.0)]

    def passed(self, done: float) -> bool:
        n_passed = sum(place <= done for place in self.places)
        del self.places[:n_passed]
        return n_passed > 0
