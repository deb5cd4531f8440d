"""The routes of the Train tab. What a visitor trains is found by the visitor's cookie alone."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from model import InputError
from model.serving.engine import Busy, Closed

from ..serving.private_models import VISITOR
from ..settings import MAX_UPLOADS, TRAINING_CHARACTERS, UPLOAD_SECONDS
from .ask import TrainingAsk, ask_with_text, ask_with_writer, read_size
from .sizes import describe_sizes
from .training import Training
from .trainings import AlreadyTraining, Trainings
from .visitors import give_cookie, new_visitor

UPLOAD = "/train/text"  # the one route that takes more than other bodies may have
STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
NOTHING = "You are training nothing here, or what you trained was forgotten."


class WriterAsk(BaseModel):
    """To train on what a model writes first."""

    size: str
    model: str


def train_routes(trainings: Trainings) -> APIRouter:
    """What the Train tab asks for, all below ``train``."""
    router = APIRouter(prefix="/train", include_in_schema=False)
    limits, served = trainings.limits, trainings.services.served
    uploads = asyncio.Semaphore(MAX_UPLOADS)

    def mine() -> Training:
        training = trainings.get(VISITOR.get())
        if training is None:
            raise HTTPException(404, NOTHING)
        return training

    def start(request: Request, ask: TrainingAsk) -> Response:
        visitor = VISITOR.get() or new_visitor()
        try:
            training = trainings.start(visitor, ask)
        except AlreadyTraining:
            raise HTTPException(409, "You already train a GPT here: stop it before you start another.") from None
        except Busy:
            raise HTTPException(429, "Too many visitors are waiting to train. Try again in a few minutes.") from None
        except Closed:
            raise HTTPException(503, "The server is shutting down.") from None
        response = JSONResponse({"name": training.name})
        give_cookie(response, request, visitor)
        return response

    @router.get("/state")
    async def get_state() -> JSONResponse:
        """What can be trained here, who trains, and whether this visitor does."""
        await served.wait()
        training = trainings.get(VISITOR.get())
        content = {
            "sizes": describe_sizes(limits),
            "writers": list(served.shared),
            "writes": TRAINING_CHARACTERS,
            "max_bytes": limits.max_training_bytes,
            "minutes": limits.max_trained_minutes,
            "at_work": len(trainings.at_work),
            "waiting": len(trainings.line),
            "mine": training and {"name": training.name, "state": training.state, "size": training.ask.size.name},
        }
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    @router.post("/text")
    async def post_text(request: Request, size: str) -> Response:
        """Train on the body, a text in UTF-8."""
        if uploads.locked():
            raise HTTPException(429, "Too many texts are being sent at the moment. Try again soon.")
        try:
            read_size(limits, size)  # before anything is received
            async with uploads, asyncio.timeout(UPLOAD_SECONDS):
                data = await request.body()
                ask = await asyncio.to_thread(ask_with_text, limits, size, data)
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        except TimeoutError:
            raise HTTPException(408, f"The text did not arrive within {UPLOAD_SECONDS} seconds.") from None
        except ClientDisconnect:
            return Response(status_code=499)
        return start(request, ask)

    @router.post("/written")
    async def post_written(request: Request, asked: WriterAsk) -> Response:
        """Let a model write a text, and train on that."""
        await served.wait()
        try:
            ask = ask_with_writer(served, asked.size, asked.model)
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        return start(request, ask)

    @router.get("/events")
    async def get_events() -> Response:
        """Server-sent events: all that has happened in this visitor's training, and what happens, to its end."""
        return StreamingResponse(events(trainings, mine()), media_type="text/event-stream", headers=STREAM_HEADERS)

    @router.post("/stop")
    async def stop() -> Response:
        """End the training early; what was learned is kept."""
        mine().stop()
        return Response(status_code=204)

    @router.post("/here")
    async def here() -> Response:
        """The page is still open."""
        mine().seen_at = time.monotonic()
        return Response(status_code=204)

    @router.post("/forget")
    async def forget() -> Response:
        """Delete the text and all that came of it."""
        trainings.forget(mine().visitor)
        return Response(status_code=204)

    @router.get("/model.zip")
    async def get_model() -> Response:
        """The checkpoint folder, in a zip archive."""
        training = mine()
        if training.state != "done":
            raise HTTPException(404, "This training has not ended yet.")
        path = await asyncio.to_thread(archive, training)
        return FileResponse(path, media_type="application/zip", filename=f"{training.name}.zip")

    return router


async def events(trainings: Trainings, training: Training) -> AsyncIterator[bytes]:
    async with aclosing(trainings.follow(training)) as followed:
        async for event in followed:
            yield b": still here\n\n" if event is None else b"data: " + orjson.dumps(event) + b"\n\n"


def archive(training: Training) -> str:
    """The folder of a finished training as a zip archive, made once."""
    path = training.work / f"{training.name}.zip"
    if not path.exists():
        beside = shutil.make_archive(str(training.work / "archive"), "zip", training.work, training.name)
        shutil.move(beside, path)
    return str(path)
