"""Which visitor a request is for."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from web.serving.served_models import VISITOR
from web.training.visitor_cookie import VisitorMiddleware, cookie_name, give_cookie, secret_in

TOKEN = "x" * 32
HTTPS = {b"x-forwarded-proto": b"https"}


def scope_with(cookies: str, root_path: str = "", **more: Any) -> dict[str, Any]:
    headers = [(b"cookie", cookies.encode())]
    return {"type": "http", "scheme": "http", "root_path": root_path, "path": "/look/x", "headers": headers} | more


NAME = cookie_name(scope_with(""))


@pytest.mark.parametrize(
    ("path", "expected"), [("/look/landing", TOKEN), ("/v1/lens/head", TOKEN), ("/v1/tokenize", "")]
)
def test_a_request_is_for_the_visitor_of_its_own_cookie_alone(path: str, expected: str) -> None:
    """uvicorn starts the task of a pipelined request in the context of the request before it."""
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(VISITOR.get())

    async def receive() -> Message:
        raise AssertionError("the cookie is in the headers")

    async def send(message: Message) -> None: ...

    async def after_another_request() -> None:
        VISITOR.set("y" * 32)
        await VisitorMiddleware(app)(scope_with(f"{NAME}={TOKEN}", path=path), receive, send)

    asyncio.run(after_another_request())
    assert seen == [expected]


@pytest.mark.parametrize(
    ("cookies", "expected"),
    [
        (f"{NAME}={TOKEN}", TOKEN),
        (f"a=[b]; c={{}}; {NAME}={TOKEN}", TOKEN),
        (f'a="; {NAME}={TOKEN}', TOKEN),
        (f"a; =b; {NAME}={TOKEN};", TOKEN),
        (f"é=ü;{NAME}={TOKEN}", TOKEN),
        (f"{NAME}=short; {NAME}={TOKEN}", TOKEN),
        (f"{NAME}={TOKEN}x", ""),
        (f"x{NAME}={TOKEN}", ""),
        (f'a="{NAME}={TOKEN}"', ""),
        ("", ""),
    ],
)
def test_the_cookie_is_found_among_others(cookies: str, expected: str) -> None:
    assert secret_in(scope_with(cookies), "visitor") == expected


def test_servers_below_different_paths_have_different_cookies() -> None:
    assert secret_in(scope_with(f"{NAME}={TOKEN}", root_path="/heads"), "visitor") == ""
    assert cookie_name(scope_with("", root_path="/")) == NAME


@pytest.mark.parametrize("more", [{"scheme": "https"}, {"headers": [*HTTPS.items()]}])
def test_over_https_no_other_host_can_set_the_cookie(more: dict[str, Any]) -> None:
    assert cookie_name(scope_with("", **more)) == f"__Host-{NAME}"
    headers = [*more.get("headers", []), (b"cookie", f"{NAME}={TOKEN}".encode())]
    assert secret_in(scope_with("") | more | {"headers": headers}, "visitor") == ""


@pytest.mark.parametrize(
    ("scheme", "is_space", "same_site"), [("https", True, "none"), ("https", False, "lax"), ("http", True, "lax")]
)
def test_the_cookie_reaches_a_frame_of_the_hub_only_on_a_space(scheme: str, is_space: bool, same_site: str) -> None:
    response = Response()
    give_cookie(response, Request(scope_with("", scheme=scheme)), TOKEN, is_space=is_space)
    assert f"samesite={same_site}" in response.headers["set-cookie"].lower().split("; ")
