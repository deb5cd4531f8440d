"""The workspace's routes: thumbnails, tokens, exact weights and logits of a run, as bytes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import BaseModel, Field, JsonValue

from model import InputError, LoadedModel
from model.lens.text_pass import TextPass

from ..body_types import HeadMask, TokenIds, Unicode
from ..client import client_of
from ..serving.budget import Budget
from ..serving.fair_pool import FairThreads
from ..serving.served_models import NotServed
from ..serving.snapshots import Snapshots
from .run import Run
from .store import Runs

FOREVER = "private, max-age=31536000, immutable"  # private, because the server may require a key
MAX_FILE_WEIGHTS = 40_000_000  # 160 MB as they are computed
AGAIN = "again"  # replaces the run id: recompute the run from the text in the body
RunPart = Callable[[Run], bytes]  # computed of a run
ParseRunPart = Callable[..., Awaitable[RunPart]]  # from parameters of the path and the query


class LostRun(BaseModel):
    """The body that a browser sends for a run that is no longer kept: enough for any process to recompute it."""

    sha256: Unicode = Field(max_length=64)
    ids: TokenIds
    n_prompt: int = Field(ge=0)
    head_mask: HeadMask | None = None


class SavedRun(LostRun):
    """A text to save, with the settings that wrote it."""

    settings: dict[str, JsonValue] = {}


def run_routes(snapshots: Snapshots, runs: Runs, pool: FairThreads, budget: Budget) -> APIRouter:
    """``look/{run}/...`` for a run that is kept, ``look/again/...`` for one that is not, and texts that are posted.

    Whatever may read a whole text runs in ``pool``, so only a few run at a time, and clients take turns.
    """
    router = APIRouter(prefix="/look", include_in_schema=False)
    vocabularies: WeakKeyDictionary[LoadedModel, bytes] = WeakKeyDictionary()

    def find(run_id: str) -> Run:
        """The kept run with this id. Only here is the status 404, on which the page sends the token ids instead."""
        run = runs.get(run_id)
        if run is None:
            raise HTTPException(404, "This run is no longer kept: send its token ids to look/again.")
        return run

    # ---- Looked up in FastAPI's threads ------------------------------------------------------------------------------

    # Gradio compresses the response because the path ends in .json.
    @router.get("/vocabulary/{sha256}.json")
    def get_vocabulary(sha256: str) -> Response:
        """The texts of all tokens of a model, a JSON list in the order of their ids."""
        loaded = model_with_hash(snapshots, sha256)
        if loaded not in vocabularies:
            texts = [token.text for token in loaded.tokens(range(loaded.config.vocab_size))]
            vocabularies[loaded] = json.dumps(texts, ensure_ascii=False).encode()
        return Response(vocabularies[loaded], media_type="application/json", headers={"Cache-Control": FOREVER})

    # ---- Looked up in the thread that records texts ------------------------------------------------------------------

    @router.get("/{run_id}/rows")
    async def get_rows(run_id: str, start: int = 0, until: int | None = None) -> Response:
        arguments = max(start, 0), None if until is None else max(until, 1)
        frame = asyncio.get_running_loop().run_in_executor(runs.recorder, find(run_id).frame, *arguments)
        return octets(await frame)

    # ---- Computed from a run -----------------------------------------------------------------------------------------

    async def rows(start: int = 0) -> RunPart:
        return lambda run: run.frame(max(start, 0))

    async def head(layer: int, head: int, start: int = 0, until: int | None = None) -> RunPart:
        return lambda run: runs.exact.picture(run, layer, head, max(start, 0), until)

    async def query(query: int) -> RunPart:
        return lambda run: runs.exact.query(run, query)

    async def logits(position: int, count: int = 1) -> RunPart:
        return lambda run: runs.exact.logits(run, position, count)

    def add_kept(path: str, parse: ParseRunPart) -> None:
        @router.get(f"/{{run_id}}/{path}")
        async def of_kept_run(request: Request, run_id: str, content: Annotated[RunPart, Depends(parse)]) -> Response:
            return octets(await pool.run(client_of(request), content, find(run_id)))

    def add_lost(path: str, parse: ParseRunPart) -> None:
        @router.post(f"/{AGAIN}/{path}")
        async def of_lost_run(request: Request, text: LostRun, content: Annotated[RunPart, Depends(parse)]) -> Response:
            return octets(await pool.run(client_of(request), lambda: content(recompute(snapshots, runs, text))))

    add_lost("rows", rows)
    contents: dict[str, ParseRunPart] = {
        "heads/{layer}/{head}": head,
        "queries/{query}": query,
        "logits/{position}": logits,
    }
    for path, parse in contents.items():
        add_kept(path, parse)
        add_lost(path, parse)

    # ---- Computed from texts -----------------------------------------------------------------------------------------

    @router.post("/file")
    async def post_file(request: Request, text: SavedRun) -> Response:
        """The text as an HTML file (``model/drawing/html.py``), into which the page puts its view."""
        client = client_of(request)
        return octets(await pool.run(client, saved_file, snapshots, text, budget, client))

    @router.post("/scaled/{position}")
    async def post_scaled(request: Request, text: LostRun, position: int) -> Response:
        """The logits at one position of a text. The run is not kept, since many head masks are tried in a row."""
        return octets(await pool.run(client_of(request), scaled_logits, snapshots, text, position))

    return router


def model_with_hash(snapshots: Snapshots, sha256: str) -> LoadedModel:
    try:
        return snapshots.with_hash(sha256)
    except NotServed as error:
        raise HTTPException(410, str(error)) from None


def recompute(snapshots: Snapshots, runs: Runs, text: LostRun) -> Run:
    """The run of a posted text. Raises ``InputError`` if the model cannot read it."""
    loaded = model_with_hash(snapshots, text.sha256)
    ids = loaded.parse_prompt(text.ids[: loaded.config.context_length])
    return runs.recompute(loaded, ids, text.n_prompt, loaded.parse_head_mask(text.head_mask))


def saved_file(snapshots: Snapshots, text: SavedRun, budget: Budget, client: Hashable) -> bytes:
    """The text as an HTML file. Raises ``InputError`` if the model cannot read it or it is too long, and ``NoRoom``."""
    loaded = model_with_hash(snapshots, text.sha256)
    config, ids = loaded.config, text.ids[: loaded.config.context_length]
    n_weights = config.n_layer * config.n_head * len(ids) ** 2
    if n_weights > MAX_FILE_WEIGHTS:
        message = f"The text has {n_weights:,} attention weights; at most {MAX_FILE_WEIGHTS:,} are saved as a file."
        raise InputError("ids", message)
    settings = {name: value for name, value in text.settings.items() if isinstance(value, int | float)}
    with budget.hold(4 * (n_weights + len(ids) * config.vocab_size), client):  # weights and logits, float32
        trace = loaded.trace_with(loaded.gpt, ids, head_mask=loaded.parse_head_mask(text.head_mask))
        return replace(trace, n_prompt=min(text.n_prompt, len(ids)), settings=settings).html().encode()


def scaled_logits(snapshots: Snapshots, text: LostRun, position: int) -> bytes:
    """The logits at one position, read with the text's head mask. Raises ``InputError`` if there is no such token."""
    loaded = model_with_hash(snapshots, text.sha256)
    if not 0 <= position < len(text.ids):
        raise InputError("position", f"There is no token {position}; the text has {len(text.ids)}.")
    ids = loaded.parse_prompt(text.ids[: position + 1])
    text_pass = TextPass(loaded.gpt, ids, loaded.parse_head_mask(text.head_mask))
    return text_pass.logits(position, position + 1)[0].numpy().tobytes()


def octets(data: bytes) -> Response:
    return Response(data, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})
