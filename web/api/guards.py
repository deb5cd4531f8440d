"""What routes and endpoints check before anything is computed, and the count of what they refuse."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
from pydantic import ValidationError

from model import InputError, LoadedModel
from model.serving.engine import Closed
from model.serving.fair_queue import Busy

from ..ask.turns import OutOfTime
from ..client import client_of
from ..services import Services
from ..serving.inputs import find_model
from ..serving.remote_engine import EngineLost
from .errors import ApiError, as_api_error


def check_loaded(services: Services) -> None:
    if not services.served.ready.done():
        raise ApiError(503, "The models are still loading. Try again in a moment.", code="loading")


def model_to_write_with(services: Services, name: object) -> LoadedModel:
    """The model of that name, once requests are answered. Raises ``InputError``, ``ApiError`` and ``Closed``."""
    services.engines.check_open()
    check_loaded(services)
    return find_model(services.served, name)


async def model_to_read_with(services: Services, name: object, client: Hashable) -> LoadedModel:
    """The same for what only reads a text, which the snapshot NAME@STEP can do, too. It may have to be loaded."""
    services.engines.check_open()
    check_loaded(services)
    if services.snapshots.is_snapshot(name):
        return await services.trace_workers.run(client, services.snapshots.model_or_snapshot, name)
    return find_model(services.served, name)


@contextmanager
def count_refusal(services: Services, route: str) -> Iterator[None]:
    """Count a request that is refused here."""
    try:
        yield
    except Exception as error:
        services.metrics.count(route, as_api_error(error).outcome)
        raise


@contextmanager
def refusals(services: Services, route: str = "") -> Iterator[None]:
    """What is refused, as the error that Gradio shows to the caller; counted for ``route``."""
    try:
        services.engines.check_open()
        yield
    except (InputError, ValidationError, Busy, Closed, OutOfTime, EngineLost) as error:
        told = as_api_error(error)
        if route:
            services.metrics.count(route, told.outcome)
        raise gr.Error(told.message, print_exception=False) from None


def store_answer(services: Services, request: gr.Request, answer: bytes) -> Any:
    """What an endpoint returns to Gradio for an answer in JSON."""
    with refusals(services):
        return services.uncollected_answers.store(answer, request.session_hash or "", client_of(request))
