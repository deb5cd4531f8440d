"""How many trainings there are, read whenever the metrics are asked for."""

from collections.abc import Iterable, Sized

from prometheus_client.core import GaugeMetricFamily, Metric


class TrainingGauges:
    """A collector for Prometheus: the trainings ``at_work``, and the ``line`` of those that wait."""

    def __init__(self, at_work: Sized, line: Sized) -> None:
        self.at_work, self.line = at_work, line

    def collect(self) -> Iterable[Metric]:
        trainings = GaugeMetricFamily("headscope_trainings", "GPTs that visitors train.", labels=["state"])
        trainings.add_metric(["training"], len(self.at_work))
        trainings.add_metric(["waiting"], len(self.line))
        yield trainings
