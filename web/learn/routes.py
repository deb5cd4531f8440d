"""The Learn tab's own routes: ``POST learn/rung/{n}`` and what hangs on a rung, as JSON."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import StreamingResponse

from model.engine import Busy, Closed

from ..engines import client_of
from ..settings import MAX_BIGRAMS, MAX_LESSONS
from ..validate import BadInput
from ..workspace import Parts
from . import attention_rungs, real_rung, text_rungs
from .ask import Ask, BigramAsk
from .bigram import FAILURES, check_bigram, learn_bigram
from .sources import SHOWN, sources

log = logging.getLogger(__name__)


def learn_routes(parts: Parts) -> APIRouter:
    """Every rung's numbers, the few that are computed apart from it, and the bigram model's training as it goes."""
    router = APIRouter(prefix="/learn", include_in_schema=False)
    shelf = parts.shelf
    lessons, bigrams = asyncio.Semaphore(MAX_LESSONS), asyncio.Semaphore(MAX_BIGRAMS)
    rungs: dict[int, Callable[[Ask], dict[str, Any]]] = {
        1: text_rungs.tokens,
        2: text_rungs.windows,
        3: lambda ask: {},
        4: attention_rungs.averages,
        5: attention_rungs.plain,
        6: attention_rungs.trainable,
        7: attention_rungs.causal,
        8: attention_rungs.many,
        9: lambda ask: real_rung.real(shelf, ask),
    }

    async def compute(work: Callable[[Ask], dict[str, Any]], ask: Ask) -> Response:
        async with lessons:
            try:
                data = await asyncio.to_thread(work, ask)
            except BadInput as error:
                raise HTTPException(400, str(error)) from None
        return as_json(data)

    # The ending tells Gradio to compress it.
    @router.get("/sources/{rung}.json")
    async def get_sources(rung: int) -> Response:
        if rung not in SHOWN:
            raise HTTPException(404, f"There is no rung {rung}.")
        return as_json({"sources": sources(rung)})

    @router.post("/rung/{rung}")
    async def post_rung(rung: int, ask: Ask) -> Response:
        if rung not in rungs:
            raise HTTPException(404, f"There is no rung {rung}.")
        if rung == 9:
            await shelf.wait()
        return await compute(rungs[rung], ask)

    @router.post("/scale")
    async def post_scale(ask: Ask) -> Response:
        return await compute(attention_rungs.scale, ask)

    @router.post("/times")
    async def post_times(ask: Ask) -> Response:
        return await compute(attention_rungs.timed, ask)

    @router.post("/cell")
    async def post_cell(ask: Ask) -> Response:
        return await compute(lambda ask: real_rung.cell(shelf, ask), ask)

    @router.post("/bigram")
    async def post_bigram(ask: BigramAsk, request: Request) -> Response:
        if not ask.lesson:
            await shelf.wait()
        try:
            check_bigram(shelf, ask)
        except BadInput as error:
            raise HTTPException(400, str(error)) from None
        if bigrams.locked():
            raise HTTPException(429, "Others train their bigram models at the moment. Try again soon.")

        async def lines() -> AsyncIterator[bytes]:
            async with bigrams, aclosing(learn_bigram(shelf, parts.engines, ask, client_of(request))) as said:
                try:
                    async for line in said:
                        yield orjson.dumps(line) + b"\n"
                except (Busy, Closed) as error:
                    yield orjson.dumps({"stage": "failed", "why": FAILURES[type(error)]}) + b"\n"
                except Exception:
                    log.exception("training a bigram model failed")
                    yield orjson.dumps({"stage": "failed", "why": "Training failed on the server."}) + b"\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})

    return router


def as_json(data: dict[str, Any]) -> Response:
    """NaN and infinity go out as null."""
    return Response(orjson.dumps(data), media_type="application/json", headers={"Cache-Control": "no-store"})
