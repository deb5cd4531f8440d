"""The scores of all heads along trainings on the Hub, and the steps that are still to be scored."""

import threading
from typing import Any

NameAndStep = tuple[str, int]  # of a served model, and a step of its training
StepRow = dict[str, list[list[float]]]  # the scores of all heads, [layer][head], by role


class StepScores:
    """The scores known so far, and a queue of steps; ``web/ask/score_steps.py`` computes them. For any thread."""

    def __init__(self) -> None:
        self.known: dict[str, dict[int, StepRow]] = {}  # by model and step
        self.unscored: dict[NameAndStep, None] = {}  # the next one last
        self.changed = threading.Condition()  # guards both

    def load(self, name: str, rows: dict[int, StepRow]) -> None:
        """Begin with the scores of a model's steps that were kept."""
        with self.changed:
            self.known[name] = rows

    def rows(self, name: str) -> dict[int, StepRow]:
        """The scores of a model's steps so far."""
        with self.changed:
            return dict(self.known.get(name, {}))

    def report(self, name: str) -> dict[str, Any]:
        """The scores of a model's steps, and whether more of them will be known."""
        with self.changed:
            rows = [{"step": step, **row} for step, row in sorted(self.rows(name).items())]
            return {"heads": rows, "scoring": name not in self.known or any(of == name for of, _ in self.unscored)}

    def request(self, name: str, step: int) -> None:
        """Let the heads of this step be scored next, if it is one of a training on the Hub and has no scores."""
        with self.changed:
            if step not in self.known.get(name, {step: None}):
                self.unscored.pop((name, step), None)
                self.unscored[name, step] = None
                self.changed.notify_all()

    def next(self) -> NameAndStep:
        """The step that was asked for last, once there is one."""
        with self.changed:
            self.changed.wait_for(lambda: self.unscored)
            return next(reversed(self.unscored))

    def record(self, name: str, step: int, scores: StepRow | None) -> None:
        """Record the scores of a step; None if they could not be computed."""
        with self.changed:
            self.unscored.pop((name, step), None)
            if scores is not None:
                self.known[name][step] = scores
            self.changed.notify_all()
