"""The API key: programs send it as a Bearer token; the page asks for it once and keeps a cookie."""

import hashlib
import hmac
import html
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..client import client_in
from ..request_path import path_of
from ..serving.bounded_cache import BoundedCache
from .errors import ApiError

MAX_FORM_BYTES = 4_096
MAX_REFUSALS = 60  # wrong keys or tokens of one client in a minute; a further one gets 429
MAX_CLIENTS = 10_000  # whose wrong keys are counted
OPEN = "/health"
ENTER = "/key"
STARTUP = "/gradio_api/startup-events"  # Gradio requests this from its own server once, without the key, during launch

SameSite = Literal["lax", "none"]

FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Headscope</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem; }}
html {{ color-scheme: light dark; }} input, button {{ font: inherit; padding: .4rem .6rem; }}
input {{ width: 100%; box-sizing: border-box; margin: .3rem 0 .8rem; }}
</style><h1>Headscope</h1><form method="post" action="{action}"><label>API key
<input name="key" type="password" autocomplete="current-password" required autofocus></label>
<button>Enter</button></form><p role="alert">{message}</p></html>"""


class Refusals:
    """Bounds how many wrong keys or tokens of one client are answered in a minute. Right ones are not counted."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.counts = BoundedCache[str, tuple[int, int]](max_entries=MAX_CLIENTS)  # the minute, and how many in it

    def count(self, client: str, error: ApiError) -> ApiError:
        """Count a wrong key or token, and return its ``error``, or a 429 if there were too many in this minute."""
        minute, second = divmod(int(self.now()), 60)
        last, n = self.counts.get(client) or (minute, 0)
        n = n + 1 if last == minute else 1
        self.counts.put(client, (minute, n))
        if n <= MAX_REFUSALS:
            return error
        message = f"More than {MAX_REFUSALS} wrong keys have come from your address within a minute."
        return ApiError(429, message, code="too_many_wrong_keys", headers={"Retry-After": str(60 - second)})


class ApiKeyMiddleware:
    """ASGI middleware that guards the page, our routes and Gradio's API.

    The right key works whatever wrong ones have come from the same address.
    """

    def __init__(
        self,
        app: ASGIApp,
        key: str,
        launched: threading.Event,
        same_site: SameSite = "lax",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.refusals = Refusals(now)
        self.app, self.key, self.launched, self.same_site = app, key.encode(), launched, same_site
        # The cookie proves that its owner knew the key without revealing it.
        self.token = hmac.new(self.key, b"headscope page", hashlib.sha256).hexdigest()
        # Another server on this host has cookies of another name, which this one ignores.
        self.cookie = f"headscope_{hmac.new(self.key, b'cookie name', hashlib.sha256).hexdigest()[:8]}"
        self.sent_cookie = re.compile(rf"(?:^|;\s*){self.cookie}=([^;\s]*)")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        path = path_of(scope)
        if path == OPEN or (path == STARTUP and not self.launched.is_set()):
            await self.app(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "POST" and path == ENTER:
            await (await self.enter(scope, receive))(scope, receive, send)
        else:
            given = self.credentials(Headers(scope=scope))
            if any(given):
                await self.app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.refuse(scope, is_wrong=bool(given))(scope, receive, send)

    def credentials(self, headers: Headers) -> list[bool]:
        """Whether each credential that a request carries is right: a key, or cookies of this server's name."""
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        keys = [sent.strip()] if scheme.lower() == "bearer" and sent.strip() else []
        cookies = self.sent_cookie.findall(headers.get("cookie", ""))
        token = self.token.encode()
        return [hmac.compare_digest(key.encode("latin-1"), self.key) for key in keys] + [
            hmac.compare_digest(cookie.encode("latin-1"), token) for cookie in cookies
        ]

    async def enter(self, scope: Scope, receive: Receive) -> Response:
        """Check the key from the form and answer with the cookie."""
        body = b""
        while True:
            message: Message = await receive()
            body += message.get("body", b"")
            if len(body) > MAX_FORM_BYTES or not message.get("more_body"):
                break
        sent = parse_qs(body[:MAX_FORM_BYTES].decode("utf-8", "replace")).get("key", [""])[0].strip()
        if not hmac.compare_digest(sent.encode(), self.key):
            return self.refuse(scope, is_wrong=bool(sent), is_form=True)
        query = scope["query_string"].decode("latin-1")
        response = RedirectResponse(f"./?{query}" if query else "./", status_code=303)
        secure = scope["scheme"] == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"
        same_site: SameSite = self.same_site if secure else "lax"  # browsers accept SameSite=None over https only
        response.set_cookie(self.cookie, self.token, httponly=True, secure=secure, samesite=same_site)
        # Valid only in the frame of the site where the key was typed. Python 3.14 has an option for it.
        if same_site == "none":
            response.headers["set-cookie"] += "; Partitioned"
        return response

    def refuse(self, scope: Scope, *, is_wrong: bool, is_form: bool = False) -> Response:
        message = "This server requires an API key: send it as a Bearer token in the Authorization header."
        if is_wrong:
            message = "This key is wrong." if is_form else "The API key is wrong."
        error = ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        if is_wrong:
            error = self.refusals.count(client_in(scope) or "", error)
        is_page = scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", "")
        if is_form or is_page:
            return self.form(scope, error.detail if is_form or is_wrong else "", error.status_code, error.headers)
        return error.response()

    def form(self, scope: Scope, message: str, status: int = 401, headers: Mapping[str, str] | None = None) -> Response:
        query = scope["query_string"].decode("latin-1")
        root: str = scope.get("root_path", "")
        # Without a root path, a relative URL works behind a proxy that strips part of the path.
        above = f"{root}/" if root else "../" * (path_of(scope).count("/") - 1)
        action = above + ENTER[1:] + (f"?{query}" if query else "")
        content = FORM.format(action=html.escape(action), message=message)
        return HTMLResponse(content, status_code=status, headers=headers)
