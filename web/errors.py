"""What goes wrong under /v1, as OpenAI's error objects."""

from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model import PromptError
from model.engine import Busy, Closed

from .schema import first_problem
from .settings import Limits
from .validate import BadInput

RETRY_SECONDS = 2
CLIENT_LEFT = 499  # nginx's number for it; nobody reads this answer


class ApiError(Exception):
    """An answer that is not 200."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @property
    def body(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        kind = "rate_limit_error" if self.status == 429 else kind
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def outcome(self) -> str:
        """The word for it in the metrics."""
        if self.status in (429, CLIENT_LEFT):
            return "busy" if self.status == 429 else "cancelled"
        return "failed" if self.status == 500 else "refused"

    def response(self) -> JSONResponse:
        headers = {"Retry-After": str(RETRY_SECONDS)} if self.status in (429, 503) else None
        return JSONResponse(self.body, self.status, headers)


class LimitBody:
    """ASGI middleware that refuses bodies above the limit, whether they say how long they are or not."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        error = ApiError(413, f"The body has more than {self.limits.max_body_bytes:,} bytes.", code="body_too_large")
        said = Headers(scope=scope).get("content-length", "")
        if said.isdigit() and int(said) > self.limits.max_body_bytes:
            return await error.response()(scope, receive, send)
        n_bytes = 0

        async def counted() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self.limits.max_body_bytes:
                raise HTTPException(413, error.message)
            return message

        await self.app(scope, counted, send)


def as_api_error(error: Exception) -> ApiError:
    """Any exception as what the caller is told of it."""
    match error:
        case ApiError():
            return error
        case ValidationError():
            field, message, code = first_problem(error)
            return ApiError(400, message, field or None, code)
        case PromptError():
            return ApiError(400, str(error), "prompt", error.code)
        case BadInput():
            status, code = (404, "model_not_found") if error.field == "model" else (400, "invalid_value")
            return ApiError(status, str(error), error.field, code)
        case HTTPException():  # no such route, no such method, a body too large
            code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return ApiError(error.status_code, str(error.detail), code=code)
        case ClientDisconnect():
            return ApiError(CLIENT_LEFT, "The client left.")
        case Busy():
            return ApiError(429, "Too many requests are waiting; try again in a moment.", code="queue_full")
        case Closed():
            return ApiError(503, "The server is closing.", code="closing")
        case FloatingPointError():
            return ApiError(500, f"The model failed: {error}", code="model_failed")
    return ApiError(500, "The server failed; its log says how.", code="internal_error")
