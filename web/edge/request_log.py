"""An id for every request, and an access log."""

import re
import secrets
import sys
import time
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-Id"
GIVEN = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)


class RequestLogMiddleware:
    """Sends ``X-Request-Id`` with every response: the client's own if it is well formed, otherwise a new one.

    With ``access_log``, it prints a line to stdout when a response has ended: the client, the request, the status, the
    bytes sent and the seconds taken.
    """

    def __init__(self, app: ASGIApp, *, access_log: bool = False) -> None:
        self.app, self.access_log = app, access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if GIVEN.fullmatch(given) else f"req-{secrets.token_hex(12)}"
        began, status, n_bytes = time.monotonic(), 499, 0  # nginx's status for a client that left before the response

        async def answered(message: Message) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            n_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, answered)
        except Exception:
            status = 500
            raise
        finally:
            if self.access_log:
                seconds = time.monotonic() - began
                print(line(scope, status, n_bytes, seconds, request_id), file=sys.stdout, flush=True)


def line(scope: Scope, status: int, n_bytes: int, seconds: float, request_id: str) -> str:
    """``2026-01-31T12:00:00Z 192.0.2.1 POST /v1/completions 200 1234 B 0.512 s req-...``; never a query or a body."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    client = scope["client"][0] if scope.get("client") else "-"
    return f"{at} {client} {scope['method']} {quote(scope['path'])} {status} {n_bytes} B {seconds:.3f} s {request_id}"
