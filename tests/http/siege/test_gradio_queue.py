"""Gradio's queue: abandoned events end, no address fills the queue, and its answers are correct."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.gate import GatedEngine
from helpers.server import Server
from helpers.siege.watch import until
from web.edge import gradio_queue as module
from web.seams.gradio import QueuedEvents
from web.settings import Limits

TEXT = ["ab", None, 50, 1.0, None, 1.0, 0.0, 1]  # of /generate


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FOLLOWED_SECONDS", 0.3)
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.05)


@contextmanager
def visitor(server: Server, address: str = "127.0.0.1") -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=server.url, timeout=60, transport=transport) as client:
        yield client


def call(client: httpx.Client, name: str, data: list[Any]) -> httpx.Response:
    return client.post(f"/gradio_api/call/{name}", json={"data": data})


def held(server: Server) -> tuple[object, ...]:
    """The requests in flight, and Gradio's events."""
    services = server.services
    return services.budget.held, services.uncollected_answers.sessions, QueuedEvents(server.demo).kept


@pytest.mark.parametrize(("name", "data"), [("tokenize", ["ab" * 30, None]), ("attention", ["ab" * 30, None, 0, 0])])
def test_uncollected_answers_are_dropped(server: Server, impatient: None, name: str, data: list[Any]) -> None:
    with visitor(server) as client:
        for _ in range(5):
            assert call(client, name, data).status_code == 200
        until(server, lambda: not any(held(server)), lambda: held(server))


@pytest.mark.parametrize("n_written", [0, 3])
def test_unread_events_end_their_text(server: Server, slow: Any, impatient: None, n_written: int) -> None:
    """Both an event that has begun and one that still waits for its first token are ended."""
    engine: Any = server.services.engines.engine_for(slow)
    with visitor(server) as client:
        call(client, "generate", ["ab", "slow", 50, *TEXT[3:]])
        slow.gate.release(n_written)
        engine.news.wait_until(lambda: engine.active and len(engine.active[0].written) == n_written)
        (sequence,) = engine.active
        engine.news.wait_until(lambda: sequence.cancelled)
        slow.gate.release(5)
        until(server, lambda: not any(held(server)), lambda: held(server))


def test_disconnected_listeners_do_not_count(server: Server, slow: Any, impatient: None) -> None:
    engine: Any = server.services.engines.engine_for(slow)
    with visitor(server) as client:
        event = call(client, "generate", ["ab", "slow", 50, *TEXT[3:]]).json()["event_id"]
        engine.news.wait_until(lambda: engine.active)
        (sequence,) = engine.active
        with client.stream("GET", f"/gradio_api/call/generate/{event}") as answer:
            slow.gate.release(2)
            assert "generating" in next(answer.iter_lines())
        engine.news.wait_until(lambda: sequence.cancelled)
        slow.gate.release(5)
        until(server, lambda: not any(held(server)), lambda: held(server))


@pytest.mark.slow
def test_queue_length_per_client_is_limited(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_batch=1, max_waiting=3))
    loaded = server.served.models["tiny"]
    engine = GatedEngine(loaded)
    server.services.engines.add(loaded, engine)
    with visitor(server, "127.0.0.66") as attacker, visitor(server, "127.0.0.9") as other:
        answers = [call(attacker, "generate", TEXT) for _ in range(6)]
        assert [answer.status_code for answer in answers] == [200] * 4 + [429] * 2
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers[4:])
        assert call(other, "generate", TEXT).status_code == 200
    engine.gate.release(1_000)


def test_many_events_of_one_client_do_not_delay_others(launch: Callable[..., Server], checkpoints: Path) -> None:
    """Their number exceeds Gradio's default number of workers."""
    server = launch(checkpoints / "tiny", limits=Limits(max_batch=2, max_waiting=60))
    loaded = server.served.models["tiny"]
    engine = GatedEngine(loaded, max_batch=2, max_waiting=60)
    server.services.engines.add(loaded, engine)
    with visitor(server, "127.0.0.66") as attacker, visitor(server, "127.0.0.9") as other:
        for _ in range(55):
            assert call(attacker, "generate", TEXT).status_code == 200
        assert call(other, "generate", TEXT).status_code == 200
        engine.news.wait_until(lambda: any(each.client == "127.0.0.9" for each in [*engine.queue, *engine.active]))
    engine.gate.release(1_000)


def test_events_start_without_waiting(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with visitor(server) as client:
        for path in ("queue/data?session_hash=nobody", "queue/data", "call/generate/nobody", "call/nobody/nobody"):
            assert client.get(f"/gradio_api/{path}").status_code == 404
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "JSON object"),
        (b'{"session_hash": 3, "data": []}', "session_hash"),
        (b'{"session_hash": "%s", "data": []}' % (b"x" * 65), "session_hash"),
        (b'{"data": []}', "session_hash"),
        (b'{"session_hash": "x", "fn_index": 0, "data": [%s0]}' % (b"0," * 80), "arguments"),
        (b'{"session_hash": "x", "fn_index": 0, "data": [%s0]}' % (b"0," * 39), ", found 40"),
        (b'{"session_hash": "x", "fn_index": 0, "data": 3}', "arguments"),
    ],
)
def test_invalid_joins_are_refused(server: Server, body: bytes, said: str) -> None:
    with visitor(server) as client:
        answer = client.post("/gradio_api/queue/join", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and said in answer.json()["detail"] and len(answer.content) < 400


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("call/nobody", {"data": []}, 404),
        ("call/tokenize", {"data": ["ab"]}, 422),
        ("call/tokenize", {}, 422),
        ("call/v2/nobody", {}, 404),
        ("call/v2/tokenize", {"text": "ab", "colour": 3}, 422),
        ("queue/join", {"session_hash": "x", "fn_index": 999, "data": []}, 404),
        ("queue/join", {"session_hash": "x", "fn_index": None, "data": []}, 404),
    ],
)
def test_calls_of_unknown_endpoints_are_refused(
    server: Server, path: str, body: Any, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with visitor(server) as client:
        assert client.post(f"/gradio_api/{path}", json=body).status_code == status
        assert call(client, "tokenize", ["ab", None]).status_code == 200
        assert client.post("/gradio_api/call/v2/tokenize", json={"text": "ab"}).status_code == 200
    assert "Traceback" not in capfd.readouterr().err


def test_answers_go_to_their_own_session_only(server: Server) -> None:
    """A prompt that looks like a placeholder is returned as text."""
    with visitor(server) as client:
        text = "headscope-answer-0123456789abcdef0123456789abcdef"
        event = call(client, "tokenize", [text, None]).json()["event_id"]
        lines = client.get(f"/gradio_api/call/tokenize/{event}").text.splitlines()
    tokens = json.loads(lines[1].removeprefix("data: "))[0]
    assert "".join(token["text"] for token in tokens) == text
