"""Every request gets an id and a line in the log, and bodies of forbidden kinds are refused."""

import gzip
import json
import re
import signal
from typing import Any

import httpx
import pytest

from helpers.api import error_of, post_body
from helpers.server import Server
from web.edge import server as server_module

BODY = {"prompt": "ab", "max_tokens": 1}


@pytest.mark.parametrize("path", ["/health", "/", "/v1/models", "/nothing", "/gradio_api/info", "/look/landing"])
def test_every_response_has_a_request_id(server: Server, path: str) -> None:
    url = server.url + path
    names = {httpx.get(url).headers["x-request-id"] for _ in range(3)}
    assert len(names) == 3 and all(re.fullmatch("req-[0-9a-f]{24}", name) for name in names)
    assert httpx.get(url, headers={"X-Request-Id": "trace:1.2-a_b"}).headers["x-request-id"] == "trace:1.2-a_b"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, 'a"b', "<script>", "\u00e9"])
def test_invalid_request_ids_are_not_echoed(server: Server, given: str) -> None:
    answer = httpx.get(f"{server.url}/health", headers={"X-Request-Id": given.encode("latin-1")})
    assert answer.headers["x-request-id"].startswith("req-")


def test_access_log_has_a_line_per_request(launch: Any, checkpoints: Any, capsys: pytest.CaptureFixture[str]) -> None:
    server = launch(checkpoints / "tiny", access_log=True, api_key="secret")
    headers = {"Authorization": "Bearer secret", "X-Request-Id": "mine"}
    capsys.readouterr()
    answer = httpx.post(f"{server.url}/v1/completions?key=secret", json=BODY, headers=headers)
    httpx.get(f"{server.url}/a%0Ab%20c", headers={"X-Request-Id": "second"})
    server.close()  # after which all lines are written
    lines = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\d{4}-\d\d-\d\dT", line)]
    first, second = (next(line for line in lines if line.endswith(name)) for name in (" mine", " second"))
    n_bytes = len(answer.content)
    expected = rf"\S+Z 127\.0\.0\.1 POST /v1/completions 200 {n_bytes} B \d+\.\d{{3}} s mine"
    assert re.fullmatch(expected, first)
    assert " GET /a%0Ab%20c 401 " in second
    assert "secret" not in first + second  # neither keys nor queries nor bodies


def test_the_access_log_as_json(launch: Any, checkpoints: Any, capsys: pytest.CaptureFixture[str]) -> None:
    server = launch(checkpoints / "tiny", access_log=True, log_format="json")
    capsys.readouterr()
    httpx.get(f"{server.url}/v1/models", headers={"X-Request-Id": "mine"})
    server.close()
    (entry,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if '"mine"' in line)
    assert (entry["method"], entry["path"], entry["status"], entry["client"]) == ("GET", "/v1/models", 200, "127.0.0.1")
    assert entry["bytes"] > 0 and entry["seconds"] >= 0 and entry["time"].endswith("Z")


def test_access_log_is_off_by_default(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    httpx.get(f"{server.url}/health", headers={"X-Request-Id": "unlogged"})
    assert "unlogged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "path", ["/v1/completions", "/v1/attention", "/look/write", "/gradio_api/queue/join", "/tokenize"]
)
@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip", "zstd"])
def test_compressed_bodies_are_refused_with_a_reason(server: Server, path: str, coding: str) -> None:
    content = gzip.compress(json.dumps(BODY).encode())
    answer = httpx.post(server.url + path, content=content, headers={"Content-Encoding": coding})
    assert answer.status_code == 415 and answer.headers["accept-encoding"] == "identity"
    assert error_of(answer)["code"] == "compressed_body" and coding in error_of(answer)["message"]


def test_identity_encoding_is_accepted(server: Server) -> None:
    url, headers = f"{server.url}/v1/completions", {"Content-Encoding": "identity"}
    assert httpx.post(url, json=BODY, headers=headers).status_code == 200
    assert post_body(server, BODY).status_code == 200


@pytest.mark.parametrize("path", ["v1/completions", "v1/lens/knockout", "look/write", "learn/tokens", "tokenize"])
@pytest.mark.parametrize("coding", ["utf-16", "utf-32-be", "utf-8-sig", "latin-1"])
def test_json_bodies_must_be_utf8(server: Server, path: str, coding: str) -> None:
    content = json.dumps({"prompt": "é"}, ensure_ascii=False).encode(coding)
    answer = httpx.post(f"{server.url}/{path}", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and "UTF-8, without a byte order mark" in answer.text


def test_multibyte_characters_may_be_split_across_chunks(server: Server) -> None:
    content = json.dumps({"model": "é𝒳\ufeff"}, ensure_ascii=False).encode()
    pieces = iter([content[i : i + 1] for i in range(len(content))])
    answer = httpx.post(f"{server.url}/v1/completions", content=pieces)
    assert error_of(answer)["param"] == "prompt"  # which is missing; the body itself is valid


def test_second_signal_exits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(server_module.os, "_exit", ended.append)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        asked = server_module.listen_for_signals()
        assert not asked.is_set()
        signal.raise_signal(signal.SIGTERM)
        assert asked.is_set() and not ended
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert ended == [130, 143]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
