"""A text of the page while it is written: its run, and another each time its context shifts."""

import threading

from model import Step
from model.serving.sequence import ContextShift, Cut, Event, PromptPart, is_last

from .run import Run
from .store import Runs


class RunWriter:
    """Takes the events of one text into its run; ``run`` is the newest. Any thread may end it."""

    def __init__(self, runs: Runs, run: Run) -> None:
        self.runs, self.run = runs, run
        self.ended = False
        self.cut: str | None = None  # the reason why the text ended, other than its last token
        self.lock = threading.Lock()

    def take(self, events: list[tuple[int, Event]], stopped: bool) -> None:
        """Keep what has happened. Once ``stopped``, the last step only reads."""
        with self.lock:
            for _, event in events:
                if self.ended:
                    return
                if isinstance(event, ContextShift):
                    self.runs.end(self.run)
                    self.run = self.runs.shifted(self.run, event.ids)
                elif isinstance(event, PromptPart | Step):
                    self.run.take(event, last=stopped and is_last(event))
                elif isinstance(event, Cut):
                    self.cut = event.reason

    def end(self) -> None:
        """Nothing more will be written."""
        self.ended = True  # before the lock: whoever holds it need not finish
        with self.lock:
            self.runs.end(self.run)
