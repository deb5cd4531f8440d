"""Sending requests to a server and checking it meanwhile."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx

from ..gate import PATIENCE
from ..server import Server

MAX_ERROR_BYTES = 2_000
OWN = ("/health", "/metrics", "/v1", "/look", "/learn", "/train")
ENDLESS = ("/train/events", "/js/")  # one of these streams for as long as a training takes, and one serves files


def until(server: Server, condition: Callable[[], bool], about: Callable[[], object] = lambda: "") -> None:
    """Return once a condition has become true; each request in between makes the server's event loop run."""
    deadline = time.monotonic() + PATIENCE
    with httpx.Client(base_url=server.url, timeout=60) as client:
        while not condition():
            assert time.monotonic() < deadline, f"it never happened: {about()}"
            assert client.get("/health").status_code == 200


def own_routes(server: Server) -> Iterator[tuple[str, str]]:
    """The method and path of every route that is not Gradio's."""
    for method, path in all_routes(server.demo.app.routes):
        if path.startswith(OWN) and not path.startswith(ENDLESS):
            yield method, path


def all_routes(routes: Iterable[Any], above: str = "") -> Iterator[tuple[str, str]]:
    for route in routes:
        path = above + getattr(route, "path", "")
        if getattr(route, "routes", None):
            yield from all_routes(route.routes, path)
        for method in getattr(route, "methods", None) or ():
            yield method, path


def answer_all(server: Server, requests: Iterable[tuple[str, str, bytes]]) -> None:
    """Send requests one after another, and check each answer."""
    failed = []
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for method, path, content in requests:
            headers = {"Content-Type": "application/json"}
            answer = client.request(method, path, content=content or None, headers=headers)
            well = answer.status_code < 500 or answer.status_code == 503
            if not well or (answer.status_code >= 400 and len(answer.content) > MAX_ERROR_BYTES):
                failed.append((method, path, content[:300], answer.status_code, answer.text[:300]))
        assert client.get("/health").status_code == 200
    assert not failed, "\n".join(map(str, failed[:20]))
