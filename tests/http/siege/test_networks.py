"""The addresses of one IPv6 /64 network, which a provider gives to one customer, are one client everywhere."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from helpers.gate import GatedEngine
from helpers.server import Server
from helpers.siege.watch import until
from web.settings import KEPT_BYTES, Limits

NETWORK = "2001:db8:1:2::/64"
ATTACKERS = [f"2001:db8:1:2:{i:x}::{i:x}" for i in range(1, 61)]
VISITOR = "2001:db8:1:3::1"
BODY = b'{"prompt": "ab", "max_tokens": 1, "stream": true}'

Launch = Callable[..., Server]


def post(server: Server, address: str, body: bytes = BODY) -> httpx.Response:
    headers = {"X-Forwarded-For": address, "Content-Type": "application/json"}
    return httpx.post(f"{server.url}/v1/completions", content=body, headers=headers, timeout=60)


@contextmanager
def pending(server: Server, address: str, n_bytes: int = len(BODY), sent: bytes = BODY) -> Iterator[socket.socket]:
    """A connection with a request of ``n_bytes`` from ``address``, of which ``sent`` has been sent."""
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {address}\r\n"
    with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {n_bytes}\r\n\r\n".encode() + sent)
        yield connection


@pytest.fixture
def together() -> Iterator[Callable[..., socket.socket]]:
    """Opens ``pending`` connections, which are closed after the test."""
    with ExitStack() as stack:
        yield lambda *request: stack.enter_context(pending(*request))


def gated(server: Server, **limits: int) -> GatedEngine:
    engine = GatedEngine(server.served.models["tiny"], **limits)
    server.services.engines.add(server.served.models["tiny"], engine)
    return engine


def test_a_network_does_not_fill_the_queue(
    launch: Launch, checkpoints: Path, together: Callable[..., socket.socket]
) -> None:
    server = launch(checkpoints / "tiny", trusted_proxies=1)
    engine = gated(server, max_batch=1, max_waiting=3)
    for n_asked, attacker in enumerate(ATTACKERS[:4], 1):
        together(server, attacker)
        engine.news.wait_until(lambda n=n_asked: len(engine.active) + len(engine.queue) == n)
    assert post(server, ATTACKERS[4]).status_code == 429
    with ThreadPoolExecutor(1) as thread:
        visit = thread.submit(post, server, VISITOR)
        engine.news.wait_until(lambda: any(sequence.refused for sequence in engine.queue))
        engine.gate.release(200)
        assert visit.result().status_code == 200


@pytest.mark.slow  # until Gradio has ended the session
def test_a_browser_that_changes_its_address_leaves_nothing_behind(launch: Launch, checkpoints: Path) -> None:
    """One session that joins Gradio's queue over IPv4 and then over IPv6 is charged and credited to each."""
    server = launch(checkpoints / "tiny", trusted_proxies=1)
    budget = server.services.budget
    with httpx.Client(base_url=server.url, timeout=60) as browser:
        for address in ("192.0.2.7", VISITOR):
            headers, body = {"X-Forwarded-For": address}, {"data": ["ab", None], "session_hash": "tab"}
            assert browser.post("/gradio_api/call/tokenize", json=body, headers=headers).status_code == 200
    until(server, lambda: not budget.held, lambda: budget.clients)
    assert not set(budget.clients) - {"127.0.0.1"}


def test_a_network_holds_no_more_than_half_of_the_memory(
    launch: Launch, checkpoints: Path, together: Callable[..., socket.socket]
) -> None:
    limits = Limits(memory_budget_mb=KEPT_BYTES // 1_000_000 + 8)
    server = launch(checkpoints / "tiny", limits=limits, trusted_proxies=1)
    budget, large = server.services.budget, BODY + b" " * 200_000
    for attacker in ATTACKERS:
        together(server, attacker, 120_000, b" " * 100_000)
    until(server, lambda: budget.most - budget.clients[NETWORK] < 200_000)
    assert set(budget.clients) - {"127.0.0.1"} == {NETWORK}  # the other asked for /health in the meantime
    assert post(server, ATTACKERS[0], large).status_code == 429
    assert post(server, VISITOR, large).status_code == 200


def test_a_network_loses_its_connections_first(
    launch: Launch, checkpoints: Path, together: Callable[..., socket.socket]
) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_connections=20), trusted_proxies=1)
    engine = gated(server, max_batch=30)
    visit = together(server, VISITOR)
    for attacker in ATTACKERS[:19]:
        together(server, attacker)
    engine.news.wait_until(lambda: len(engine.active) + len(engine.queue) == 20)
    assert server.connections.counts == {NETWORK: 19, "2001:db8:1:3::/64": 1}
    for _ in range(5):
        with httpx.Client(base_url=server.url, headers={"X-Forwarded-For": "192.0.2.1"}) as other:
            assert other.get("/health").status_code == 200
    engine.gate.release(200)
    assert visit.recv(100).startswith(b"HTTP/1.1 200")
