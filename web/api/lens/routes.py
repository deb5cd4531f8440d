"""Routes for all questions: a checked body in, progress and the answer out."""

from collections.abc import AsyncGenerator, Hashable
from contextlib import AsyncExitStack

from fastapi import FastAPI, Request, Response

from model import InputError
from model.lens.questions.progress import Progress

from ...questions.service import Answer, Asked, Asking
from ...services import Services
from ...serving.engines import client_of
from .. import openapi
from ..errors import as_api_error
from ..guards import count_refusal, model_to_read_with, read_text
from ..streaming import LEFT, Stream, server_sent_event, unless_client_leaves
from .circuits_schema import DifferenceBody
from .questions import QUESTIONS, Question
from .schema import ModelBody, TextBody

JSON, EVENTS = "application/json", "text/event-stream"
DONE = b"data: [DONE]\n\n"


def add_lens_routes(app: FastAPI, services: Services) -> None:
    """Add ``/lens/...`` to the app of ``/v1``."""
    for question in QUESTIONS:
        add_route(app, services, question)


def add_route(app: FastAPI, services: Services, question: Question) -> None:
    route = f"/v1{question.path}"  # its name in the metrics

    async def answer(request: Request) -> Response:
        with count_refusal(services, route):
            body = await read_body(question, request)
            client = client_of(request)
            asked = await read_question(services, question, body, client)
        asking = ask(services, question, asked, client, route)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asking)
            if body.stream:  # the answer outlives this function, and so must the computation
                seconds = question.max_seconds(services.limits)
                on_end = stack.pop_all().aclose
                return Stream(events(asking), on_end, services.limits, media_type=EVENTS, max_seconds=seconds)
            return await unless_client_leaves(request, whole(asking)) or LEFT

    answer.__doc__ = f"{question.summary} With `stream: true` the progress comes first, as server-sent events."
    app.add_api_route(
        question.path,
        answer,
        methods=[question.method],
        name=f"ask_{question.name.replace('-', '_')}",
        responses=openapi.question_responses(question),
    )


async def read_body(question: Question, request: Request) -> ModelBody:
    if question.method == "POST":
        return question.body.model_validate_json(await request.body())
    return question.body.model_validate_strings(dict(request.query_params))


async def read_question(services: Services, question: Question, body: ModelBody, client: Hashable) -> Asked:
    """What a body asks for, checked. Raises ``InputError``."""
    loaded = await model_to_read_with(services, body.model, client)
    ids: list[int] = []
    head_mask = None
    if isinstance(body, TextBody):
        ids = read_text(services.limits, loaded, body.prompt, body.tokens)
        head_mask = loaded.read_head_mask(body.head_mask)
    parameters = question.read(services.limits, loaded, ids, body)
    other = None
    if isinstance(body, DifferenceBody) and body.other_model:
        try:
            other = await model_to_read_with(services, body.other_model, client)
        except InputError as error:
            raise InputError("other_model", str(error), error.code) from None
    return Asked(services.questions, loaded, tuple(ids), head_mask, parameters, other)


def ask(services: Services, question: Question, asked: Asked, client: object, route: str) -> Asking:
    """The question on its way, with what every answer says added to its own."""

    def compute(asked: Asked, progress: Progress) -> Answer:
        common: Answer = {"model": asked.loaded.name}
        if asked.ids:
            common["tokens"] = [token._asdict() for token in asked.loaded.tokens(asked.ids)]
        return common | question.compute(asked, progress) | {"precision": asked.precision()}

    max_seconds = question.max_seconds(services.limits)
    return services.questions.ask(question.name, asked, compute, client, route, max_seconds)


async def whole(asking: Asking) -> Response:
    return Response(await asking.answer(), media_type=JSON)


async def events(asking: Asking) -> AsyncGenerator[bytes]:
    """``{"progress": 0..1}`` as often as it changes, the answer or an error, and ``[DONE]``."""
    try:
        async for fraction in asking.progress():
            yield server_sent_event({"progress": round(fraction, 4)})
        yield b"data: " + await asking.answer() + b"\n\n"
    except Exception as error:
        yield server_sent_event(as_api_error(error).body)
    yield DONE
