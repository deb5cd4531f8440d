"""Which pages of other sites may call this server: none, unless the operator says so.

A browser sends a visitor's cookies along with whatever a page of another site makes it send, and says which site that
is. Here such a request is answered as one of a stranger: it has no cookies, it changes nothing, and the page cannot
read the answer.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.errors import ApiError

ANY = "*"
READING = ("GET", "HEAD", "OPTIONS")
PREFLIGHT = {"Access-Control-Allow-Methods": "GET, HEAD, POST", "Access-Control-Max-Age": "600"}
HUB = ("https://huggingface.co",)  # which shows a Space in a frame
DEFAULT_PORTS = {"http": 80, "https": 443}


class CheckOrigin:
    """ASGI middleware in front of everything, Gradio's own rules for other sites included, which it replaces.

    ``allowed`` are origins such as ``https://example.org``, or ``*`` for all, which then get no cookies. ``frames`` are
    those that may show the page in a frame; None allows every site. Behind ``trusted_proxies`` the name that a visitor
    called is in ``X-Forwarded-Host``.
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
        # Gradio would let every site in.
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
        """What a script of ``origin`` is told: that it may read the answer, or None."""
        if origin is not None and origin in self.allowed:
            return origin
        return ANY if origin is not None and ANY in self.allowed else None

    def is_foreign(self, method: str, headers: Headers) -> bool:
        """Whether a page of another site makes the browser send this, rather than the visitor."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:  # every browser says it of encrypted pages and of this machine's
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
        if self.allowed:
            headers.add_vary_header("Origin")
        if granted:
            headers["Access-Control-Allow-Origin"] = granted
            headers["Access-Control-Expose-Headers"] = "X-Request-Id, Retry-After"
            if granted != ANY:
                headers["Access-Control-Allow-Credentials"] = "true"


def refusal(origin: str | None) -> ApiError:
    message = (
        f"A page of {origin or 'another site'} sent this. Pages of other sites may only read here, unless the operator "
        "names them with --allowed-origins."
    )
    return ApiError(403, message, code="foreign_origin")


def host_of(origin: str) -> str:
    """``example.org`` of ``https://example.org:443``: the name, and the port unless it is the usual one."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return ""
    name = (parts.hostname or "").lower()
    return name if port in (None, DEFAULT_PORTS.get(parts.scheme)) else f"{name}:{port}"
