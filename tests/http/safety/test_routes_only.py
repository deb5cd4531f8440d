"""The routes without Gradio, as behind Ray Serve, are guarded like those of the whole app. Ray itself is not needed."""

import importlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.responses import JSONResponse
from starlette.types import Scope

from helpers import run_async

KEY = "open-sesame-for-all"
ENVIRON = {
    "HEADSCOPE_ALLOWED_HOSTS": "demo.example.org",
    "HEADSCOPE_TRUSTED_PROXIES": "1",
    "HEADSCOPE_API_KEY": KEY,
    "HEADSCOPE_MAX_BODY_BYTES": "2000",
}


class Replicas:
    """Answers each request with the client that it is counted for, and the size of its body."""

    def __init__(self) -> None:
        self.answer = SimpleNamespace(remote=self.answer_to)

    def options(self, **_: Any) -> "Replicas":
        return self

    def answer_to(self, scope: Scope, body: bytes) -> "Messages":
        return Messages(scope, body)


class Messages:
    def __init__(self, scope: Scope, body: bytes) -> None:
        self.response = JSONResponse({"client": scope["client"][0], "n_bytes": len(body)})

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        start = {"type": "http.response.start", "status": 200, "headers": self.response.raw_headers}
        for message in (start, {"type": "http.response.body", "body": self.response.body}):
            yield message

    def cancel(self) -> None: ...


def deployment(**_: Any) -> Callable[[type], type]:
    """A decorator that leaves the class as it is, apart from two methods that describe a deployment."""

    def decorate(target: Any) -> type:
        target.options = classmethod(lambda cls, **_: cls)
        target.bind = classmethod(lambda cls, *_: cls)
        return target  # type: ignore[no-any-return]

    return decorate


RAY: dict[str, dict[str, Any]] = {
    "ray": {},
    "ray.serve": {"deployment": deployment, "ingress": lambda: lambda target: target},
    "ray.serve.exceptions": {"RayServeException": ConnectionError},
    "ray.serve.handle": {"DeploymentHandle": object},
    "ray.exceptions": {"RayError": ConnectionError, "RayTaskError": ConnectionError},
}


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., httpx.Response]]:
    """A function that sends a request to the gate of ``web/replicas.py`` with ``ENVIRON``."""
    for name, content in RAY.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys.modules["ray"], "serve", sys.modules["ray.serve"], raising=False)
    monkeypatch.delitem(sys.modules, "web.replicas", raising=False)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    gate: Any = importlib.import_module("web.replicas")
    app = gate.Gate(Replicas()).__serve_build_asgi_app__()

    async def send(method: str, path: str, **request: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 5))  # the address of the proxy
        async with httpx.AsyncClient(transport=transport, base_url="http://demo.example.org") as client:
            return await client.request(method, path, **request)

    yield lambda *arguments, **request: run_async(send(*arguments, **request))
    sys.modules.pop("web.replicas")


BEARER = {"Authorization": f"Bearer {KEY}"}


def test_a_request_is_passed_on_for_the_client_behind_the_proxy(caller: Callable[..., httpx.Response]) -> None:
    headers = BEARER | {"X-Forwarded-For": "198.51.100.7, 203.0.113.9"}
    answer = caller("POST", "/v1/completions", json={"prompt": "ab"}, headers=headers)
    assert answer.status_code == 200 and answer.headers["x-request-id"]
    assert answer.json() == {"client": "203.0.113.9", "n_bytes": len(answer.request.content)}


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        ({"headers": BEARER | {"Host": "evil.example"}}, 421, "wrong_host"),
        ({"headers": BEARER | {"Host": "headscope:8000"}}, 421, "wrong_host"),
        ({"headers": BEARER | {"Origin": "https://evil.example"}}, 403, "foreign_origin"),
        ({"headers": {}}, 401, "invalid_api_key"),
        ({"headers": BEARER | {"Content-Encoding": "gzip"}}, 415, "compressed_body"),
        ({"headers": BEARER, "content": '"ab"'.encode("utf-16")}, 400, "not_utf8"),
        ({"headers": BEARER, "content": b" " * 2_001}, 413, "body_too_large"),
    ],
)
def test_requests_are_refused_before_they_are_passed_on(
    caller: Callable[..., httpx.Response], request_: dict[str, Any], status: int, code: str
) -> None:
    answer = caller("POST", "/v1/completions", **request_)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
