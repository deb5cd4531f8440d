"""Clients that disconnect, full queues, failing models, and the state of the server afterwards."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.api import open_post, post
from helpers.gate import GatedEngine, News, wait_for_end
from helpers.serve_once import PATIENCE
from helpers.server import Server
from model.serving import torch_reader
from web.api import attention_answer, routes
from web.api.embeddings import Embeddings
from web.settings import Limits


def gate_of(server: Server) -> tuple[GatedEngine, threading.Semaphore]:
    engine: Any = server.services.engines.engine_for(server.services.served.models["slow"])
    return engine, engine.gate


@pytest.mark.parametrize("stream", [True, False])
def test_disconnecting_stops_the_text_within_a_step(server: Server, slow: Any, stream: bool) -> None:
    engine, gate = gate_of(server)
    connection = open_post(server, model="slow", max_tokens=60, stream=stream)
    gate.release(3)
    engine.news.wait_until(lambda: engine.active and len(engine.active[0].written) == 3)
    (sequence,) = engine.active
    connection.close()
    engine.news.wait_until(lambda: sequence.cancelled)
    gate.release()
    engine.news.wait_until(lambda: not engine.active)
    assert len(sequence.written) <= 4
    server.wait_until_idle()


def test_full_queue_answers_429_with_retry_after(launch: Any, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_batch=1, max_waiting=1))
    loaded = server.services.served.models["tiny"]
    engine = GatedEngine(loaded, max_batch=1, max_waiting=1)
    server.services.engines.add(loaded, engine)
    first = open_post(server, max_tokens=50)
    engine.news.wait_until(lambda: engine.active)
    (sequence,) = engine.active
    second = open_post(server, max_tokens=2)
    engine.news.wait_until(lambda: len(engine.queue) == 1)
    answer = post(server)
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
    assert answer.json()["error"]["code"] == "queue_full"
    first.close()
    engine.news.wait_until(lambda: sequence.cancelled)
    engine.gate.release(9)
    assert b"200 OK" in second.recv(1000)
    second.close()
    assert post(server, max_tokens=1).status_code == 200


def test_failing_step_is_a_500_and_the_next_request_is_served(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no more memory")

    for stream in (False, True):
        with monkeypatch.context() as broken:
            broken.setattr(torch_reader, "forward_batch", fail)
            answer = post(server, stream=stream)
        assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error"
        assert "no more memory" not in answer.text  # the failure is only in the log
        assert post(server).status_code == 200


def test_deadline_cuts_the_text_off(launch: Any, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_seconds=300))
    loaded = server.services.served.models["tiny"]
    engine = GatedEngine(loaded)
    server.services.engines.add(loaded, engine)
    engine.gate.release(3)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(post, server, max_tokens=50)
        engine.news.wait_until(lambda: engine.active and len(engine.active[0].written) == 3)
        (sequence,) = engine.active
        assert 0 < sequence.deadline - time.monotonic() <= 300
        sequence.deadline = time.monotonic()
        engine.gate.release()
        choice = asked.result().json()["choices"][0]
    assert (choice["finish_reason"], choice["cut_off_by"]) == ("length", "deadline")  # the first in OpenAI's format
    assert len(choice["text"]) in (3, 4)


def test_tokens_ready_together_are_sent_together(server: Server, slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first token and the end are sent at once; between them the stream pauses, here for an hour."""
    monkeypatch.setattr(routes, "EVENT_SECONDS", 3_600.0)
    _, gate = gate_of(server)
    gate.release()
    body = {"model": "slow", "prompt": "ab", "stream": True, "max_tokens": 7}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=PATIENCE) as answer:
        chunks = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {"))
        first = next(chunks)["choices"][0]
        assert len(first["text"]) == 1 and first["finish_reason"] is None
        gate.release(6)
        (rest,) = chunks
    assert len(rest["choices"][0]["text"]) == 6 and rest["choices"][0]["finish_reason"] == "length"


def test_failing_stream_ends_with_an_error_event(server: Server, slow: Any) -> None:
    """The status was sent with the first token."""
    engine, gate = gate_of(server)
    gate.release(2)
    body = {"model": "slow", "prompt": "ab", "stream": True, "max_tokens": 50}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=PATIENCE) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert '"text"' in next(lines)
        (sequence,) = engine.active
        sequence.refused = True
        gate.release(9)
        *_, error, done = [line.removeprefix("data: ") for line in lines if line]
    assert done == "[DONE]" and json.loads(error)["error"]["code"] == "queue_full"


def test_evicted_waiting_stream_is_a_429(launch: Any, checkpoints: Path) -> None:
    """It is queued behind another text of its client, and a client at another address needs its place."""
    limits = Limits(max_batch=1, max_waiting=2)
    server = launch(checkpoints / "tiny", limits=limits, trusted_proxies=1)
    loaded = server.services.served.models["tiny"]
    engine = GatedEngine(loaded, max_batch=1, max_waiting=2)
    server.services.engines.add(loaded, engine)
    first = open_post(server, max_tokens=50)
    engine.news.wait_until(lambda: engine.active)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(post, server, stream=True) for _ in range(2)]
        engine.news.wait_until(lambda: len(engine.queue) == 2)
        url, headers = f"{server.url}/v1/completions", {"X-Forwarded-For": "192.0.2.1"}
        other = pool.submit(httpx.post, url, json={"prompt": "ab", "max_tokens": 1}, headers=headers, timeout=60)
        engine.news.wait_until(lambda: any(sequence.refused for sequence in engine.queue))
        engine.gate.release(200)
        assert other.result().status_code == 200
        answers = sorted([each.result() for each in waiting], key=lambda answer: answer.status_code)
    assert [answer.status_code for answer in answers] == [200, 429]
    assert int(answers[1].headers["retry-after"]) >= 1 and answers[1].json()["error"]["code"] == "queue_full"
    first.close()


@pytest.mark.parametrize(("path", "body"), [("attention", {"prompt": "ab"}), ("embeddings", {"input": "ab"})])
def test_disconnects_are_not_counted_as_failures(
    launch: Any, checkpoints: Path, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any]
) -> None:
    server = launch(checkpoints / "tiny")
    begun, counted, going_on = threading.Event(), News(), threading.Event()
    outcomes: list[tuple[str, str]] = []

    def hold(*_: Any) -> None:
        begun.set()
        assert going_on.wait(PATIENCE)

    def count(route: str, outcome: str) -> None:
        outcomes.append((route, outcome))
        counted.tell()

    monkeypatch.setattr(attention_answer, "TextPass", hold)
    monkeypatch.setattr(Embeddings, "compute", hold)
    monkeypatch.setattr(server.services.metrics, "count", count)
    connection = open_post(server, path, body)
    assert begun.wait(PATIENCE)
    connection.close()
    counted.wait_until(lambda: outcomes)
    going_on.set()
    assert outcomes == [(f"/v1/{path}", "cancelled")]


def test_a_slow_reader_does_not_slow_the_others(server: Server) -> None:
    """The client reads nothing. Its text is still written, and so are those of others in the meantime."""
    lazy = open_post(server, max_tokens=60, stream=True, n=16, logprobs=20)
    server.running.news.wait_until(lambda: server.running)
    (generation,) = server.running
    for _ in range(3):
        assert post(server, max_tokens=20).status_code == 200
    wait_for_end(generation)
    lazy.close()
    server.wait_until_idle()


def test_slow_readers_of_attention_do_not_keep_others_waiting(server: Server) -> None:
    """There are more of them than may run at the same time."""
    lazy = [open_post(server, path="attention", prompt="a" * 64, format="safetensors") for _ in range(4)]
    answer = httpx.post(f"{server.url}/v1/attention", json={"prompt": "ab"}, timeout=PATIENCE)
    assert answer.status_code == 200
    for connection in lazy:
        connection.close()


@pytest.mark.parametrize(("n_proxies", "told_apart"), [(0, {"127.0.0.1"}), (1, {"192.0.2.1", "192.0.2.2"})])
def test_turns_behind_a_proxy_go_by_forwarded_address(
    server: Server, slow: Any, monkeypatch: pytest.MonkeyPatch, n_proxies: int, told_apart: set[str]
) -> None:
    """The client is the address that a trusted proxy added last; the rest of the header may be invented."""
    monkeypatch.setattr(server.connections, "n_proxies", n_proxies)
    engine, _ = gate_of(server)
    url = f"{server.url}/v1/completions"
    with ThreadPoolExecutor(4) as pool:
        for made_up, host in (("10.0.0.1", "192.0.2.1"), ("10.0.0.2", "192.0.2.1"), ("10.0.0.1", "192.0.2.2")):
            headers = {"X-Forwarded-For": f"{made_up}, {host}"}
            pool.submit(httpx.post, url, json={"model": "slow", "prompt": "ab"}, headers=headers, timeout=60)
        engine.news.wait_until(lambda: len(engine.active) + len(engine.queue) == 3)
        assert {sequence.client for sequence in [*engine.active, *engine.queue]} == told_apart
        for sequence in [*engine.active, *engine.queue]:
            sequence.cancel()


def test_metrics_count_what_happened(launch: Any, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny")
    post(server, max_tokens=7)
    post(server, max_tokens=5, n=2, stream=True)
    post(server, max_tokens=-1)
    httpx.post(f"{server.url}/v1/attention", json={"prompt": "ab"})
    text = httpx.get(f"{server.url}/metrics").text
    for line in (
        'headscope_requests_total{outcome="ok",route="/v1/completions"} 2.0',
        'headscope_requests_total{outcome="refused",route="/v1/completions"} 1.0',
        'headscope_requests_total{outcome="ok",route="/v1/attention"} 1.0',
        'headscope_tokens_total{kind="written",model="tiny"} 17.0',
        'headscope_first_token_seconds_count{model="tiny"} 3.0',
        'headscope_next_token_seconds_count{model="tiny"} 14.0',
        'headscope_batch_size{model="tiny"} 0.0',
        'headscope_waiting{model="tiny"} 0.0',
        "headscope_runs_cached 1.0",
    ):
        assert line in text, line
