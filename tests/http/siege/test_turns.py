"""Computations over whole texts: a few at a time, in turn by address, with a bounded queue."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.gate import PATIENCE
from helpers.runs import written
from helpers.server import Server
from helpers.siege.watch import until
from web.services import PAGE_PLACES, Services
from web.serving.fair_pool import FairPool
from web.settings import Limits

WAITING = 3
CROWD = 40  # as many as the framework has threads for plain functions
LIMITS = Limits(max_waiting=WAITING, max_attention_requests=2)

Which = Callable[[Services], FairPool]
CASES: dict[str, tuple[Which, int, str]] = {
    "a head": (lambda services: services.page_pool, PAGE_PLACES, "/look/RUN/heads/1/1"),
    "a query": (lambda services: services.page_pool, PAGE_PLACES, "/look/RUN/queries/3"),
    "logits": (lambda services: services.page_pool, PAGE_PLACES, "/look/RUN/logits/3"),
    "a lost run": (lambda services: services.page_pool, PAGE_PLACES, "/look/again/rows"),
    "another reading": (lambda services: services.page_pool, PAGE_PLACES, "/look/read"),
    "a lesson": (lambda services: services.page_pool, PAGE_PLACES, "/learn/untrained-bigram"),
    "attention": (lambda services: services.trace_pool, 2, "/v1/attention"),
    "embeddings": (lambda services: services.trace_pool, 2, "/v1/embeddings"),
}


class Held(ThreadPoolExecutor):
    """There is room for all requests, and none proceeds until the test allows it."""

    def __init__(self) -> None:
        super().__init__(CROWD)
        self.begun, self.going_on = 0, threading.Event()

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        self.begun += 1

        def hold() -> Any:
            assert self.going_on.wait(PATIENCE)
            return function(*args, **options)

        return super().submit(hold)


@pytest.fixture(scope="module")
def small(checkpoints: Path) -> Iterator[Server]:
    from helpers.server import start

    server = start(checkpoints / "tiny", limits=LIMITS)
    yield server
    server.close()


def ask(server: Server, path: str, address: str = "127.0.0.1") -> httpx.Response:
    loaded = server.served.models["tiny"]
    text = {"sha256": loaded.sha256, "ids": [1, 2, 3], "n_prompt": 1, "model": "tiny"}
    body = text if path.startswith("/look") else {"sentence": "a b"} if path.startswith("/learn") else {"prompt": "ab"}
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=server.url, timeout=60, transport=transport) as client:
        if path.startswith("/look") and not path.endswith(("/rows", "/read")):
            return client.get(path)
        return client.post(path, json={"input": "ab"} if "embeddings" in path else body)


@pytest.mark.parametrize("case", CASES)
def test_clients_take_turns_in_every_worker_pool(small: Server, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    which, n_places, path = CASES[case]
    path = path.replace("RUN", written(small.services.runs, small.served.models["tiny"], 5).id)
    pool, held = which(small.services), Held()
    monkeypatch.setattr(pool, "threads", held)
    with ThreadPoolExecutor(CROWD + 1) as crowd:
        answers = [crowd.submit(ask, small, path) for _ in range(CROWD)]
        n_refused = CROWD - n_places - WAITING
        until(small, lambda: sum(each.done() for each in answers) == n_refused)
        assert held.begun == n_places
        visitor = crowd.submit(ask, small, path, "127.0.0.9")
        until(small, lambda: sum(each.done() for each in answers) == n_refused + 1)  # one makes way
        held.going_on.set()
        assert visitor.result().status_code == 200
        statuses = sorted(each.result().status_code for each in answers)
    assert statuses == [200] * (n_places + WAITING - 1) + [429] * (n_refused + 1)
    assert all(("retry-after" in each.result().headers) == (each.result().status_code == 429) for each in answers)
    assert not pool.active and not pool.queue
