"""The routes of the Learn tab: the numbers of each lesson, the training of a bigram model, and the source code.

The ladder is imported on first use, so that opening the page does not wait for it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import ValidationError

from model.errors import Busy, Closed, shorten

from ..client import client_of
from ..seams.gradio import address_of
from ..services import Services
from ..serving.engine_client import EngineLost
from ..serving.fair_pool import FairPool
from .lesson_request import BigramRequest, StrictRequest

if TYPE_CHECKING:
    from .lessons import Lesson

MAX_WAITING_BIGRAMS = 8
MAX_BIGRAMS = 2  # trained at the same time

log = logging.getLogger(__name__)

TOO_MANY_BIGRAMS = "The server is already training as many bigram models as it can. Try again soon."
BIGRAM_SECONDS = 5  # that training a bigram model takes, about


def learn_routes(services: Services) -> APIRouter:
    """``GET /learn/sources/{name}.json`` and ``/learn/models/{path}``.

    POST for ``bigram``, ``notebooks/{name}.ipynb`` and each lesson.
    """
    router = APIRouter(prefix="/learn", include_in_schema=False)
    served = services.served
    bigrams = FairPool(MAX_BIGRAMS, MAX_WAITING_BIGRAMS, busy=partial(Busy, TOO_MANY_BIGRAMS, BIGRAM_SECONDS))

    def find_lesson(name: str) -> "Lesson | None":
        from .lessons import LESSONS

        return LESSONS.get(name)

    # Because of the extension, Gradio compresses the response.
    @router.get("/sources/{name}.json")
    def get_sources(name: str) -> Response:
        """The source code behind a rung, or of the compiled loops."""
        from .source_code import COMPILED, DEFINITIONS, sources

        if name not in (*DEFINITIONS, COMPILED):
            raise HTTPException(404, f"There is no source code of {shorten(name)}.")
        return as_json({"sources": sources(name)})

    @router.post("/bigram")
    async def post_bigram(settings: BigramRequest, request: Request) -> Response:
        """Train a bigram model and report its progress as lines of JSON."""
        from .bigram import check_bigram, learn_bigram

        if not settings.training_text:
            await served.wait()
        check_bigram(served, settings)
        client = client_of(request)
        bigrams.check_room(client)

        async def lines() -> AsyncGenerator[bytes]:
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(bigrams.place(client))
                except Busy:
                    yield failed(TOO_MANY_BIGRAMS)
                    return
                learning = learn_bigram(served, services.engines, settings, client)
                reports = await stack.enter_async_context(aclosing(learning))
                try:
                    async for report in reports:
                        yield orjson.dumps(report) + b"\n"
                except Busy:
                    yield failed("The server is already writing as many texts as it can. Try again soon.")
                except (Closed, EngineLost) as error:
                    yield failed(str(error))
                except Exception:
                    log.exception("training a bigram model failed")
                    yield failed("Internal error; see the server log.")

        return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})

    @router.post("/notebooks/{name}.ipynb")
    async def post_notebook(name: str, settings: dict[str, Any], request: Request) -> Response:
        """A rung as a notebook, with the visitor's sentence and settings."""
        from .notebooks.notebook import NOTEBOOKS, make_notebook

        if name not in NOTEBOOKS:
            raise HTTPException(404, f"There is no notebook of {shorten(name)}.")
        asked = validated(NOTEBOOKS[name].request, settings)
        await served.wait()
        pool, snapshots, client = services.page_pool, services.snapshots, client_of(request)
        address = address_of(request, request.scope.get("root_path", ""), f"/learn/notebooks/{name}.ipynb")
        return as_json(await pool.run(client, make_notebook, name, snapshots, asked, address))

    @router.get("/models/{path:path}")
    async def get_model_file(path: str) -> Response:
        """A file of a model of the repository; never one of an operator's own model."""
        from .notebooks.notebook import published_file

        file = await asyncio.to_thread(published_file, path)
        if file is None:
            raise HTTPException(404, f"There is no file {shorten(path)} of a model that comes with Headscope.")
        return FileResponse(file, media_type="application/octet-stream")

    @router.post("/{name}")
    async def post_lesson(name: str, settings: dict[str, Any], request: Request) -> Response:
        """The numbers of a lesson for the visitor's sentence and settings."""
        lesson = await asyncio.to_thread(find_lesson, name)
        if lesson is None:
            raise HTTPException(404, f"There is no lesson {shorten(name)}.")
        asked = validated(lesson.request, settings)
        if lesson.needs != "nothing":
            await served.wait()
        pool, snapshots = services.page_pool, services.snapshots
        return as_json(await pool.run(client_of(request), lesson.answer, snapshots, asked))

    return router


def validated(request: type[StrictRequest], settings: dict[str, Any]) -> StrictRequest:
    """The settings as ``request``. Raises ``RequestValidationError``."""
    try:
        return request.model_validate(settings)
    except ValidationError as error:
        problems = [problem | {"loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)]
        raise RequestValidationError(problems) from None


def as_json(data: dict[str, object]) -> Response:
    """A JSON response. NaN and infinity become null."""
    return Response(orjson.dumps(data), media_type="application/json", headers={"Cache-Control": "no-store"})


def failed(why: str) -> bytes:
    """The last line of a training that failed."""
    return orjson.dumps({"stage": "failed", "why": why}) + b"\n"
