"""Which host names belong to this server, and which other sites may call it: none, unless the operator allows them.

A page on another site can make the browser send requests here, with the visitor's cookies; the browser says where such
a request comes from. By default, it is stripped of its cookies and may change nothing, and the page cannot read the
response. A site whose name resolves to this server's address (DNS rebinding) would pass as the server itself, so the
host name is checked as well.
"""

import re
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import shorten

from ..api.errors import ApiError

ANY = "*"
PORT = re.compile(r":\d*$", re.ASCII)
READING = ("GET", "HEAD", "OPTIONS")
PREFLIGHT = {"Access-Control-Allow-Methods": "GET, HEAD, POST", "Access-Control-Max-Age": "600"}
HUB = ("https://huggingface.co",)  # embeds Spaces in a frame
DEFAULT_PORTS = {"http": 80, "https": 443}


class HostMiddleware:
    """Refuses requests whose ``Host`` is not this server's, or from which Gradio could not make an address.

    IP addresses, ``localhost`` and this machine's name are always allowed. ``allowed`` adds names such as
    ``example.org`` or ``*.example.org``, or ``*`` for all. If ``Host`` is missing, as HTTP/1.0 allows, it is set to the
    server's address, because Gradio relies on it. Headers from which Gradio would make the page's own address are
    removed: that of its rendering server, which is not used here, and ``X-Forwarded-Host`` unless there are
    ``trusted_proxies``.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str] = (), trusted_proxies: int = 0) -> None:
        self.app = app
        self.removed = {b"x-gradio-server"} if trusted_proxies else {b"x-gradio-server", b"x-forwarded-host"}
        own = socket.gethostname()
        short = own.partition(".")[0]
        names = [name.lower() for name in ("localhost", "*.localhost", own, short, f"{short}.local", *allowed)]
        self.names = {name for name in names if not name.startswith("*.")}
        self.suffixes = tuple(name[1:] for name in names if name.startswith("*."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [each for each in scope["headers"] if each[0] not in self.removed]
            headers = Headers(scope=scope)
            host, forwarded = headers.get("host"), headers.get("x-forwarded-host")
            if host is None:
                name, port = scope["server"] or ("localhost", None)
                host = f"{name}:{port}" if port else name
                scope["headers"] = [*scope["headers"], (b"host", host.encode())]
            elif not self.is_allowed(host):
                await wrong_host(host).response()(scope, receive, send)
                return
            if forwarded and not host_of(f"http://{forwarded.partition(',')[0].strip()}"):
                await wrong_host(forwarded).response()(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def is_allowed(self, host: str) -> bool:
        if ANY in self.names:
            return True
        if not host_of(f"http://{host}"):
            return False
        name = PORT.sub("", host).lower().removesuffix(".")
        if name in self.names or name.endswith(self.suffixes):
            return True
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


def wrong_host(host: str) -> ApiError:
    message = f"This server is not called {shorten(host)}. The operator can allow this name with --allowed-hosts."
    return ApiError(421, message, code="wrong_host")


class OriginMiddleware:
    """Decides what pages of other sites may do. It runs before Gradio's own CORS rules and replaces them.

    ``allowed`` lists origins such as ``https://example.org``, or ``*`` for all, whose requests then have no cookies.
    ``frames`` lists origins that may embed the page in a frame; None allows every site. Behind ``trusted_proxies``, the
    host name that the visitor called is in ``X-Forwarded-Host``.
    """

    def __init__(
        self,
        app: ASGIApp,
        allowed: Sequence[str] = (),
        frames: Sequence[str] | None = None,
        trusted_proxies: int = 0,
    ) -> None:
        self.app, self.allowed, self.trusted_proxies = app, frozenset(allowed), trusted_proxies
        sources = None if frames is None else ["'self'", *frames, *sorted(self.allowed - {ANY})]
        self.policy = None if sources is None else f"frame-ancestors {' '.join(sources)}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin, method = headers.get("origin"), scope["method"]
        granted = self.granted(origin)
        if self.is_foreign(method, headers) and origin not in self.allowed:
            if method not in READING and not granted:
                await refusal(origin).response()(scope, receive, send)
                return
            scope["headers"] = [each for each in scope["headers"] if each[0] != b"cookie"]
        # Without this, Gradio would allow every site.
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"origin"]

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.add_to(MutableHeaders(scope=message), granted)
            await send(message)

        if method == "OPTIONS" and "access-control-request-method" in headers:
            asked = headers.get("access-control-request-headers", "")
            allowance = PREFLIGHT | {"Access-Control-Allow-Headers": asked} if granted else {}
            await Response(status_code=204 if granted else 403, headers=allowance)(scope, receive, answered)
            return
        await self.app(scope, receive, answered)

    def granted(self, origin: str | None) -> str | None:
        """The value of ``Access-Control-Allow-Origin`` for ``origin``, or None if it may not read the response."""
        if origin is not None and origin in self.allowed:
            return origin
        return ANY if origin is not None and ANY in self.allowed else None

    def is_foreign(self, method: str, headers: Headers) -> bool:
        """Whether a page of another site caused this request, rather than the visitor."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:  # every browser sends it to HTTPS servers and to localhost
            follows_link = headers.get("sec-fetch-mode") == "navigate" and method in READING
            return site not in ("same-origin", "none") and not follows_link
        return origin is not None and host_of(origin) not in self.own_hosts(headers)

    def own_hosts(self, headers: Headers) -> set[str]:
        names = [headers.get("host", "")]
        if self.trusted_proxies:
            names.append(headers.get("x-forwarded-host", "").rpartition(",")[2].strip())
        return {host_of(f"{scheme}://{name}") for name in names if name for scheme in DEFAULT_PORTS}

    def add_to(self, headers: MutableHeaders, granted: str | None) -> None:
        if self.policy and headers.get("content-type", "").startswith("text/html"):
            headers["Content-Security-Policy"] = self.policy
        headers["X-Content-Type-Options"] = "nosniff"  # a browser would guess, and the text may be from the address
        if self.allowed:
            headers.add_vary_header("Origin")
        if granted:
            headers["Access-Control-Allow-Origin"] = granted
            headers["Access-Control-Expose-Headers"] = "X-Request-Id, Retry-After"
            if granted != ANY:
                headers["Access-Control-Allow-Credentials"] = "true"


def refusal(origin: str | None) -> ApiError:
    message = (
        f"This request came from a page on {origin or 'another site'}. Pages on other sites may only read, unless the "
        "operator allows them with --allowed-origins."
    )
    return ApiError(403, message, code="foreign_origin")


def host_of(origin: str) -> str:
    """The host of an origin, with its port unless that is the default: ``https://example.org:443`` is ``example.org``.

    Empty for a malformed origin.
    """
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return ""
    name = (parts.hostname or "").lower()
    return name if port in (None, DEFAULT_PORTS.get(parts.scheme)) else f"{name}:{port}"
