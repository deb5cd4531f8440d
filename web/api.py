"""Routes for programs, /v1 as OpenAI has it, and for whoever watches over the server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Mount
from starlette.types import Receive, Scope, Send

from model import LoadedModel, PromptError
from model.engine import Busy, Closed

from .completions import ROUTE, Completion, read_head_mask
from .endpoints import describe
from .engines import client_of
from .errors import CLIENT_LEFT, ApiError, as_api_error
from .openapi import document
from .schema import AttentionRequest, Body, CompletionRequest
from .settings import Limits
from .traces import Answer
from .validate import BadInput, read_model
from .workspace import Parts

JSON, BINARY = "application/json", "application/octet-stream"
NO_CACHE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy must not hold the stream back


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
    for kind in (
        ApiError,
        BadInput,
        PromptError,
        ValidationError,
        Busy,
        Closed,
        HTTPException,
        ClientDisconnect,
        Exception,
    ):
        app.add_exception_handler(kind, answer_error)

    @app.get("/models")
    async def list_models() -> dict[str, Any]:
        """The models that are served."""
        return {"object": "list", "data": [listed(parts, name, gpt) for name, gpt in parts.shelf.models.items()]}

    @app.get("/models/{model:path}")
    async def get_model(model: str) -> dict[str, Any]:
        """One model that is served."""
        check_loaded(parts)
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
            return Stream(completion.stream(), completion.leave, parts.engines.limits, media_type="text/event-stream")
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

        outcome = "cancelled"

        async def send() -> AsyncIterator[bytes]:
            nonlocal outcome
            outcome = "failed"
            while (piece := await parts.traces.compute(next, pieces, None)) is not None:
                outcome = "cancelled"  # if the client does not take it
                yield piece
                outcome = "failed"
            outcome = "ok"

        def count() -> None:
            parts.engines.metrics.count("/v1/attention", outcome)

        return Stream(send(), count, parts.engines.limits, media_type=JSON if as_json else BINARY)

    return app


class Stream(StreamingResponse):
    """An answer in pieces; ``on_end`` runs whether they were all sent or the client left before the first.

    A client that does not read what it is sent is left in the end.
    """

    def __init__(
        self, content: AsyncIterator[bytes], on_end: Callable[[], None], limits: Limits, *, media_type: str
    ) -> None:
        super().__init__(content, media_type=media_type, headers=NO_CACHE)
        self.on_end, self.limits = on_end, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.max_seconds + self.limits.grace_seconds):
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
    parts.engines.check_open()
    check_loaded(parts)
    return read_model(parts.shelf, body.model)


def check_loaded(parts: Parts) -> None:
    if not parts.shelf.ready.done():
        raise ApiError(503, "The models are still loading; try again in a moment.", code="loading")


def attention_of(parts: Parts, name: str, gpt: LoadedModel, body: AttentionRequest) -> Answer:
    """What the body asks for, checked."""
    if (body.prompt is None) == (body.tokens is None):
        raise ApiError(400, "Either prompt or tokens is needed, and not both.", "prompt", "invalid_value")
    limits = parts.shelf.settings.limits
    if body.prompt is not None and len(body.prompt) > limits.max_prompt_characters:
        message = f"The prompt has {len(body.prompt):,} characters, at most {limits.max_prompt_characters:,} are taken."
        raise ApiError(400, message, "prompt", "invalid_value")
    ids = gpt.read_prompt(body.prompt if body.prompt is not None else body.tokens or [])
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
        parts.engines.metrics.count(route, as_api_error(error).outcome)
        raise


async def answer_error(request: Request, error: Exception) -> Response:
    return as_api_error(error).response()
