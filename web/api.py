"""Routes for programs, /v1 as OpenAI has it, and for whoever watches over the server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Mount
from starlette.types import Receive, Scope, Send

from model import LoadedModel, PromptError
from model.engine import Busy, Closed

from .completions import ROUTE, Completion, read_head_mask
from .endpoints import describe
from .engines import client_of
from .errors import ApiError, as_api_error
from .openapi import document
from .schema import AttentionRequest, Body, CompletionRequest
from .traces import Answer
from .validate import BadInput, read_model
from .workspace import Parts

JSON, BINARY = "application/json", "application/octet-stream"
NO_CACHE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy must not hold the stream back
CLIENT_LEFT = 499  # nginx's number for it; nobody reads this answer


def api_routes(parts: Parts) -> list[BaseRoute]:
    """Everything beside the page and Gradio's own API."""
    router = APIRouter()
    shelf = parts.shelf

    @router.get("/health")
    async def health() -> JSONResponse:
        """200 once models are served; 503 while they load or the server closes, and when none could be loaded."""
        if parts.engines.closed:
            return JSONResponse({"status": "closing"}, status_code=503)
        if not shelf.ready.done():
            return JSONResponse({"status": "loading"}, status_code=503)
        status = "ok" if shelf.models else "error"
        body = {"status": status, "models": list(shelf.models), "failed": shelf.failures}
        return JSONResponse(body, status_code=200 if shelf.models else 503)

    @router.get("/metrics")
    async def metrics() -> Response:
        """Counters, gauges and histograms in Prometheus' text format."""
        return Response(parts.engines.metrics.text(), media_type=parts.engines.metrics.content_type)

    return [*router.routes, Mount("/v1", app=v1(parts))]


def v1(parts: Parts) -> FastAPI:
    """An app of its own, since its errors are OpenAI's."""
    app = FastAPI(docs_url=None, redoc_url=None)
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    for kind in (ApiError, BadInput, PromptError, ValidationError, Busy, Closed, HTTPException, Exception):
        app.add_exception_handler(kind, answer_error)

    @app.get("/models")
    async def list_models() -> dict[str, Any]:
        """The models that are served."""
        return {"object": "list", "data": [listed(parts, name, gpt) for name, gpt in parts.shelf.models.items()]}

    @app.get("/models/{model:path}")
    async def get_model(model: str) -> dict[str, Any]:
        """One model that is served."""
        if model not in parts.shelf.models:
            raise BadInput("model", f"There is no model {model[:60]!r}.")
        return listed(parts, model, parts.shelf.models[model])

    @app.post("/completions")
    async def create_completion(request: Request) -> Response:
        """Continue one or several texts. With `stream: true` the answer is server-sent events."""
        with counted(parts, ROUTE):
            body = CompletionRequest.model_validate_json(await request.body())
            completion = Completion(*find_model(parts, body), body, parts.engines)
            completion.start(client_of(request))
        if body.stream:
            return Stream(completion.stream(), completion.leave, "text/event-stream")
        try:
            return await unless_left(request, completion)
        finally:
            completion.leave()

    @app.post("/attention")
    async def read_attention(request: Request) -> Response:
        """The attention weights of a text, `attention[layer][head][query][key]`, as JSON or as a safetensors file."""
        with counted(parts, "/v1/attention"):
            body = AttentionRequest.model_validate_json(await request.body())
            answer = attention_of(parts, *find_model(parts, body), body)
            parts.traces.check_line()
        as_json = body.format != "safetensors"
        pieces = answer.json() if as_json else answer.safetensors()

        async def send() -> AsyncIterator[bytes]:
            async with parts.traces.turn():
                while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                    yield piece
            parts.engines.metrics.count("/v1/attention", "ok")

        return StreamingResponse(send(), media_type=JSON if as_json else BINARY)

    return app


class Stream(StreamingResponse):
    """Server-sent events; ``on_end`` runs whether they were all sent or the client left before the first."""

    def __init__(self, content: AsyncIterator[bytes], on_end: Callable[[], None], media_type: str) -> None:
        super().__init__(content, media_type=media_type, headers=NO_CACHE)
        self.on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.on_end()


async def unless_left(request: Request, completion: Completion) -> Response:
    """The whole answer, given up when the client leaves before it is there."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    work, leaving = asyncio.ensure_future(completion.whole()), asyncio.ensure_future(left())
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return JSONResponse(work.result()) if work.done() else Response(status_code=CLIENT_LEFT)
    finally:
        work.cancel()
        leaving.cancel()


def find_model(parts: Parts, body: Body) -> tuple[str, LoadedModel]:
    if not parts.shelf.ready.done():
        raise ApiError(503, "The models are still loading; try again in a moment.", code="loading")
    return read_model(parts.shelf, body.model)


def attention_of(parts: Parts, name: str, gpt: LoadedModel, body: AttentionRequest) -> Answer:
    """What the body asks for, checked."""
    if (body.prompt is None) == (body.tokens is None):
        raise ApiError(400, "Either prompt or tokens is needed, and not both.", "prompt", "invalid_value")
    limits = parts.shelf.settings.limits
    if body.prompt is not None and len(body.prompt) > limits.max_prompt_characters:
        message = f"The prompt has {len(body.prompt):,} characters, at most {limits.max_prompt_characters:,} are taken."
        raise ApiError(400, message, "prompt", "invalid_value")
    ids = gpt.read_prompt(body.tokens if body.prompt is None else body.prompt)
    layers = read_choice(gpt, "layers", body.layers, gpt.config.n_layer)
    heads = read_choice(gpt, "heads", body.heads, gpt.config.n_head)
    answer = Answer(gpt, name, ids, layers, heads, read_head_mask(gpt, body.head_mask))
    if body.format != "safetensors" and answer.n_weights > limits.max_json_weights:
        message = (
            f"These are {answer.n_weights:,} attention weights, at most {limits.max_json_weights:,} are sent as JSON. "
            'Ask for "format": "safetensors", or name fewer layers and heads.'
        )
        raise ApiError(400, message, "format", "too_many_weights")
    return answer


def read_choice(gpt: LoadedModel, name: str, chosen: list[int] | None, count: int) -> list[int]:
    try:
        return list(gpt.read_choice(name, chosen, count))
    except ValueError as error:
        raise ApiError(400, str(error), name, "invalid_value") from None


def listed(parts: Parts, name: str, gpt: LoadedModel) -> dict[str, Any]:
    """A model as OpenAI lists it, with its sizes."""
    return {"object": "model", "created": parts.shelf.started_at, "owned_by": "headscope"} | describe(name, gpt)


@contextmanager
def counted(parts: Parts, route: str) -> Iterator[None]:
    """Count a request that is refused here."""
    try:
        yield
    except Exception as error:
        status = as_api_error(error).status
        outcome = "busy" if status == 429 else "refused" if status < 500 else "failed"
        parts.engines.metrics.count(route, outcome)
        raise


async def answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):  # no such route, no such method, a body too large
        code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
        error = ApiError(error.status_code, f"{request.method} {request.url.path}: {error.detail}", code=code)
    return as_api_error(error).response()
