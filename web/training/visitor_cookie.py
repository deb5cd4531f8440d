"""The cookies that give the page access to the model that a visitor trained, and to one that is lent to the visitor."""

import hashlib
import re
import secrets
from typing import Literal

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..request_path import path_of
from ..serving.served_models import LOAN, OPENS, VISITOR

Kind = Literal["visitor", "loan"]
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)


class VisitorMiddleware:
    """ASGI middleware that sets ``VISITOR`` and ``LOAN`` to the values of their cookies, for the paths these open."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # Always, since a request that is pipelined inherits the value of the one before it.
            path = path_of(scope)
            VISITOR.set(secret_in(scope, "visitor") if path.startswith(OPENS["visitor"]) else "")
            LOAN.set(secret_in(scope, "loan") if path.startswith(OPENS["loan"]) else "")
        await self.app(scope, receive, send)


def is_secure(scope: Scope) -> bool:
    return scope["scheme"] == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"


def cookie_name(scope: Scope, kind: Kind = "visitor") -> str:
    """The name of a cookie, which differs between servers below different paths of one host.

    Over https its prefix makes browsers refuse it from anyone but this host: a page under a sibling name cannot set it,
    nor one over http.
    """
    below = hashlib.sha256(scope.get("root_path", "").rstrip("/").encode()).hexdigest()[:8]
    return f"{'__Host-' if is_secure(scope) else ''}headscope_{kind}_{below}"


def secret_in(scope: Scope, kind: Kind) -> str:
    """The secret in the cookie of this kind that a request carries, "" if there is none."""
    name = cookie_name(scope, kind)
    for cookies in Headers(scope=scope).getlist("cookie"):
        for cookie in cookies.split(";"):  # one by one, so that a malformed one from elsewhere hides no other
            found, _, value = cookie.strip().partition("=")
            if found == name and TOKEN.fullmatch(value):
                return value
    return ""


def new_visitor() -> str:
    return secrets.token_urlsafe(24)


def give_cookie(response: Response, request: Request, secret: str, kind: Kind = "visitor", *, is_space: bool) -> None:
    """Set a session cookie with ``secret``."""
    secure = is_secure(request.scope)
    # A Space is shown inside another site's frame, and browsers accept SameSite=None over https only.
    same_site: Literal["lax", "none"] = "none" if is_space and secure else "lax"
    name = cookie_name(request.scope, kind)
    response.set_cookie(name, secret, path="/", httponly=True, secure=secure, samesite=same_site)
