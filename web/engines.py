"""The engines of the models that are served, each in a thread of its own."""

import threading
import time
from collections.abc import Hashable
from typing import Any

from model import LoadedModel
from model.engine import Closed, Engine
from model.ticket import Ticket

from .job import Job
from .metrics import Metrics, Pace
from .settings import Limits


class Engines:
    """An engine for each model that somebody asks to write; made when first asked for."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.engines: dict[LoadedModel, Engine] = {}
        self.threads: list[threading.Thread] = []
        self.jobs: set[Job] = set()  # those that somebody follows
        self.lock = threading.Lock()
        self.closed = False

    def of(self, gpt: LoadedModel) -> Engine:
        with self.lock:
            if gpt not in self.engines:
                engine = Engine(gpt, max_batch=self.limits.max_batch, max_waiting=self.limits.max_waiting)
                self.add(gpt, engine)
            return self.engines[gpt]

    def add(self, gpt: LoadedModel, engine: Engine) -> None:
        self.engines[gpt] = engine
        if self.closed:
            engine.close()
        thread = threading.Thread(target=engine.run, name=f"engine of {gpt.name}", daemon=True)
        self.threads.append(thread)
        thread.start()

    def start(self, job: Job, gpt: LoadedModel, *tickets: Ticket) -> None:
        """Let tickets that report to ``job`` join; raises ``Busy`` or ``Closed``. In the end comes ``leave``."""
        job.paces = [Pace(self.metrics, gpt.name) for _ in tickets]
        job.start(self.of(gpt), *tickets)
        self.jobs.add(job)

    def leave(self, job: Job, route: str) -> None:
        """Nobody follows it any more: what is left of it ends, and it is counted. Once for each job."""
        job.cancel()
        self.jobs.discard(job)
        self.metrics.count(route, job.outcome)

    def check_open(self) -> None:
        """Raise ``Closed`` once nobody new is served."""
        if self.closed:
            raise Closed

    def deadline(self) -> float:
        """When a request that comes now must have ended, on time.monotonic()."""
        return time.monotonic() + self.limits.max_seconds

    def close(self, grace: float = 0.0) -> None:
        """Take no more requests, let those that run end within ``grace`` seconds, and return when all have."""
        with self.lock:
            self.closed = True
            for engine in self.engines.values():
                engine.close(grace)
        until = time.monotonic() + grace + 5.0  # a step may be long
        for thread in self.threads:
            thread.join(max(0.0, until - time.monotonic()))


def client_of(request: Any) -> Hashable:
    """Whose turn a request takes: everybody at one address shares it."""
    return request.client.host if request.client else None
