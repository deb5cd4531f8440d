"""The cookie that identifies a visitor, and gives the page access to the model that its owner trained."""

import os
import re
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Literal

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..request_path import path_of
from ..serving.served_models import VISITOR

COOKIE = "headscope_visitor"
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
            VISITOR.set(visitor_in(Headers(scope=scope).get("cookie", "")) if is_page else "")
        await self.app(scope, receive, send)


def visitor_in(cookies: str) -> str:
    """The visitor in a Cookie header, "" if there is none."""
    try:
        cookie = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return ""
    return cookie.value if cookie and TOKEN.fullmatch(cookie.value) else ""


def new_visitor() -> str:
    return secrets.token_urlsafe(24)


def give_cookie(response: Response, request: Request, visitor: str) -> None:
    """Set a session cookie with ``visitor``."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    # A Space is shown inside another site's frame, and browsers accept SameSite=None over https only.
    same_site: Literal["lax", "none"] = "none" if os.environ.get("SPACE_ID") and secure else "lax"
    response.set_cookie(COOKIE, visitor, httponly=True, secure=secure, samesite=same_site)
