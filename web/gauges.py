"""Gauges of engines, caches, questions and trainings, read when the metrics are requested."""

from collections import Counter
from collections.abc import Callable, Iterable, Sized
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from model.serving.engine import Engine

from .ask.service import AnswerService
from .runs.store import Runs
from .serving.budget import Budget
from .serving.engines import Engines
from .serving.fair_pool import FairPool


class Gauges:
    """A Prometheus collector for the gauges of engines, cached runs and questions."""

    def __init__(
        self,
        engines: Engines,
        runs: Runs,
        answers: AnswerService,
        budget: Budget,
        model_name: Callable[[str], str] = str,
    ) -> None:
        """``model_name`` maps a model's name to the one used in the metrics; models that share it are added up."""
        self.engines, self.runs, self.answers, self.budget, self.model_name = engines, runs, answers, budget, model_name

    def collect(self) -> Iterable[Metric]:
        batch = GaugeMetricFamily("headscope_batch_size", "Texts being written.", labels=["model"])
        waiting = GaugeMetricFamily("headscope_waiting", "Texts waiting for a place in the batch.", labels=["model"])
        compiled = GaugeMetricFamily(
            "headscope_compiled", "1 if compiled loops write the texts, 0 if torch does.", labels=["model"]
        )
        products = GaugeMetricFamily(
            "headscope_products",
            "1 for the matrix products that write the texts: the precision of their inputs, and whether in tiles.",
            labels=["model", "kind"],
        )
        tokens = CounterMetricFamily(
            "headscope_tokens",
            "Tokens read, taken over from texts with the same beginning, and written.",
            labels=["model", "kind"],
        )
        numbers: dict[str, Counter[str]] = {}
        kinds: set[tuple[str, str]] = set()
        for loaded, engine in self.engines.all():
            name = self.model_name(loaded.name)
            reader = engine.reader if isinstance(engine, Engine) else None
            if reader:
                kinds.add((name, reader.products))
            numbers.setdefault(name, Counter()).update(
                batch=len(engine.active),
                waiting=len(engine.queue),
                read=engine.tokens_read,
                shared=engine.tokens_shared,
                written=engine.tokens_written,
                compiled=bool(reader and reader.writes_compiled),
            )
        for name, counts in numbers.items():
            batch.add_metric([name], counts["batch"])
            waiting.add_metric([name], counts["waiting"])
            compiled.add_metric([name], min(counts["compiled"], 1))
            for kind in ("read", "shared", "written"):
                tokens.add_metric([name, kind], counts[kind])
        for labels in sorted(kinds):
            products.add_metric(labels, 1)
        yield from (batch, waiting, compiled, products, tokens)
        yield GaugeMetricFamily(
            "headscope_runs_cached",
            "Texts of the page that are cached with their attention weights.",
            len(self.runs.cache),
        )
        yield GaugeMetricFamily(
            "headscope_runs_cached_bytes",
            "Bytes of the cached texts: attention weights, residual streams.",
            self.runs.nbytes,
        )
        yield CounterMetricFamily(
            "headscope_read_again",
            "Texts of the page read again, because something requested of them was not kept.",
            self.runs.exact.n_read,
        )
        yield GaugeMetricFamily(
            "headscope_budget_held_bytes", "Bytes of the memory budget that requests hold.", self.budget.held
        )
        yield GaugeMetricFamily("headscope_budget_bytes", "Bytes that requests may hold.", self.budget.n_bytes)
        runner = self.answers.runner
        asked = GaugeMetricFamily("headscope_questions", "Questions for Ask that have no answer yet.", labels=["state"])
        n_begun, n_running = runner.begun.active.total(), runner.running.active.total()
        asked.add_metric(["computing"], n_running)
        asked.add_metric(["paused"], max(0, n_begun - n_running))
        asked.add_metric(["waiting"], len(runner.begun.queue))
        yield asked


class HasConnections(Protocol):
    @property
    def open(self) -> Sized: ...

    @property
    def lag(self) -> float:
        """Seconds by which the event loop was late when it last looked at the connections."""


class ConnectionGauges:
    """A collector for Prometheus: open connections, and how late the event loop is."""

    def __init__(self, connections: HasConnections) -> None:
        self.connections = connections

    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("headscope_connections", "Open connections.", len(self.connections.open))
        yield GaugeMetricFamily(
            "headscope_event_loop_lag_seconds",
            "How late the event loop was when it last looked at the connections, once a second.",
            self.connections.lag,
        )


class TrainingGauges:
    """A collector for Prometheus: the numbers of running and waiting trainings."""

    def __init__(self, places: FairPool) -> None:
        self.places = places

    def collect(self) -> Iterable[Metric]:
        trainings = GaugeMetricFamily("headscope_trainings", "Trainings of visitors' GPTs.", labels=["state"])
        trainings.add_metric(["training"], self.places.active.total())
        trainings.add_metric(["waiting"], len(self.places.queue))
        yield trainings
