"""Checks that routes and endpoints make before they compute anything, and the counting of refused requests."""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gradio as gr
from starlette.datastructures import Address

from model import LoadedModel

from ..client import client_of
from ..prometheus import outcome_of
from ..services import Services
from .errors import REFUSALS, ApiError, as_api_error


def check_loaded(services: Services) -> None:
    if not services.served.ready.done():
        raise ApiError(503, "The models are still loading. Try again in a moment.", code="loading")


def model_to_write_with(services: Services, name: object) -> LoadedModel:
    """The served model of that name. Raises ``InputError``, ``ApiError`` while loading, and ``Closed``."""
    services.engines.check_open()
    check_loaded(services)
    return services.served.find(name)


async def model_to_read_with(services: Services, name: object, client: Hashable) -> LoadedModel:
    """A model that only reads a text: a served one, or the snapshot NAME@STEP, which may have to be loaded first."""
    services.engines.check_open()
    check_loaded(services)
    if services.snapshots.is_snapshot(name):
        return await services.snapshot_pool.run(client, services.snapshots.find, name)
    return services.served.find(name)


@contextmanager
def count_refusal(services: Services, route: str) -> Iterator[None]:
    """Count a request that is refused in this block."""
    try:
        yield
    except Exception as error:
        services.metrics.count(route, outcome_of(error))
        raise


@contextmanager
def refusals(services: Services, route: str = "") -> Iterator[None]:
    """Turn refusals into the error that Gradio shows to the caller, and count them for ``route``."""
    try:
        services.engines.check_open()
        yield
    except REFUSALS as error:
        if route:
            services.metrics.count(route, outcome_of(error))
        raise gr.Error(as_api_error(error).detail, print_exception=False) from None


class ToolCall(NamedTuple):
    """What an endpoint that is called as an MCP tool gets in place of Gradio's request."""

    client: Address | None


def store_answer(services: Services, request: gr.Request | ToolCall, answer: bytes) -> Any:
    """What an endpoint returns in place of a JSON answer, which Gradio fills in later; a tool returns the answer."""
    if isinstance(request, ToolCall):
        return answer
    with refusals(services):
        return services.uncollected_answers.store(answer, request.session_hash or "", client_of(request))
