"""The routes of the Train tab, and the endpoint ``/train`` for gradio_client, curl and MCP.

Only a visitor's cookie gives access to a training and its files; programs use the model with its token, under ``/v1``,
and those to whom it is lent use it on the page, with another cookie.
"""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import gradio as gr
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel

from model import InputError
from model.errors import Busy, Closed

from ..body_types import Unicode
from ..client import client_of
from ..serving.served_models import VISITOR
from ..serving.server_sent_events import EVENT_STREAM, STREAM_HEADERS, server_sent_event
from ..settings import UPLOAD_SECONDS
from .training_request import (
    TRAINING_CHARACTERS,
    TrainingRequest,
    describe_sizes,
    parse_arch,
    parse_size,
    request_with_text,
    request_with_writer,
    seconds_of,
)
from .trainings import AlreadyTraining, DiskFull, Training, Trainings, writing_files
from .visitor_cookie import cookie_name, give_cookie

UPLOAD = "/train/text"  # the only route that accepts larger bodies than the others
NOT_LENT = (
    "This link lends no model: whoever made it has ended the loan, or its hour is over, or the link is not complete."
)
NOT_ENDED = "This training has not ended yet."
NOTHING = "Nothing of yours is being trained here, or it has been deleted."
SENT_KINDS = {"loss", "sample", "end", "state"}  # the kinds of events that a caller gets
ARCHIVE = "train/model.zip"
UPLOAD_GRACE_SECONDS = 10  # after which a text must arrive at the minimum rate
MIN_UPLOAD_RATE = 50_000  # bytes per second


class Loan(BaseModel):
    """The secret in a link that lends a model."""

    loan: Unicode


class WriterRequest(BaseModel):
    """A request to train on a text that a model writes first."""

    size: str
    arch: str = "gpt2"
    model: str


def train_routes(trainings: Trainings) -> APIRouter:
    """The routes of the Train tab, all below ``/train``."""
    router = APIRouter(prefix="/train", include_in_schema=False)
    limits, served, pool = trainings.limits, trainings.services.served, trainings.services.page_pool

    def mine() -> Training:
        training = trainings.get(VISITOR.get())
        if training is None:
            raise HTTPException(404, NOTHING)
        return training

    def start(request: Request, wanted: TrainingRequest) -> Response:
        try:
            training = trainings.start(VISITOR.get(), wanted, client_of(request))
        except AlreadyTraining:
            raise HTTPException(409, "You are already training a GPT here; stop it before starting another.") from None
        except DiskFull as error:
            raise HTTPException(507, str(error)) from None
        response = JSONResponse({"name": training.name})
        give_cookie(response, request, training.visitor, is_space=served.settings.is_space)
        return response

    @router.get("/state")
    async def get_state() -> JSONResponse:
        """The available sizes and writers, the numbers of trainings, and this visitor's own training."""
        await served.wait()
        training = trainings.get(VISITOR.get())
        content = {
            "sizes": describe_sizes(limits),
            "writers": list(served.shared),
            "writes": TRAINING_CHARACTERS,
            "max_bytes": limits.max_training_bytes,
            "minutes": limits.max_trained_minutes,
            "at_work": trainings.places.active.total(),
            "waiting": len(trainings.places.queue),
            "mine": training and {"name": training.name, "state": training.state, "size": training.request.size.name},
        }
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    @router.post("/text")
    async def post_text(request: Request, size: str, arch: str = "gpt2") -> Response:
        """Train on the body, a text in UTF-8."""
        try:
            parse_size(limits, size), parse_arch(arch)  # fail before the body is received
            data = await receive(request)
            wanted = await pool.run(client_of(request), request_with_text, limits, size, arch, data)
        except TimeoutError:
            least = f"{MIN_UPLOAD_RATE // 1_000} KB a second"
            message = (
                f"The text arrived too slowly: send at least {least}, and all of it within {UPLOAD_SECONDS} seconds."
            )
            raise HTTPException(408, message) from None
        return start(request, wanted)

    @router.post("/written")
    async def post_written(request: Request, asked: WriterRequest) -> Response:
        """Let a model write a text, and train on that."""
        await served.wait()
        return start(request, request_with_writer(served, asked.size, asked.arch, asked.model))

    @router.get("/events")
    async def get_events() -> Response:
        """Server-sent events: all past and future events of this visitor's training."""
        return StreamingResponse(
            events(mine(), lambda: trainings.services.engines.closed), media_type=EVENT_STREAM, headers=STREAM_HEADERS
        )

    @router.post("/stop")
    async def stop() -> Response:
        """End the training early; what was learned is kept."""
        mine().stop()
        return Response(status_code=204)

    @router.post("/here")
    async def here() -> Response:
        """Report that the page is still open."""
        mine().seen_at = time.monotonic()
        return Response(status_code=204)

    @router.post("/forget")
    async def forget() -> Response:
        """Delete the text and the model."""
        trainings.forget(mine().visitor)
        return Response(status_code=204)

    @router.post("/lend")
    async def lend() -> JSONResponse:
        """Lend the model to everybody who has the secret of the answer, until it is withdrawn or deleted.

        "until" is when it is deleted at the latest, in seconds since 1970.
        """
        training = mine()
        if training.state != "done":
            raise HTTPException(404, NOT_ENDED)
        return JSONResponse(trainings.lend(training))

    @router.post("/withdraw")
    async def withdraw() -> Response:
        """Lend the model no more: its secret opens nothing from now on."""
        trainings.withdraw(mine())
        return Response(status_code=204)

    @router.post("/borrow")
    async def borrow(request: Request, given: Loan) -> Response:
        """Exchange the secret of a link for a cookie, with which this browser uses the model that is lent."""
        lent = served.private.lent(given.loan)
        if lent is None:
            raise HTTPException(404, NOT_LENT)
        response = JSONResponse({"name": lent.loaded.name})
        give_cookie(response, request, lent.loan, "loan", is_space=served.settings.is_space)
        return response

    @router.get("/model.zip")
    async def get_model() -> Response:
        """The checkpoint folder, in a zip archive."""
        training = mine()
        if training.state != "done":
            raise HTTPException(404, NOT_ENDED)
        try:
            path = await asyncio.to_thread(archive, training)
        except DiskFull as error:
            raise HTTPException(507, str(error)) from None
        return FileResponse(path, media_type="application/zip", filename=f"{training.name}.zip")

    return router


async def events(training: Training, is_closing: Callable[[], bool]) -> AsyncIterator[bytes]:
    """All events of a training, and one more once the server is about to end, which takes the training along."""
    is_told = False
    async with aclosing(training.follow()) as followed:
        async for event in followed:
            if is_closing() and not is_told:
                is_told = True
                yield server_sent_event({"kind": "closing"})
            yield b": still here\n\n" if event is None else server_sent_event(event)


async def receive(request: Request) -> bytes:
    """The body of an upload. Raises ``TimeoutError`` if it arrives too slowly, since the memory for it is held."""
    data, began = bytearray(), asyncio.get_running_loop().time()
    async with asyncio.timeout_at(began + UPLOAD_GRACE_SECONDS) as limit:
        async for chunk in request.stream():
            data += chunk
            limit.reschedule(began + min(UPLOAD_GRACE_SECONDS + len(data) / MIN_UPLOAD_RATE, UPLOAD_SECONDS))
    return bytes(data)


def archive(training: Training) -> str:
    """The folder of a finished training as a zip archive, made once. Raises ``DiskFull``."""
    path = training.work_folder / f"{training.name}.zip"
    with training.archiving:
        if not path.exists():
            unfinished = training.work_folder / "archive"
            try:
                with writing_files():
                    archived = shutil.make_archive(str(unfinished), "zip", training.work_folder, training.name)
                    shutil.move(archived, path)
            except DiskFull:
                unfinished.with_suffix(".zip").unlink(missing_ok=True)
                raise
    return str(path)


def train_endpoint(trainings: Trainings) -> Callable[..., Any]:
    """The endpoint ``/train``."""

    async def train(
        request: gr.Request, text: str = "", size: str = "small", arch: str = "gpt2"
    ) -> AsyncIterator[dict[str, Any]]:
        """Train a small GPT on a text, for some seconds, and report how it learns.

        Args:
            text: The text to learn from, at least 1,000 characters, no longer than a request to this server may be.
            size: "small", "medium" or "large", as far as this server offers them.
            arch: "gpt2", or "llama" for rotary positions, RMSNorm and a gated MLP.

        Returns:
            The newest of what is known: "state", "step", "validation_loss" in nats per character, "sample", and in the
            end "loss" on the whole held-out tenth. "cookie" is the key to the model: sent as a cookie, it downloads
            "download", for a few minutes. With "token" in the header Headscope-Model-Token, the model answers on /v1.
        """
        try:
            wanted = request_with_text(trainings.limits, size, arch, text.encode())
            training = trainings.start("", wanted, client_of(request))
        except (InputError, UnicodeEncodeError, DiskFull, Busy, Closed) as error:
            raise gr.Error(str(error), print_exception=False) from None
        progress = gr.Progress()  # not a parameter: gr.api would take it for an input
        seconds = seconds_of(wanted.size, trainings.limits)
        assert request.request  # of which ``request.scope`` would be a copy in JSON
        cookie = f"{cookie_name(request.request.scope)}={training.visitor}"
        known: dict[str, Any] = {"cookie": cookie, "download": ARCHIVE, "name": training.name}
        async with aclosing(training.follow()) as events:
            async for event in events:
                if event is None or event["kind"] not in SENT_KINDS | {"step"}:
                    continue
                if event["kind"] == "step":
                    progress(min(1.0, event["seconds"] / seconds), desc=training.state)
                if event["kind"] in SENT_KINDS:
                    known |= {("sample" if k == "text" else k): v for k, v in event.items() if k != "kind"}
                    yield known
        if training.state == "failed":
            raise gr.Error(known.get("why", "Training failed."), print_exception=False)

    return train
