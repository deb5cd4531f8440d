"""How uvicorn is run: Gradio builds its configuration and has no option for any of this."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gradio as gr
import gradio.http_server
import uvicorn
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..api.body_limit import LimitBody
from ..services import Services
from ..serving.budget import Budget
from ..settings import Settings
from .answers import CountAnswers
from .bodies import PlainBodies
from .connections import Connections
from .door import Door
from .front import in_front
from .joins import Joins, WatchJoins
from .log import say_things_once

ACCEPTED_AT_ONCE = 64  # connections that are accepted before any of them is looked at: each takes a descriptor


@contextmanager
def own_server(chosen: Settings, budget: Budget) -> Iterator[None]:
    """While a Gradio app is launched in here, its server bounds connections by number and time, and answers by bytes.

    Everything else stays as Gradio has it: the port, the thread, how the server is closed, and what Spaces add.
    """
    most, most_of_one = chosen.limits.max_connections, chosen.limits.max_connections_per_address
    connections = Connections(budget, most, most_of_one, chosen.trusted_proxies)

    def config(app: ASGIApp, **given: Any) -> uvicorn.Config:
        options = {
            "http": connections.protocol,
            "ws": "none",  # nothing here speaks it
            "backlog": ACCEPTED_AT_ONCE,
            "proxy_headers": False,  # client_address.py reads them
            "log_level": chosen.log_level,
            "access_log": False,  # request_log.py writes one
        }
        made = uvicorn.Config(in_front(chosen, Door(CountAnswers(app, budget))), **(given | options))
        say_things_once()
        return made

    module: Any = gradio.http_server
    module.uvicorn = SimpleNamespace(Config=config)
    try:
        yield
    finally:
        module.uvicorn = uvicorn


def bounds(services: Services, demo: gr.Blocks, larger: Mapping[str, int]) -> list[Middleware]:
    """What bounds bodies and Gradio's queue; ``larger`` names the paths that take plain text, and its most bytes."""
    joins = Joins(demo, services.limits, services.tickets)
    return [
        Middleware(LimitBody, limits=services.limits, budget=services.budget, larger=larger),
        Middleware(PlainBodies, texts=tuple(larger)),
        Middleware(WatchJoins, joins=joins),
    ]
