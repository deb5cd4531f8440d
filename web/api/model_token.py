"""The token of a model that a visitor trained: with it in a header, programs use the model under ``/v1``.

The visitor's cookie does not count there, except for Ask's routes, which the page itself calls.
"""

import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..client import client_in
from ..request_path import path_of
from ..serving.served_models import OPENS, TOKEN_HEADER, VISITOR, PrivateModels
from .auth import Refusals
from .errors import ApiError

UNKNOWN = (
    f"No model here has the token in {TOKEN_HEADER}. Either the model has been deleted, as happens a few minutes after "
    "its page is closed, or it was trained on another copy of this server."
)


class ModelTokenMiddleware:
    """ASGI middleware that gives a request with a model's token access to that visitor's model."""

    def __init__(self, app: ASGIApp, models: PrivateModels, now: Callable[[], float] = time.monotonic) -> None:
        self.app, self.models, self.refusals = app, models, Refusals(now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = None
        if scope["type"] == "http" and path_of(scope).startswith(OPENS["token"]):
            token = Headers(scope=scope).get(TOKEN_HEADER)
        if token is None:
            await self.app(scope, receive, send)
            return
        visitor = self.models.owner_of(token)
        if visitor is not None:
            VISITOR.set(visitor)
            await self.app(scope, receive, send)
            return
        error = ApiError(401, UNKNOWN, code="invalid_model_token")
        await self.refusals.count(client_in(scope) or "", error).response()(scope, receive, send)
