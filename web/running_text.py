"""A text of the page while it is written: its run, and another each time its context shifts."""

import threading

from model import Step
from model.ticket import Event, PromptPart, Shift

from .job import Job, is_last
from .runs import Run, Runs


class RunningText:
    """Takes what an engine tells of a text; ``run`` is the newest. Any thread may end it, and then it takes no more."""

    def __init__(self, runs: Runs, run: Run) -> None:
        self.runs, self.run = runs, run
        self.ended = False
        self.lock = threading.Lock()

    def take(self, events: list[tuple[int, Event]], job: Job) -> None:
        """Keep what has happened. After a stop of its job the last step only reads."""
        with self.lock:
            for _, event in events:
                if self.ended:
                    return
                if isinstance(event, Shift):
                    self.run.end()
                    self.run = self.runs.shifted(self.run, event.ids)
                elif isinstance(event, PromptPart | Step):
                    self.run.take(event, last=job.cancelled.is_set() and is_last(event))

    def end(self) -> None:
        """Nothing more will be written."""
        self.ended = True  # before the lock: whoever holds it need not finish
        with self.lock:
            self.run.end()
