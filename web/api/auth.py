"""The API key: programs send it as a Bearer token; the page asks for it once and keeps a cookie."""

import asyncio
import hashlib
import hmac
import html
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import counted

from ..bounded_cache import BoundedCache
from ..client import client_in
from ..request_path import path_of
from .errors import ApiError

MAX_FORM_BYTES = 4_096
MAX_WAIT = 30  # seconds by which the answer to a wrong key is delayed
MAX_WAITING = 4  # wrong keys of one client whose answers are being delayed; further unknown keys are not checked
FORGET_SECONDS = 3_600  # after which a client's wrong keys no longer count
MAX_REMEMBERED = 10_000  # clients with wrong keys, keys known to be right, and cookies known to be foreign
MAX_COOKIES = 16  # cookies of servers like this one; a request with more is guessing
COOKIE = re.compile(r"(headscope_[0-9a-f]{8})=([^;\s]*)", re.ASCII)
OPEN = "/health"
ENTER = "/key"
STARTUP = "/gradio_api/startup-events"  # Gradio requests this from its own server once, without the key, during launch

SameSite = Literal["lax", "none"]
Verdict = Literal["right", "wrong", "none", "unchecked"]

FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Headscope</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem; }}
html {{ color-scheme: light dark; }} input, button {{ font: inherit; padding: .4rem .6rem; }}
input {{ width: 100%; box-sizing: border-box; margin: .3rem 0 .8rem; }}
</style><h1>Headscope</h1><form method="post" action="{action}"><label>API key
<input name="key" type="password" autocomplete="current-password" required autofocus></label>
<button>Enter</button></form><p role="alert">{message}</p></html>"""


class WrongKeys:
    """Delays for the answers to wrong keys: one second for a client's first, doubling with each further one.

    Only wrong keys are delayed. A client that does not wait for the answers gains nothing: while ``MAX_WAITING`` of
    them are being delayed, its unknown keys are not checked.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        # By client: the number of wrong keys, and the time of the last.
        self.wrong = BoundedCache[str, tuple[int, float]](max_entries=MAX_REMEMBERED)

    def seconds_to_wait(self, client: str) -> int:
        """The delay of this client's next wrong key."""
        count = self.count(client)
        return MAX_WAIT if count > 5 else min(1 << count, MAX_WAIT)

    def add(self, client: str) -> int:
        """Count a wrong key and return the seconds by which its answer is delayed."""
        seconds = self.seconds_to_wait(client)
        self.wrong.put(client, (self.count(client) + 1, self.now()))
        return seconds

    def count(self, client: str) -> int:
        count, newest = self.wrong.get(client) or (0, 0.0)
        return 0 if self.now() - newest > FORGET_SECONDS else count


class Credential(NamedTuple):
    """What a request sends as proof: the key itself, the cookie, or the token of a model."""

    name: str  # of the cookie, or "key"
    digest: bytes
    is_right: bool


class CredentialCheck:
    """Checks credentials, and delays the verdict on wrong ones.

    A credential that a client has used successfully is accepted without delay, even if wrong ones come from the same
    address.
    """

    sleep = staticmethod(asyncio.sleep)

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.wrong_keys = WrongKeys(now)
        self.waiting: Counter[str] = Counter()  # by client: wrong keys whose answers are being delayed
        self.proven = BoundedCache[tuple[str, bytes], bool](max_entries=MAX_REMEMBERED)  # by client and digest
        # By digest: cookies of other servers, which browsers send with every request.
        self.foreign = BoundedCache[bytes, bool](max_entries=MAX_REMEMBERED)

    async def check(self, client: str, given: Sequence[Credential]) -> Verdict:
        """Check credentials. A verdict is delayed if none is right; with too many delayed, nothing is checked."""
        if not given:
            return "none"
        if any(self.proven.get((client, each.digest)) for each in given):
            return "right"
        if self.waiting[client] >= MAX_WAITING:
            return "unchecked"
        for each in given:
            if each.is_right:
                self.proven.put((client, each.digest), True)
                return "right"
        seconds = max(self.wrong_keys.add(client) for _ in given)
        self.waiting[client] += 1
        try:
            await self.sleep(seconds)
        finally:
            self.waiting[client] -= 1
            self.waiting = +self.waiting
        for each in given:
            if each.name != "key":
                self.foreign.put(each.digest, True)
        return "wrong"

    def too_many(self, client: str) -> str:
        seconds = counted(self.wrong_keys.seconds_to_wait(client), "second")
        return f"Too many wrong keys have come from your address, so this one was not checked. Try again in {seconds}."

    def retry(self, client: str) -> dict[str, str]:
        return {"Retry-After": str(self.wrong_keys.seconds_to_wait(client))}


class ApiKeyMiddleware(CredentialCheck):
    """ASGI middleware that guards the page, our routes and Gradio's API."""

    def __init__(
        self,
        app: ASGIApp,
        key: str,
        launched: threading.Event,
        same_site: SameSite = "lax",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(now)
        self.app, self.key, self.launched, self.same_site = app, key.encode(), launched, same_site
        # The cookie proves that its owner knew the key without revealing it.
        self.token = hmac.new(self.key, b"headscope page", hashlib.sha256).hexdigest()
        self.cookie = f"headscope_{hmac.new(self.key, b'cookie name', hashlib.sha256).hexdigest()[:8]}"

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
            verdict = await self.check(client_in(scope) or "", self.credentials(Headers(scope=scope)))
            if verdict == "right":
                await self.app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.refuse(scope, verdict)(scope, receive, send)

    def credentials(self, headers: Headers) -> list[Credential]:
        """The credentials that a request carries, without those known to belong to another server."""
        credentials = []
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and (sent := sent.strip()):
            credentials.append(self.credential("key", sent.encode("latin-1"), self.key))
        cookies = COOKIE.findall(headers.get("cookie", ""))
        if len(cookies) <= MAX_COOKIES:
            for name, value in cookies:
                expected = self.token.encode() if name == self.cookie else b""
                each = self.credential(name, value.encode("latin-1"), expected)
                if not self.foreign.get(each.digest):
                    credentials.append(each)
        return credentials

    def credential(self, name: str, sent: bytes, expected: bytes) -> Credential:
        digest = hashlib.sha256(name.encode() + b"=" + sent).digest()
        return Credential(name, digest, bool(expected) and hmac.compare_digest(sent, expected))

    async def enter(self, scope: Scope, receive: Receive) -> Response:
        """Check the key from the form and answer with the cookie."""
        body = b""
        while True:
            message: Message = await receive()
            body += message.get("body", b"")
            if len(body) > MAX_FORM_BYTES or not message.get("more_body"):
                break
        sent = parse_qs(body[:MAX_FORM_BYTES].decode("utf-8", "replace")).get("key", [""])[0].strip()
        given = [self.credential("key", sent.encode(), self.key)] if sent else []
        client = client_in(scope) or ""
        verdict = await self.check(client, given)
        if verdict == "unchecked":
            return self.form(scope, self.too_many(client), 429, self.retry(client))
        if verdict != "right":
            return self.form(scope, "This key is wrong.")
        # From now on the browser sends the cookie, which counts as proven because the key was.
        self.proven.put((client, self.credential(self.cookie, self.token.encode(), b"").digest), True)
        query = scope["query_string"].decode("latin-1")
        response = RedirectResponse(f"./?{query}" if query else "./", status_code=303)
        secure = scope["scheme"] == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"
        same_site: SameSite = self.same_site if secure else "lax"  # browsers accept SameSite=None over https only
        response.set_cookie(self.cookie, self.token, httponly=True, secure=secure, samesite=same_site)
        # Valid only in the frame of the site where the key was typed. Python 3.14 has an option for it.
        if same_site == "none":
            response.headers["set-cookie"] += "; Partitioned"
        return response

    def refuse(self, scope: Scope, verdict: Verdict) -> Response:
        client, is_unchecked = client_in(scope) or "", verdict == "unchecked"
        status, headers = (429, self.retry(client)) if is_unchecked else (401, {"WWW-Authenticate": "Bearer"})
        if scope["method"] in ("GET", "HEAD") and "text/html" in Headers(scope=scope).get("accept", ""):
            return self.form(scope, self.too_many(client) if is_unchecked else "", status, headers)
        message = "This server requires an API key: send it as a Bearer token in the Authorization header."
        if verdict == "wrong":
            message = "The API key is wrong."
        code = "invalid_api_key"
        if is_unchecked:
            message, code = self.too_many(client), "too_many_wrong_keys"
        return ApiError(status, message, code=code, headers=headers).response()

    def form(self, scope: Scope, message: str, status: int = 401, headers: Mapping[str, str] | None = None) -> Response:
        query = scope["query_string"].decode("latin-1")
        # A relative URL also works behind a proxy that strips part of the path.
        action = "../" * (path_of(scope).count("/") - 1) + ENTER[1:] + (f"?{query}" if query else "")
        content = FORM.format(action=html.escape(action), message=message)
        return HTMLResponse(content, status_code=status, headers=headers)
