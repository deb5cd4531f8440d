"""OpenAI's routes under /v1, and routes for the operator of the server."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Mount, Route

from model import InputError, LoadedModel, __version__
from model.errors import shorten
from model.lens.interventions.sites import find_site

from ..client import client_of
from ..prometheus import outcome_of
from ..services import Services
from ..serving.fair_pool import FairPool
from ..serving.inputs import parse_ids
from ..serving.server_sent_events import EVENT_STREAM
from ..settings import PIECE_BYTES
from . import openapi
from .activations_answer import ActivationsAnswer
from .attention_answer import AttentionBody
from .chat import answer_conversation
from .completions import Completion
from .embeddings import Embeddings
from .errors import REFUSALS, ApiError, as_api_error
from .guards import check_loaded, count_refusal, model_to_read_with, model_to_write_with
from .lens import JSON, POSTED, QUERIES, add_lens_routes
from .model_info import model_info
from .schema import (
    ActivationsRequest,
    AttentionRequest,
    Body,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingsRequest,
    TokenizeRequest,
)
from .streaming import LEFT, stream, unless_client_leaves
from .tokens import detokenize, tokenize

EVENT_SECONDS = 0.015  # between events of a stream under /v1; faster tokens are sent together
WHOLE_SECONDS = 0.1  # between checks of texts that are sent whole when they end

# Names in the metrics.
COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
ATTENTION = "/v1/attention"
MAX_ANSWERS = 8  # of whole texts that are sent to one client at the same time, since each holds memory
ACTIVATIONS = "/v1/activations"

BINARY = "application/octet-stream"
# ``Exception`` alone would not do: Starlette raises an error again after its handler, and logs it.
ERRORS = (*REFUSALS, HTTPException, ClientDisconnect, Exception)


def api_routes(services: Services) -> list[BaseRoute]:
    """All API routes, apart from those of the page and Gradio's own."""
    router = APIRouter()
    served = services.served

    @router.api_route("/health", methods=["GET", "HEAD"])
    async def health() -> JSONResponse:
        """200 once models are served; 503 while they load, when none could be loaded, and while running texts end."""
        if services.engines.closed:
            return JSONResponse({"status": "draining"}, status_code=503)
        if not served.ready.done():
            return JSONResponse({"status": "loading"}, status_code=503)
        status = "ok" if served.models else "error"
        body = {"status": status, "models": list(served.models), "failed": served.failures}
        return JSONResponse(body, status_code=200 if served.models else 503)

    @router.get("/metrics")
    async def metrics() -> Response:
        """Counters, gauges and histograms in Prometheus' text format."""
        return Response(services.metrics.text(), media_type=services.metrics.content_type)

    programs = v1(services)
    # vLLM also serves these outside /v1.
    outside_v1 = [Route(path, endpoint=programs) for path in ("/tokenize", "/detokenize", "/version")]
    return [*router.routes, *outside_v1, Mount("/v1", app=programs)]


def v1(services: Services) -> FastAPI:
    """A separate app, since its errors are in OpenAI's format."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, generate_unique_id_function=lambda route: route.name)
    documents: list[bytes] = []  # filled by the first request
    making_document = asyncio.Lock()
    answers = FairPool(services.limits.max_connections, services.limits.max_waiting, max_per_client=MAX_ANSWERS)
    for kind in ERRORS:
        app.add_exception_handler(kind, answer_error)

    @app.get("/openapi.json", include_in_schema=False)
    async def get_document() -> Response:
        async with making_document:
            if not documents:  # in a thread, since it takes a tenth of a second
                settings = services.served.settings
                document = partial(
                    openapi.document, root_path=settings.root_path, with_key=settings.api_key is not None
                )
                documents.append(orjson.dumps(await asyncio.to_thread(document, app, services.limits, POSTED, QUERIES)))
        return Response(documents[0], media_type=JSON)

    @app.get("/models")
    async def list_models() -> dict[str, object]:
        """The served models."""
        return {"object": "list", "data": [listed(services, loaded) for loaded in services.served.models.values()]}

    @app.get("/models/{model:path}", responses=openapi.NOT_FOUND)
    async def get_model(model: str) -> dict[str, object]:
        """One served model."""
        check_loaded(services)
        return listed(services, services.served.find(model))

    @app.post("/completions", responses=openapi.COMPLETION)
    async def create_completion(request: Request) -> Response:
        """Continue one or more texts. With `stream: true` the answer is server-sent events."""

        async def make(loaded: LoadedModel, asked: Any) -> Completion:
            return Completion(loaded, asked, services.limits)

        return await complete(services, request, COMPLETIONS, CompletionRequest, make)

    @app.post("/chat/completions", responses=openapi.CHAT)
    async def create_chat_completion(request: Request) -> Response:
        """Answer a conversation. The checkpoint's chat template makes the prompt; without one, a plain transcript."""

        async def make(loaded: LoadedModel, asked: Any) -> Completion:
            return await answer_conversation(services.templates, client_of(request), loaded, asked, services.limits)

        return await complete(services, request, CHAT, ChatRequest, make)

    @app.post("/embeddings", responses=openapi.EMBEDDINGS)
    async def create_embeddings(request: Request) -> Response:
        """Texts as vectors: the mean of the model's last hidden states."""
        with count_refusal(services, EMBEDDINGS):
            body = EmbeddingsRequest.model_validate_json(await request.body())
            client = client_of(request)
            loaded = await model_to_read_with(services, body.model, client)
            embeddings = Embeddings(loaded, body, services.limits)
            vectors = await unless_client_leaves(request, services.trace_pool.run(client, embeddings.compute))
        services.metrics.count(EMBEDDINGS, "cancelled" if vectors is None else "ok")
        return LEFT if vectors is None else JSONResponse(embeddings.answer(vectors))

    @app.post("/attention", responses=openapi.ATTENTION)
    async def read_attention(request: Request) -> Response:
        """The attention weights of a text, `attention[layer][head][query][key]`, as JSON or as a safetensors file."""
        with count_refusal(services, ATTENTION):
            body = AttentionRequest.model_validate_json(await request.body())
            loaded = await model_to_read_with(services, body.model, client_of(request))
            answer = attention_of(services, loaded, body)
        as_json = body.format != "safetensors"
        pieces = answer.json() if as_json else answer.safetensors()
        kind = JSON if as_json else BINARY
        return await send_pieces(services, answers, request, ATTENTION, pieces, answer.held_bytes, kind)

    @app.post("/activations", responses=openapi.ACTIVATIONS)
    async def read_activations(request: Request) -> Response:
        """The activations of a text at the named sites, computed in float32, as a safetensors file."""
        with count_refusal(services, ACTIVATIONS):
            body = ActivationsRequest.model_validate_json(await request.body())
            loaded = await model_to_read_with(services, body.model, client_of(request))
            answer = activations_of(services, loaded, body)
        pieces = answer.safetensors()
        return await send_pieces(services, answers, request, ACTIVATIONS, pieces, answer.held_bytes, BINARY)

    @app.post("/tokenize", responses=openapi.TOKENIZE)
    async def post_tokenize(request: Request) -> Response:
        """The tokens of a text or of a conversation, in vLLM's format. Also served without `/v1`."""
        body = TokenizeRequest.model_validate_json(await request.body())
        loaded = model_to_write_with(services, body.model)
        answer = await tokenize(services.templates, client_of(request), loaded, body, services.limits)
        return JSONResponse(answer)

    @app.post("/detokenize", responses=openapi.DETOKENIZE)
    async def post_detokenize(request: Request) -> Response:
        """The text of tokens, in vLLM's format. Also served without `/v1`."""
        body = DetokenizeRequest.model_validate_json(await request.body())
        return JSONResponse(detokenize(model_to_write_with(services, body.model), body, services.limits))

    @app.get("/version")
    async def get_version() -> dict[str, str]:
        """The version of Headscope. Also served without `/v1`."""
        return {"version": __version__}

    add_lens_routes(app, services)
    return app


async def complete(
    services: Services,
    request: Request,
    route: str,
    schema: type[Body],
    make: Callable[[LoadedModel, Any], Awaitable[Completion]],
) -> Response:
    """Check a body, write the texts of the completion that ``make`` returns, and answer whole or in a stream."""
    with count_refusal(services, route):
        body = schema.model_validate_json(await request.body())
        loaded = model_to_write_with(services, body.model)
        completion = await make(loaded, body)
        services.engines.check(loaded, *completion.requests)
    client, pace = client_of(request), EVENT_SECONDS if completion.asked.stream else WHOLE_SECONDS
    generation = services.engines.generate(loaded, *completion.requests, client=client, route=route, pace=pace)
    async with AsyncExitStack() as stack:
        with count_refusal(services, route):
            stack.enter_context(services.budget.hold(completion.most_bytes, client))
        await stack.enter_async_context(generation)
        if not completion.asked.stream:
            answer = await unless_client_leaves(request, completion.whole(generation))
            return LEFT if answer is None else Response(orjson.dumps(answer), media_type=JSON)
        return await stream(request, stack, completion.stream(generation), services.limits, media_type=EVENT_STREAM)


async def send_pieces(
    services: Services,
    answers: FairPool,
    request: Request,
    route: str,
    pieces: Iterator[bytes],
    held_bytes: int,
    media_type: str,
) -> Response:
    """Compute the pieces of an answer one after the other while the client reads them, in its turn of ``answers``."""
    client = client_of(request)

    async def sent() -> AsyncGenerator[bytes]:
        outcome = "cancelled"  # unless the answer is sent completely
        try:
            async with answers.place(client):
                with services.budget.hold_while_sent(held_bytes, request.scope, client) as sending:
                    piece: bytes | None = await services.trace_pool.run(client, next, pieces)
                    while piece is not None:
                        for begin in range(0, len(piece), PIECE_BYTES):
                            with sending.waiting():
                                yield piece[begin : begin + PIECE_BYTES]
                        piece = await services.trace_pool.resume(client, next, pieces, None)
            outcome = "ok"
        except Exception as error:
            outcome = outcome_of(error)
            raise
        finally:
            services.metrics.count(route, outcome)

    async with AsyncExitStack() as stack:
        content = await stack.enter_async_context(aclosing(sent()))
        return await stream(request, stack, content, services.limits, media_type=media_type)


def attention_of(services: Services, loaded: LoadedModel, body: AttentionRequest) -> AttentionBody:
    """The checked answer to a body."""
    limits = services.limits
    ids = parse_ids(limits, loaded, body.prompt, body.tokens)
    layers = list(loaded.parse_choice("layers", body.layers, loaded.config.n_layer))
    heads = list(loaded.parse_choice("heads", body.heads, loaded.config.n_head))
    answer = AttentionBody(loaded, ids, layers, heads, loaded.parse_head_mask(body.head_mask))
    if body.format != "safetensors" and answer.n_weights > limits.max_json_weights:
        message = (
            f"The answer would have {answer.n_weights:,} attention weights; "
            f"at most {limits.max_json_weights:,} are sent as JSON. "
            'Ask for "format": "safetensors", or name fewer layers and heads.'
        )
        raise InputError("format", message, "too_many_weights")
    if answer.held_bytes > services.budget.most:
        message = (
            f"The answer would have {answer.n_weights:,} attention weights, more than this server can hold. "
            "Name fewer heads."
        )
        raise InputError("heads", message, "too_many_weights")
    return answer


def activations_of(services: Services, loaded: LoadedModel, body: ActivationsRequest) -> ActivationsAnswer:
    """The checked answer to a body."""
    ids = parse_ids(services.limits, loaded, body.prompt, body.tokens)
    sites = list(dict.fromkeys(find_site(loaded.config, name, "sites")[0] for name in body.sites))
    layers = list(loaded.parse_choice("layers", body.layers, loaded.config.n_layer))
    positions = list(loaded.parse_choice("positions", body.positions, len(ids)))
    mask = loaded.parse_head_mask(body.head_mask)
    answer = ActivationsAnswer(loaded, lambda: services.answers.gpt(loaded), ids, sites, layers, positions, mask)
    if answer.held_bytes > services.budget.most:
        raise InputError("prompt", "A layer of this text takes more memory than this server can hold.")
    return answer


def listed(services: Services, loaded: LoadedModel) -> dict[str, object]:
    """A model in OpenAI's format, with its sizes."""
    more = {"owned_by": "headscope", "written_elsewhere": services.engines.writes_elsewhere(loaded)}
    return {"object": "model", "created": services.served.started_at} | more | model_info(loaded)


async def answer_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 404:
        error = unknown_address(request)
    return as_api_error(error).response()


def unknown_address(request: Request) -> ApiError:
    """The error for an unknown address, which lists the existing ones."""
    root = request.scope["root_path"]  # ends with /v1
    paths = {route.path for route in request.app.routes if isinstance(route, Route) and "{" not in route.path}
    known = ", ".join(root + path for path in sorted(paths) if not path.startswith("/lens/"))
    asked = shorten(request.url.path)
    message = f"There is no {asked} here. Available: {known}, and the questions of Ask under {root}/lens/."
    return ApiError(404, message, code="not_found")
