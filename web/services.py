"""The services that the page, the API and the Learn tab share, each made once."""

from dataclasses import dataclass

from .gauges import Gauges
from .prometheus import Metrics
from .runs.openings import Openings
from .runs.store import Runs
from .serving.attention import AttentionWorkers
from .serving.engines import Engines
from .serving.served_models import ServedModels
from .serving.snapshots import Snapshots
from .settings import Limits, Settings


@dataclass(frozen=True)
class Services:
    """What routes and tabs are wired to."""

    served: ServedModels
    snapshots: Snapshots
    runs: Runs
    openings: Openings
    engines: Engines
    attention: AttentionWorkers
    metrics: Metrics

    @property
    def limits(self) -> Limits:
        return self.served.settings.limits

    def load(self) -> None:
        """Load the checkpoints, then write what the page opens with."""
        self.served.load()
        self.openings.write_all()


def make_services(settings: Settings) -> Services:
    """Everything but the models, which ``Services.load`` loads."""
    served, runs, metrics = ServedModels(settings), Runs(), Metrics()
    engines = Engines(settings.limits, metrics)
    metrics.registry.register(Gauges(engines, runs))
    return Services(
        served=served,
        snapshots=Snapshots(served),
        runs=runs,
        openings=Openings(served, runs),
        engines=engines,
        attention=AttentionWorkers(settings.limits),
        metrics=metrics,
    )
