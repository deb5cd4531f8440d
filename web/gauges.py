"""What engines and caches hold, read whenever the metrics are asked for."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from .questions.service import Questions
from .runs.store import Runs
from .serving.engines import Engines


class Gauges:
    """A collector for Prometheus."""

    def __init__(self, engines: Engines, runs: Runs, questions: Questions) -> None:
        self.engines, self.runs, self.questions = engines, runs, questions

    def collect(self) -> Iterable[Metric]:
        batch = GaugeMetricFamily("headscope_batch_size", "Texts being written.", labels=["model"])
        waiting = GaugeMetricFamily("headscope_waiting", "Texts waiting for a place in the batch.", labels=["model"])
        tokens = CounterMetricFamily("headscope_tokens", "Tokens read and written.", labels=["model", "kind"])
        for loaded, engine in list(self.engines.engines.items()):
            batch.add_metric([loaded.name], len(engine.at_work))
            waiting.add_metric([loaded.name], len(engine.queue))
            tokens.add_metric([loaded.name, "read"], engine.tokens_read)
            tokens.add_metric([loaded.name, "written"], engine.tokens_written)
        yield from (batch, waiting, tokens)
        yield GaugeMetricFamily(
            "headscope_traces_cached", "Texts whose attention weights are kept.", len(self.runs.runs)
        )
        yield GaugeMetricFamily("headscope_traces_cached_bytes", "Bytes they take.", self.runs.nbytes)
        turns = self.questions.turns
        asked = GaugeMetricFamily("headscope_questions", "Questions that wait for an answer.", labels=["state"])
        asked.add_metric(["computing"], len(turns.working))
        asked.add_metric(["paused"], len(turns.paused))
        asked.add_metric(["waiting"], len(turns.queue))
        yield asked
