"""A route under ``/v1/lens/`` and a Gradio endpoint for each question of Ask."""

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterator
from contextlib import AsyncExitStack
from typing import Annotated, Any, get_args

import gradio as gr
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, FailFast, create_model
from pydantic import Field as Described
from pydantic.config import JsonDict
from typing_extensions import TypeAliasType

from model import InputError
from model.lens.question import REQUIRED, Option, Reads

from ..ask.fields import MAX_ROWS, TEXTS, fields_of, ids_field
from ..ask.inquiry import Inquiry
from ..ask.question import Question
from ..ask.service import PendingAnswer
from ..ask.table import QUESTIONS
from ..body_types import Also, HeadMask, TokenIds
from ..client import client_of
from ..services import Services
from ..serving.inputs import whole
from ..serving.server_sent_events import DONE, EVENT_STREAM, event_of_json, server_sent_event
from . import openapi
from .errors import as_api_error
from .guards import count_refusal, model_to_read_with, refusals, store_answer
from .schema import Body, one_of
from .streaming import LEFT, stream, unless_client_leaves

JSON = "application/json"
MAX_HEADS = 4096
MAX_TEXTS = 256

# ---- Bodies ----------------------------------------------------------------------------------------------------------

LayerAndHead = Annotated[list[int], Described(min_length=2, max_length=2)]
HeadPairs = TypeAliasType(
    "HeadPairs", Annotated[list[LayerAndHead], FailFast(), Described(min_length=1, max_length=MAX_HEADS)]
)
ReferenceTexts = TypeAliasType(
    "ReferenceTexts", Annotated[list[str], FailFast(), Described(min_length=1, max_length=MAX_TEXTS)]
)
TEXT_OR_IDS: list[JsonDict] = [
    {"type": "string", "minLength": 1},
    {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
]
ROW: JsonDict = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {
                "prompt": {"anyOf": [*TEXT_OR_IDS]},
                "corrupted": {"anyOf": [*TEXT_OR_IDS, {"type": "null"}]},
                "answer": {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 0},
                "wrong": {"type": ["string", "integer", "null"], "minLength": 1, "minimum": 0},
            },
            "required": ["prompt"],
            "additionalProperties": False,
        },
    ]
}
Rows = TypeAliasType("Rows", Annotated[list[Any], Described(min_length=1, max_length=MAX_ROWS), Also(items=ROW)])
# The types of a body's fields that check more than the declared Python type.
CHECKED: dict[Any, Any] = {
    list[int]: TokenIds,
    list[list[int]]: HeadPairs,
    list[list[float]]: HeadMask,
    list[str]: ReferenceTexts,
    list[Any]: Rows,
}

STREAM = Option("stream", bool, False, "Send the progress, then the answer, as server-sent events.")


def parts_of(question: Question) -> list[Option]:
    """The fields of a question's body, in the order in which its endpoint takes them."""
    parts = [part for option in question.fields for part in fields_of(option)]
    ids = {ids_field(option) for option in question.fields if option.reads in TEXTS}
    # Ids come last, since endpoints are rarely called with them.
    return sorted(parts, key=lambda part: part.name in ids)


def body_of(question: Question) -> type[Body]:
    """The strict model of the route's body, or of the query of a GET request."""
    fields: dict[str, Any] = {part.name: as_described(part, question.method) for part in [*parts_of(question), STREAM]}
    texts = [
        one_of(option.name, ids_field(option))
        for option in question.fields
        if option.reads in TEXTS and option.default is REQUIRED
    ]
    extra: JsonDict = {"allOf": texts}  # type: ignore[dict-item]
    name = "".join(map(str.capitalize, re.split("[-/]", question.name)))
    body: type[Body] = create_model(
        f"{name}Body", __base__=Body, __cls_kwargs__={"json_schema_extra": extra if texts else {}}, **fields
    )
    return body


def as_described(field: Option, method: str) -> tuple[Any, Any]:
    """The type and the default of a field, for pydantic."""
    kind = CHECKED.get(field.kind, field.kind)
    if field.kind is str and field.reads != Reads.MODEL:
        kind = Annotated[str, Also(minLength=1)]
    bounds: dict[str, Any] = {"ge": field.within.least, "le": field.within.most}
    if field.default is REQUIRED:
        default, optional = ..., kind  # pydantic's mark for a required field
    else:
        default, optional = field.default, kind | None
    if method == "POST" and int in (field.kind, *get_args(field.kind)) and field.kind not in CHECKED:
        optional = Annotated[optional, BeforeValidator(whole)]  # JSON has one kind of number: 3.0 is 3
    return optional, Described(default, description=field.help, **bounds)


BODIES = {question.name: body_of(question) for question in QUESTIONS}
POSTED, QUERIES = (
    {question.path: BODIES[question.name] for question in QUESTIONS if question.method == method}
    for method in ("POST", "GET")
)


async def parse_inquiry(services: Services, question: Question, body: BaseModel, client: Hashable) -> Inquiry:
    """The checked inquiry of a body. Raises ``InputError``."""
    given = {name: getattr(body, name) for name in type(body).model_fields}
    models = {"model": await model_to_read_with(services, given["model"], client)}
    for field in question.models:
        if field not in models and given[field]:
            try:
                models[field] = await model_to_read_with(services, given[field], client)
            except InputError as error:
                raise error.about(field) from None
    # Reading many prompts takes a while, which must not hold up the event loop.
    return await asyncio.to_thread(question.parse, services.limits, models, given)


# ---- Routes ----------------------------------------------------------------------------------------------------------


def add_lens_routes(app: FastAPI, services: Services) -> None:
    """Add ``/lens/...`` to the app of ``/v1``."""
    for question in QUESTIONS:
        add_route(app, services, question)


def add_route(app: FastAPI, services: Services, question: Question) -> None:
    route = f"/v1{question.path}"  # its name in the metrics
    schema, limits = BODIES[question.name], services.limits

    async def answer(request: Request) -> Response:
        with count_refusal(services, route):
            if question.method == "POST":
                body: Any = schema.model_validate_json(await request.body())
            else:
                body = schema.model_validate_strings(dict(request.query_params))
            client = client_of(request)
            inquiry = await parse_inquiry(services, question, body, client)
        pending = question.start(services.answers, inquiry, client, route)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(pending)
            if body.stream:
                seconds = limits.max_question_seconds
                return await stream(
                    request, stack, events(pending), limits, media_type=EVENT_STREAM, max_seconds=seconds
                )
            return await unless_client_leaves(request, in_full(pending)) or LEFT

    answer.__doc__ = f"{question.summary} With `stream: true` the answer is server-sent events, the progress first."
    app.add_api_route(
        question.path,
        answer,
        methods=[question.method],
        name=f"ask_{re.sub('[-/]', '_', question.name)}",
        responses={200: {"model": question.answer, "content": openapi.TEXT}, **openapi.REFUSALS},
    )


async def in_full(pending: PendingAnswer) -> Response:
    return Response(await pending.answer(), media_type=JSON)


async def events(pending: PendingAnswer) -> AsyncGenerator[bytes]:
    """The progress and the rows, the answer or an error, ``[DONE]``."""
    try:
        async for update in pending.progress():
            yield event_of_json(update)
        yield event_of_json(await pending.answer())
    except Exception as error:
        yield server_sent_event(as_api_error(error).body)
    yield DONE


# ---- Endpoints -------------------------------------------------------------------------------------------------------


def lens_endpoints(services: Services) -> Iterator[Callable[..., Awaitable[Any]]]:
    """The questions as endpoints for gradio_client, curl and MCP; each endpoint has the name of its function."""
    return (make_endpoint(services, question) for question in QUESTIONS)


def make_endpoint(services: Services, question: Question) -> Callable[..., Awaitable[Any]]:
    """An endpoint with the question's fields as its parameters."""
    parts, route = parts_of(question), f"/{question.name}"

    async def endpoint(request: gr.Request, *values: Any) -> dict[str, Any]:
        given = {part.name: value for part, value in zip(parts, values, strict=True) if value is not None}
        client = client_of(request)
        await services.served.wait()
        with refusals(services, route):
            inquiry = await parse_inquiry(services, question, BODIES[question.name].model_validate(given), client)
        with refusals(services):
            async with question.start(services.answers, inquiry, client, route) as pending:
                placeholder: dict[str, Any] = store_answer(services, request, await pending.answer())
        return placeholder

    parameters = [inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request)]
    for part in parts:
        default = part.default
        if default is REQUIRED:
            # Python allows no parameter without a default after one with a default; the body is refused then.
            is_first = all(each.default is inspect.Parameter.empty for each in parameters)
            default = inspect.Parameter.empty if is_first else None
        kind = part.kind | None if default is None else part.kind
        parameters.append(
            inspect.Parameter(part.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        )
    result = dict[str, Any]
    endpoint.__name__ = question.endpoint
    endpoint.__doc__ = docstring(question, parts)
    endpoint.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": result}
    endpoint.__signature__ = inspect.Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]
    return endpoint


def docstring(question: Question, parts: list[Option]) -> str:
    """The docstring from which Gradio describes the endpoint and the MCP tool."""
    arguments = "\n".join(f"    {part.name}: {part.help}" for part in parts)
    return f"{question.summary}\n\nArgs:\n{arguments}\n\nReturns:\n    {question.returns}"
