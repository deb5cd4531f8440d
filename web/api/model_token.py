"""The token of a model that a visitor trained: with it in a header, programs use the model under ``/v1``.

The visitor's cookie does not count there, except for Ask's routes, which the page itself calls.
"""

import hashlib
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ..client import client_in
from ..request_path import path_of
from ..serving.served_models import TOKEN_HEADER, VISITOR, PrivateModels
from .auth import Credential, CredentialCheck
from .errors import ApiError

PROGRAMS = ("/v1/", "/tokenize", "/detokenize")
UNKNOWN = (
    f"No model here has the token in {TOKEN_HEADER}. Either the model has been deleted, as happens a few minutes after "
    "its page is closed, or it was trained on another copy of this server."
)


class ModelTokenMiddleware(CredentialCheck):
    """ASGI middleware that gives a request with a model's token access to that visitor's model.

    The answer to an unknown token is delayed like that to a wrong key.
    """

    def __init__(self, app: ASGIApp, models: PrivateModels, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self.app, self.models = app, models

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = None
        if scope["type"] == "http" and path_of(scope).startswith(PROGRAMS):
            token = Headers(scope=scope).get(TOKEN_HEADER)
        if token is None:
            await self.app(scope, receive, send)
            return
        visitor, client = self.models.owner_of(token), client_in(scope) or ""
        digest = hashlib.sha256(token.encode()).digest()
        verdict = await self.check(client, [Credential("key", digest, visitor is not None)])
        if verdict == "unchecked":
            error = ApiError(429, self.too_many(client), code="too_many_wrong_keys", headers=self.retry(client))
            await error.response()(scope, receive, send)
        elif visitor is None:
            await ApiError(401, UNKNOWN, code="invalid_model_token").response()(scope, receive, send)
        else:
            VISITOR.set(visitor)
            await self.app(scope, receive, send)
