"""Errors under /v1, as OpenAI's error objects."""

from collections.abc import Mapping
from http import HTTPStatus

import httpx
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from model import InputError
from model.errors import Busy, Closed, OutOfTime, shorten
from model.lens.progress import Cancelled
from model.sampling import SAMPLING_OPTIONS

from ..request_path import path_of
from ..serving.budget import NoRoom
from ..serving.chat_templates import TemplatesUnavailable
from ..serving.engine_client import EngineLost

RETRY_SECONDS = 2
REFUSALS = (InputError, ValidationError, Busy, Closed, OutOfTime, EngineLost, TemplatesUnavailable)
CLIENT_LEFT = 499  # nginx's status for a client that disconnected; no client reads this answer

# For a union type, pydantic reports an error per alternative; these messages are shorter.
UNIONS = {
    "prompt": "a string, a list of strings, a list of token ids, or a list of such lists",
    "input": "a string, a list of strings, a list of token ids, or a list of such lists",
    "stop": "a string or a list of strings, none of them empty",
}

# The unsupported options that programs use most often.
UNSUPPORTED = {
    "tools": "Tools are not supported: the models here only continue text.",
    "tool_choice": "Tools are not supported: tool_choice must be 'none' or 'auto'.",
    "functions": "Tools are not supported: the models here only continue text.",
    "function_call": "Tools are not supported: function_call must be 'none' or 'auto'.",
    "response_format": 'response_format must be {"type": "text"}: the models here cannot follow a JSON schema.',
}


class ApiError(HTTPException):
    """A response with a status other than 200; outside /v1 it has the format of other errors there."""

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        retry = {"Retry-After": str(RETRY_SECONDS)} if status in (429, 503) else {}
        super().__init__(status, message, retry | dict(headers or {}))
        self.param, self.code = param, code

    @property
    def body(self) -> dict[str, object]:
        kind = "invalid_request_error" if self.status_code < 500 else "server_error"
        kind = "rate_limit_error" if self.status_code == 429 else kind
        return {"error": {"message": self.detail, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        return JSONResponse(self.body, self.status_code, self.headers)


def as_api_error(error: Exception) -> ApiError:
    """The API error for an exception."""
    match error:
        case ApiError():
            return error
        case ValidationError():
            field, message, code = first_problem(error)
            return ApiError(400, message, field or None, code)
        case InputError():
            return ApiError(404 if error.code == "model_not_found" else 400, str(error), error.field, error.code)
        case HTTPException():  # no such route, no such method
            code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return ApiError(error.status_code, str(error.detail), code=code, headers=error.headers)  # Allow, with a 405
        case ClientDisconnect():
            return ApiError(CLIENT_LEFT, "The client disconnected.")
        case Busy():
            code = "memory_budget" if isinstance(error, NoRoom) else "queue_full"
            return ApiError(429, str(error), code=code, headers={"Retry-After": str(error.retry_seconds)})
        case OutOfTime():
            return ApiError(400, str(error), code="deadline")
        case EngineLost():
            return ApiError(502, str(error), code="engine_lost")
        case Closed() | Cancelled():  # a question is cancelled when its client disconnects or the server shuts down
            return ApiError(503, str(Closed()), code="closing")
        case TemplatesUnavailable():
            return ApiError(503, str(error), code="templates_unavailable")
        case FloatingPointError():
            return ApiError(500, f"The model failed: {error}", code="model_failed")
    return ApiError(500, "Internal error; see the server log.", code="internal_error")


async def answer_bad_body(request: Request, error: Exception) -> Response:
    """Replace FastAPI's response, which repeats the whole body and fails if that contains NaN."""
    assert isinstance(error, RequestValidationError)
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"][1:]))
    message = f"{problem['msg']}, found {shorten(problem.get('input'))}."
    if problem["type"] == "extra_forbidden":
        message = "there is no such field."
    # Gradio's clients expect a list.
    detail: object = [{"type": problem["type"], "loc": problem["loc"][:3], "msg": message}]
    if not path_of(request.scope).startswith("/gradio_api"):
        detail = f"{place}: {message}" if place else message
    return JSONResponse({"detail": detail}, 422)


async def answer_input_error(_request: Request, error: Exception) -> Response:
    """The response to a value that cannot be used."""
    assert isinstance(error, InputError)
    return JSONResponse({"detail": str(error), "field": error.field}, 400)


async def answer_refusal(_request: Request, error: Exception) -> Response:
    return refusal(error)


def refusal(error: Exception) -> Response:
    """The response outside /v1 to a request that cannot be answered at the moment."""
    api_error = as_api_error(error)
    return JSONResponse({"detail": api_error.detail}, api_error.status_code, api_error.headers)


async def answer_bad_address(_request: Request, _error: Exception) -> Response:
    """The response to a request whose address, or a header that Gradio takes it from, is too long or malformed."""
    return JSONResponse({"detail": "The address of this request is too long or malformed."}, 400)


# The handlers of the page, Learn and Train.
OUTSIDE_V1 = {
    RequestValidationError: answer_bad_body,
    InputError: answer_input_error,
    Busy: answer_refusal,
    Closed: answer_refusal,
    TemplatesUnavailable: answer_refusal,
    ClientDisconnect: answer_refusal,
    httpx.InvalidURL: answer_bad_address,
}


def first_problem(error: ValidationError) -> tuple[str, str, str]:
    """The first invalid field, what is wrong with it, and an error code."""
    problems = error.errors(include_url=False)
    for field in (str(each["loc"][0]) for each in problems if each["loc"]):
        if field in UNSUPPORTED:
            return field, UNSUPPORTED[field], "unsupported_option"
    problem = max(problems, key=lambda each: each["type"] == "extra_forbidden")
    place = problem["loc"]
    field = str(place[0]) if place else ""
    if problem["type"] in ("extra_forbidden", "none_required"):
        field = str(place[-1])
        return field, f"The option {field!r} is not supported.", "unsupported_option"
    if problem["type"] == "missing":
        return field, f"{field} is missing.", "missing_field"
    if problem["type"] == "json_invalid":
        return "", f"The body is not valid JSON: {problem['ctx']['error']}.", "invalid_json"
    if not field:
        return field, "The body must be a JSON object.", "invalid_json"
    if field in SAMPLING_OPTIONS:
        message = f"{field} must be {SAMPLING_OPTIONS[field].allowed}, found {shorten(problem['input'])}."
        return field, message, "invalid_value"
    if field in UNIONS:
        return field, f"{field} must be {UNIONS[field]}.", "invalid_value"
    return field, f"{field}: {problem['msg']}, found {shorten(problem['input'])}.", "invalid_value"
