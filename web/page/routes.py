"""The page's own routes: its start, texts read again, and the stream of a text being written."""

from collections.abc import AsyncIterator, Hashable
from contextlib import aclosing

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from model import InputError

from ..client import client_of
from ..services import Services
from ..serving.served_models import VISITOR
from ..serving.server_sent_events import EVENT_STREAM, STREAM_HEADERS, server_sent_event
from ..training.trainings import Trainings
from .link import resolve_address
from .model_list import model_list
from .page_text import PageText, read_page_text
from .pointers import opening_pointer, pointer
from .read_again import ReadAgain, SnapshotText, read_again, read_with_snapshot
from .writer import PageWriter


def page_routes(services: Services, writer: PageWriter, trainings: Trainings) -> APIRouter:
    """All routes of the page under ``look``, apart from those for the rows of its texts."""
    router = APIRouter(prefix="/look", include_in_schema=False)

    @router.get("/landing")
    async def get_landing(request: Request) -> JSONResponse:
        """The page's start, once the checkpoints are loaded: models, settings and a pointer to a run."""
        await services.served.wait()
        start = await resolve_address(services, request.query_params, client_of(request))
        is_training = trainings.get(VISITOR.get()) is not None
        content = {"models": model_list(services), "training": is_training, **vars(start)}
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    @router.get("/opening/{model:path}")
    async def get_opening(model: str) -> JSONResponse:
        """A pointer to the text that the page shows before anything is written with a model."""
        try:
            services.served.find(model)
        except InputError as error:
            raise HTTPException(404, str(error)) from None
        return JSONResponse(await opening_pointer(services, model), headers={"Cache-Control": "no-store"})

    @router.get("/steps/{model:path}")
    def get_steps(model: str) -> JSONResponse:
        """A model's snapshots, with the losses and head scores recorded in training."""
        snapshots = services.snapshots
        steps = {"steps": snapshots.steps(model), "on_disk": snapshots.steps_on_disk(model)}
        content = steps | snapshots.training(model)
        return JSONResponse(content, headers={"Cache-Control": "no-store"})

    @router.post("/snapshot")
    async def read_snapshot(request: Request, text: SnapshotText) -> JSONResponse:
        """A pointer to the same text, read with the weights that the model had after a training step."""
        run = await services.snapshot_pool.run(client_of(request), read_with_snapshot, services, text)
        return JSONResponse(pointer(run, "snapshot", {}) | {"training_step": text.step})

    @router.post("/read")
    async def read_text(request: Request, asked: ReadAgain) -> JSONResponse:
        """A pointer to the same text, read by another model or with heads scaled, or to another text."""
        run = await services.page_pool.run(client_of(request), read_again, services, asked)
        return JSONResponse(pointer(run, "read", {}) | ({} if asked.text is None else {"ids": run.ids}))

    @router.post("/write")
    async def write(request: Request) -> Response:
        """Server-sent events: a pointer whenever the text has grown. Closing the stream ends the text."""
        try:
            fields = orjson.loads(await request.body())
        except orjson.JSONDecodeError as error:
            raise InputError("body", f"The body is not valid JSON: {error}.") from None
        if not isinstance(fields, dict):
            raise InputError("body", "The body must be a JSON object.")
        client = client_of(request)
        text = await read_page_text(services, client, fields)
        return StreamingResponse(events(writer, text, client), media_type=EVENT_STREAM, headers=STREAM_HEADERS)

    @router.post("/{run_id}/stop")
    async def stop(run_id: str) -> Response:
        """End a text with its next token."""
        writer.stop(run_id)
        return Response(status_code=204)

    return router


async def events(writer: PageWriter, text: PageText, client: Hashable) -> AsyncIterator[bytes]:
    async with aclosing(writer.write(text, client)) as pointers:
        async for newest in pointers:
            yield server_sent_event(newest)
