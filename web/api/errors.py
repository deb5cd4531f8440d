"""What goes wrong under /v1, as OpenAI's error objects."""

from http import HTTPStatus

from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from model import InputError
from model.lens.questions.progress import Cancelled
from model.serving.engine import Busy, Closed

from ..questions.turns import OutOfTime
from ..serving.elsewhere.upstream import EngineLost
from .schema import first_problem

RETRY_SECONDS = 2
CLIENT_LEFT = 499  # nginx's number for it; nobody reads this answer


class ApiError(Exception):
    """An answer that is not 200."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code

    @property
    def body(self) -> dict[str, object]:
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


def as_api_error(error: Exception) -> ApiError:
    """What the caller is told of any exception."""
    match error:
        case ApiError():
            return error
        case ValidationError():
            field, message, code = first_problem(error)
            return ApiError(400, message, field or None, code)
        case InputError():
            return ApiError(404 if error.code == "model_not_found" else 400, str(error), error.field, error.code)
        case HTTPException():  # no such route, no such method, a body too large
            code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return ApiError(error.status_code, str(error.detail), code=code)
        case ClientDisconnect():
            return ApiError(CLIENT_LEFT, "The client left.")
        case Busy():
            return ApiError(429, "Too many requests are waiting. Try again in a moment.", code="queue_full")
        case OutOfTime():
            return ApiError(503, "This took longer than the server allows. Ask about a shorter text.", code="deadline")
        case EngineLost():
            return ApiError(502, str(error), code="engine_lost")
        case Closed() | Cancelled():  # a question is cancelled by a client who left, or by the server's end
            return ApiError(503, "The server is shutting down.", code="closing")
        case FloatingPointError():
            return ApiError(500, f"The model failed: {error}", code="model_failed")
    return ApiError(500, "Internal error; see the server log.", code="internal_error")
