"""The API key: programs send it as a Bearer header; the page asks for it once and keeps a cookie."""

import hashlib
import hmac
import html
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Literal
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import counted

from ..client import client_in

MAX_FORM_BYTES = 4_096
FREE_GUESSES = 10  # wrong keys from one address before the next has to wait
LONGEST_PAUSE = 300  # seconds
FORGET_SECONDS = 3_600  # after which wrong keys of an address no longer count
MAX_ADDRESSES = 10_000  # whose wrong keys are counted
OPEN = "/health"
ENTER = "/key"
STARTUP = "/gradio_api/startup-events"  # Gradio calls its own server once, without the key, before launch returns

SameSite = Literal["lax", "none"]

FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Headscope</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem; }}
html {{ color-scheme: light dark; }} input, button {{ font: inherit; padding: .4rem .6rem; }}
input {{ width: 100%; box-sizing: border-box; margin: .3rem 0 .8rem; }}
</style><h1>Headscope</h1><form method="post" action="{action}"><label>API key
<input name="key" type="password" autocomplete="current-password" required autofocus></label>
<button>Enter</button></form><p role="alert">{message}</p></html>"""


class Guesses:
    """Wrong keys by address: after ``FREE_GUESSES`` each makes the next wait, twice as long as the one before.

    A right key would have to wait as well, or waiting would keep nobody from guessing; other addresses never wait.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # how many, and when the newest came

    def seconds_to_wait(self, address: str) -> int:
        count, newest = self.wrong.get(address, (0, 0.0))
        pause = min(2 ** (count - FREE_GUESSES), LONGEST_PAUSE) if count >= FREE_GUESSES else 0
        return max(0, math.ceil(newest + pause - self.now()))

    def add(self, address: str) -> None:
        count, newest = self.wrong.pop(address, (0, 0.0))
        if self.now() - newest > FORGET_SECONDS:
            count = 0
        self.wrong[address] = count + 1, self.now()
        while len(self.wrong) > MAX_ADDRESSES:
            self.wrong.popitem(last=False)

    def forget(self, address: str) -> None:
        self.wrong.pop(address, None)


class ApiKeyMiddleware:
    """ASGI middleware in front of everything: the page, our routes and Gradio's API."""

    def __init__(self, app: ASGIApp, key: str, launched: threading.Event, same_site: SameSite = "lax") -> None:
        self.app, self.key, self.launched, self.same_site = app, key.encode(), launched, same_site
        # The cookie proves that its owner knew the key, without giving the key away.
        self.token = hmac.new(self.key, b"headscope page", hashlib.sha256).hexdigest()
        self.guesses = Guesses()
        self.cookie = f"headscope_{hmac.new(self.key, b'cookie name', hashlib.sha256).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self.may_pass(scope):
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["method"] == "POST" and path_of(scope) == ENTER:
            await (await self.enter(scope, receive))(scope, receive, send)
        else:
            await self.refuse(scope)(scope, receive, send)

    def may_pass(self, scope: Scope) -> bool:
        path = path_of(scope)
        if path == OPEN or (path == STARTUP and not self.launched.is_set()):
            return True
        headers = Headers(scope=scope)
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(sent.strip().encode("latin-1"), self.key):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self.token.encode())

    async def enter(self, scope: Scope, receive: Receive) -> Response:
        """Check the key from the form and answer with the cookie."""
        body = b""
        while True:
            message: Message = await receive()
            body += message.get("body", b"")
            if len(body) > MAX_FORM_BYTES or not message.get("more_body"):
                break
        address = client_in(scope) or ""
        if wait := self.guesses.seconds_to_wait(address):
            words = f"There were too many wrong keys from your address. Try again in {counted(wait, 'second')}."
            return self.form(scope, words, 429, {"Retry-After": str(wait)})
        sent = parse_qs(body[:MAX_FORM_BYTES].decode("utf-8", "replace")).get("key", [""])[0]
        if not hmac.compare_digest(sent.strip().encode(), self.key):
            self.guesses.add(address)
            return self.form(scope, "This is not the key.")
        self.guesses.forget(address)
        query = scope["query_string"].decode("latin-1")
        response = RedirectResponse(f"./?{query}" if query else "./", status_code=303)
        secure = scope["scheme"] == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"
        same_site: SameSite = self.same_site if secure else "lax"  # browsers accept SameSite=None over https only
        response.set_cookie(self.cookie, self.token, httponly=True, secure=secure, samesite=same_site)
        if same_site == "none":  # only in the frame of the site where the key was typed; Python 3.14 knows the word
            response.headers["set-cookie"] += "; Partitioned"
        return response

    def refuse(self, scope: Scope) -> Response:
        if scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", ""):
            return self.form(scope, "")
        error = {
            "message": "This server requires an API key: send it as a Bearer header.",
            "type": "invalid_request_error",
        }
        body = json.dumps({"error": error | {"param": None, "code": "invalid_api_key"}})
        return Response(body, 401, {"WWW-Authenticate": "Bearer"}, "application/json")

    def form(self, scope: Scope, message: str, status: int = 401, headers: Mapping[str, str] | None = None) -> Response:
        query = scope["query_string"].decode("latin-1")
        # Relative, so that it works behind a proxy that hides part of the path.
        action = "../" * (path_of(scope).count("/") - 1) + ENTER[1:] + (f"?{query}" if query else "")
        content = FORM.format(action=html.escape(action), message=message)
        return HTMLResponse(content, status_code=status, headers=headers)


def path_of(scope: Scope) -> str:
    """The path below the root path, as the routes see it."""
    root = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    return path[len(root) :] if root and path.startswith(f"{root}/") else path
