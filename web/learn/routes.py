"""The Learn tab's own routes: ``POST learn/{lesson}`` for numbers, the bigram model's training as it goes, and sources.

What they need of the ladder is imported when it is first asked for: nobody who opens the page waits for it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from model import InputError
from model.serving.engine import Busy, Closed

from ..services import Services
from ..serving.engines import client_of
from ..settings import MAX_BIGRAMS, MAX_LESSONS
from .ask import Ask, BigramAsk

log = logging.getLogger(__name__)

NEEDS_MODELS = ("9", "cell")


def learn_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix="/learn", include_in_schema=False)
    served = services.served
    lessons, bigrams = asyncio.Semaphore(MAX_LESSONS), asyncio.Semaphore(MAX_BIGRAMS)

    def compute(lesson: str, ask: Ask) -> dict[str, Any] | None:
        from .lessons import answer

        return answer(served, lesson, ask)

    # The ending tells Gradio to compress it.
    @router.get("/sources/{rung}.json")
    def get_sources(rung: int) -> Response:
        """The lines of the ladder behind a rung."""
        from .sources import SHOWN, sources

        if rung not in SHOWN:
            raise HTTPException(404, f"There is no rung {rung}.")
        return as_json({"sources": sources(rung)})

    @router.post("/bigram")
    async def post_bigram(ask: BigramAsk, request: Request) -> Response:
        """A line of JSON for whatever happens while a bigram model is trained."""
        from .bigram import check_bigram, learn_bigram

        if not ask.lesson:
            await served.wait()
        try:
            check_bigram(served, ask)
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        if bigrams.locked():
            raise HTTPException(429, "Others train their bigram models at the moment. Try again soon.")

        async def lines() -> AsyncGenerator[bytes]:
            async with bigrams, aclosing(learn_bigram(served, services.engines, ask, client_of(request))) as said:
                try:
                    async for line in said:
                        yield orjson.dumps(line) + b"\n"
                except Busy:
                    yield failed("Too many texts are being written at the moment. Try again soon.")
                except Closed:
                    yield failed("The server is closing.")
                except Exception:
                    log.exception("training a bigram model failed")
                    yield failed("Training failed on the server.")

        return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})

    @router.post("/{lesson}")
    async def post_lesson(lesson: str, ask: Ask) -> Response:
        """All numbers of a lesson, for the visitor's sentence and settings."""
        if lesson in NEEDS_MODELS:
            await served.wait()
        async with lessons:
            try:
                data = await asyncio.to_thread(compute, lesson, ask)
            except InputError as error:
                raise HTTPException(400, str(error)) from None
        if data is None:
            raise HTTPException(404, "There is no lesson of that name.")
        return as_json(data)

    return router


def as_json(data: dict[str, Any]) -> Response:
    """NaN and infinity go out as null."""
    return Response(orjson.dumps(data), media_type="application/json", headers={"Cache-Control": "no-store"})


def failed(why: str) -> bytes:
    return orjson.dumps({"stage": "failed", "why": why}) + b"\n"
