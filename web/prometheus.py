"""Counters and histograms for the operator of the server, in Prometheus' text format."""

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from model.errors import Busy, Closed, InputError, OutOfTime
from model.lens.progress import Cancelled

FIRST_TOKEN = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds
NEXT_TOKEN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)


def outcome_of(error: BaseException) -> str:
    """The name that the metrics give to the outcome of a request which an error ended."""
    match error:
        case Busy() | HTTPException(status_code=429):
            return "busy"
        case OutOfTime():
            return "deadline"
        case Cancelled() | ClientDisconnect():
            return "cancelled"
        case InputError() | ValidationError() | HTTPException() | Closed():
            return "refused"
    return "failed"


class Metrics:
    """The counters and histograms of one app; ``gauges.py`` has the gauges of engines and caches."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, model_name: Callable[[str], str] = str) -> None:
        """``model_name`` maps a model's name to the one used in the metrics."""
        self.model_name = model_name
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, processor time and file descriptors, on Linux
        self.requests = Counter(
            "headscope_requests",
            "Requests that ended, by route and outcome.",
            ["route", "outcome"],
            registry=self.registry,
        )
        self.first_token = Histogram(
            "headscope_first_token_seconds",
            "Time from a request to its first token.",
            ["model"],
            buckets=FIRST_TOKEN,
            registry=self.registry,
        )
        self.next_token = Histogram(
            "headscope_next_token_seconds",
            "Time from one token of a text to the next.",
            ["model"],
            buckets=NEXT_TOKEN,
            registry=self.registry,
        )

        self.by_model: dict[tuple[str, bool], Histogram] = {}

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def count(self, route: str, outcome: str) -> None:
        """Count a request that ended; ``outcome`` is "ok", or one of those that ``outcome_of`` gives to errors."""
        self.requests.labels(route, outcome).inc()

    def token(self, model: str, seconds: float, *, first: bool) -> None:
        """Record a token that came ``seconds`` after the request if ``first``, otherwise after the previous token."""
        name = self.model_name(model)
        histogram = self.by_model.get((name, first))
        if histogram is None:  # cached, because looking it up by its labels takes longer than recording
            histogram = (self.first_token if first else self.next_token).labels(name)
            self.by_model[name, first] = histogram
        histogram.observe(seconds)
