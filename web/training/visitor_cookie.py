"""The cookie that identifies a visitor, and gives the page access to the model that its owner trained."""

import hashlib
import re
import secrets
from typing import Literal

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..request_path import path_of
from ..serving.served_models import VISITOR

COOKIE = "headscope_visitor_"
TOKEN = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
# Routes that the page calls; programs call those under the last one without a cookie.
PAGE = ("/look/", "/learn/", "/train/", "/v1/lens/")


class VisitorMiddleware:
    """ASGI middleware that sets ``VISITOR`` to the value of the visitor's cookie for routes of the page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # Always, since a request that is pipelined inherits the value of the one before it.
            is_page = path_of(scope).startswith(PAGE)
            VISITOR.set(visitor_in(scope) if is_page else "")
        await self.app(scope, receive, send)


def is_secure(scope: Scope) -> bool:
    return scope["scheme"] == "https" or Headers(scope=scope).get("x-forwarded-proto") == "https"


def cookie_name(scope: Scope) -> str:
    """The name of the cookie, which differs between servers below different paths of one host.

    Over https its prefix makes browsers refuse it from anyone but this host: a page under a sibling name cannot set it,
    nor one over http.
    """
    below = hashlib.sha256(scope.get("root_path", "").rstrip("/").encode()).hexdigest()[:8]
    return f"{'__Host-' if is_secure(scope) else ''}{COOKIE}{below}"


def visitor_in(scope: Scope) -> str:
    """The visitor whose cookie a request carries, "" if there is none."""
    name = cookie_name(scope)
    for cookies in Headers(scope=scope).getlist("cookie"):
        for cookie in cookies.split(";"):  # one by one, so that a malformed one from elsewhere hides no other
            found, _, value = cookie.strip().partition("=")
            if found == name and TOKEN.fullmatch(value):
                return value
    return ""


def new_visitor() -> str:
    return secrets.token_urlsafe(24)


def give_cookie(response: Response, request: Request, visitor: str, *, is_space: bool) -> None:
    """Set a session cookie with ``visitor``."""
    secure = is_secure(request.scope)
    # A Space is shown inside another site's frame, and browsers accept SameSite=None over https only.
    same_site: Literal["lax", "none"] = "none" if is_space and secure else "lax"
    response.set_cookie(cookie_name(request.scope), visitor, path="/", httponly=True, secure=secure, samesite=same_site)
