"""The services behind the routes, without a port."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from model import LoadedModel
from web.services import Services, make_services
from web.settings import Settings


@pytest.fixture(scope="session")
def services(checkpoints: Path) -> Iterator[Services]:
    """The services with the models tiny (3 layers x 4 heads) and other (2 x 2)."""
    services = make_services(Settings(checkpoints=(str(checkpoints / "tiny"), str(checkpoints / "other"))))
    services.load()
    yield services
    services.engines.close()


@pytest.fixture(scope="session")
def loaded(services: Services) -> LoadedModel:
    return services.served.models["tiny"]
