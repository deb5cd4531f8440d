"""How uvicorn is run: Gradio builds its configuration and has no option for any of this."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gradio.http_server
import uvicorn
from starlette.types import ASGIApp

from ..settings import Limits
from .connections import Connections
from .log import say_things_once

ACCEPTED_AT_ONCE = 64  # connections that are accepted before any of them is looked at: each takes a descriptor


@contextmanager
def own_server(limits: Limits, trusted_proxies: int) -> Iterator[None]:
    """While a Gradio app is launched in here, its server bounds connections by number and time.

    Everything else stays as Gradio has it: the port, the thread, how the server is closed, and what Spaces add.
    """
    connections = Connections(limits.max_connections, limits.max_connections_per_address, trusted_proxies)

    def config(app: ASGIApp, **given: Any) -> uvicorn.Config:
        options = {
            "http": connections.protocol,
            "ws": "none",  # nothing here speaks it
            "backlog": ACCEPTED_AT_ONCE,
            "proxy_headers": False,  # client_address.py reads them
        }
        made = uvicorn.Config(app, **(given | options))
        say_things_once()
        return made

    module: Any = gradio.http_server
    module.uvicorn = SimpleNamespace(Config=config)
    try:
        yield
    finally:
        module.uvicorn = uvicorn
