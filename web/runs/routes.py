"""The workspace's routes: thumbnails, tokens, exact weights and logits of a run, as bytes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated
from weakref import WeakKeyDictionary

import orjson
from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, FailFast, Field, JsonValue

from model import InputError, LoadedModel
from model.lens.alignment import Alignment, Piece, align, align_growing, align_texts
from model.lens.difference import check_pieces, head_differences
from model.lens.text_pass import TextPass

from ..client import client_of
from ..serving.body_types import HeadMask, TokenIds, Unicode
from ..serving.served_models import NotServed
from ..serving.snapshots import Snapshots
from ..serving.workers import Workers
from ..settings import MAX_RUN_ID
from .run import Run
from .store import Runs

FOREVER = "private, max-age=31536000, immutable"  # private, because the server may require a key
MAX_FILE_WEIGHTS = 40_000_000  # 160 MB as they are computed
AGAIN = "again"  # replaces the run id: recompute the run from the text in the body
Content = Callable[[Run], bytes]
ParseContent = Callable[..., Awaitable[Content]]  # from parameters of the path and the query
PieceFields = Annotated[tuple[int, int, int, int, bool], FailFast()]


class LostRun(BaseModel):
    """The body that a browser sends for a run that is no longer kept: enough for any process to recompute it."""

    sha256: Unicode = Field(max_length=64)
    ids: TokenIds
    n_prompt: int = Field(ge=0)
    head_mask: HeadMask | None = None


class SavedRun(LostRun):
    """A text to save, with the settings that wrote it."""

    settings: dict[str, JsonValue] = {}


class Side(LostRun):
    """One of two texts to compare, with the id of its run, which may still be kept."""

    run: Unicode = Field("", max_length=MAX_RUN_ID)


class Pair(BaseModel):
    """Two texts to compare, and which of their tokens correspond (``model.lens.alignment.Piece``)."""

    a: Side
    b: Side
    pieces: Annotated[list[PieceFields], FailFast()]
    first: int = Field(0, ge=0)


class AlignedText(LostRun):
    """The first ``n_tokens`` of a text: those of the run ``run``, if it is still kept, or else of ``ids``."""

    run: Unicode = Field("", max_length=MAX_RUN_ID)
    ids: TokenIds = []
    n_tokens: int = Field(ge=0)


class TextsToAlign(BaseModel):
    """``is_given``: one of them was not written by a model. ``is_growing``: more of one of them is to come."""

    a: AlignedText
    b: AlignedText
    is_given: bool = False
    is_growing: bool = False


def run_routes(snapshots: Snapshots, runs: Runs, workers: Workers) -> APIRouter:
    """``look/{run}/...`` for a run that is kept, ``look/again/...`` for one that is not, and texts that are compared.

    Whatever may read a whole text runs in ``workers``, so only a few run at a time, and clients take turns.
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

    # ---- Looked up in the threads that record texts ------------------------------------------------------------------

    @router.get("/{run_id}/rows")
    async def get_rows(run_id: str, start: int = 0, until: int | None = None) -> Response:
        arguments = max(start, 0), None if until is None else max(until, 1)
        frame = asyncio.get_running_loop().run_in_executor(runs.recorders, find(run_id).frame, *arguments)
        return octets(await frame)

    # ---- Computed from a run -----------------------------------------------------------------------------------------

    async def rows(start: int = 0) -> Content:
        return lambda run: run.frame(max(start, 0))

    async def head(layer: int, head: int, start: int = 0, until: int | None = None) -> Content:
        return lambda run: runs.exact.picture(run, layer, head, max(start, 0), until)

    async def query(query: int) -> Content:
        return lambda run: runs.exact.query(run, query)

    async def logits(position: int, count: int = 1) -> Content:
        return lambda run: runs.exact.logits(run, position, count)

    def add_kept(path: str, parse: ParseContent) -> None:
        @router.get(f"/{{run_id}}/{path}")
        async def of_kept_run(request: Request, run_id: str, content: Annotated[Content, Depends(parse)]) -> Response:
            return octets(await workers.run(client_of(request), content, find(run_id)))

    def add_lost(path: str, parse: ParseContent) -> None:
        @router.post(f"/{AGAIN}/{path}")
        async def of_lost_run(request: Request, text: LostRun, content: Annotated[Content, Depends(parse)]) -> Response:
            return octets(await workers.run(client_of(request), lambda: content(recompute(snapshots, runs, text))))

    add_lost("rows", rows)
    contents: dict[str, ParseContent] = {
        "heads/{layer}/{head}": head,
        "queries/{query}": query,
        "logits/{position}": logits,
    }
    for path, parse in contents.items():
        add_kept(path, parse)
        add_lost(path, parse)

    # ---- Computed from texts -----------------------------------------------------------------------------------------

    @router.post("/differences")
    async def post_differences(request: Request, pair: Pair) -> JSONResponse:
        """How differently each head attends in two texts, as ``[layer][head]``; see ``head_differences``."""
        heads = await workers.run(client_of(request), differences, snapshots, runs, pair)
        return JSONResponse({"heads": heads}, headers={"Cache-Control": "no-store"})

    @router.post("/alignment")
    async def post_alignment(request: Request, texts: TextsToAlign) -> Response:
        """Which tokens of two texts correspond; ``pieces`` are sent in the form that ``repeated`` returns."""
        alignment = await workers.run(client_of(request), align_posted, snapshots, runs, texts)
        content = orjson.dumps({"pieces": repeated(alignment.pieces), "divergence": alignment.divergence})
        return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})

    @router.post("/file")
    async def post_file(request: Request, text: SavedRun) -> Response:
        """The text as an HTML file (``model/drawing/html.py``), into which the page puts its view."""
        return octets(await workers.run(client_of(request), saved_file, snapshots, text))

    @router.post("/scaled/{position}")
    async def post_scaled(request: Request, text: LostRun, position: int) -> Response:
        """The logits at one position of a text. The run is not kept, since many head masks are tried in a row."""
        return octets(await workers.run(client_of(request), scaled_logits, snapshots, text, position))

    return router


def model_with_hash(snapshots: Snapshots, sha256: str) -> LoadedModel:
    try:
        return snapshots.with_weights(sha256)
    except NotServed as error:
        raise HTTPException(410, str(error)) from None


def recompute(snapshots: Snapshots, runs: Runs, text: LostRun) -> Run:
    """The run of a posted text. Raises ``InputError`` if the model cannot read it."""
    loaded = model_with_hash(snapshots, text.sha256)
    ids = loaded.read_prompt(text.ids[: loaded.config.context_length])
    return runs.recompute(loaded, ids, text.n_prompt, loaded.read_head_mask(text.head_mask))


def saved_file(snapshots: Snapshots, text: SavedRun) -> bytes:
    """The text as an HTML file. Raises ``InputError`` if the model cannot read it, or if it is too long."""
    loaded = model_with_hash(snapshots, text.sha256)
    ids = text.ids[: loaded.config.context_length]
    n_weights = loaded.config.n_layer * loaded.config.n_head * len(ids) ** 2
    if n_weights > MAX_FILE_WEIGHTS:
        message = f"The text has {n_weights:,} attention weights; at most {MAX_FILE_WEIGHTS:,} are saved as a file."
        raise InputError("ids", message)
    trace = loaded.trace(ids, head_mask=loaded.read_head_mask(text.head_mask))
    settings = {name: value for name, value in text.settings.items() if isinstance(value, int | float)}
    return replace(trace, n_prompt=min(text.n_prompt, len(ids)), settings=settings).html().encode()


def differences(snapshots: Snapshots, runs: Runs, pair: Pair) -> list[list[float]]:
    """``head_differences`` of two runs. Raises ``InputError`` if the pieces do not fit them."""
    a, b = (runs.get(side.run) or recompute(snapshots, runs, side) for side in (pair.a, pair.b))
    pieces = [Piece(*piece) for piece in pair.pieces]
    check_pieces(pieces, len(a.readable_ids), len(b.readable_ids))
    pass_a, pass_b = runs.exact.text_pass(a, pieces[-1].a_stop), runs.exact.text_pass(b, pieces[-1].b_stop)
    heads: list[list[float]] = head_differences(pass_a, pass_b, pieces, pair.first).tolist()
    return heads


def align_posted(snapshots: Snapshots, runs: Runs, texts: TextsToAlign) -> Alignment:
    """Which tokens of two texts correspond: equal ids, or equal characters if the models' tokenizers differ."""

    def known_ids(side: AlignedText) -> list[int]:
        run = runs.get(side.run)
        if run is None and not side.ids:
            raise HTTPException(404, "This run is no longer kept: send its token ids, too.")
        return list((side.ids if run is None else run.ids)[: side.n_tokens])

    sides = texts.a, texts.b
    a, b = map(known_ids, sides)
    if texts.a.sha256 != texts.b.sha256:
        one, other = (model_with_hash(snapshots, side.sha256) for side in sides)
        if one.tokenizer.spec != other.tokenizer.spec:
            return align_texts([token.text for token in one.tokens(a)], [token.text for token in other.tokens(b)])
    n_prompt = min(side.n_prompt for side in sides)
    if texts.is_growing:
        return align_growing(a, b, n_prompt=n_prompt)
    is_given = texts.is_given or any(side.n_prompt >= side.n_tokens for side in sides)
    return align(a, b, is_given=is_given, n_prompt=n_prompt)


def scaled_logits(snapshots: Snapshots, text: LostRun, position: int) -> bytes:
    """The logits at one position, read with the text's head mask. Raises ``InputError`` if there is no such token."""
    loaded = model_with_hash(snapshots, text.sha256)
    if not 0 <= position < len(text.ids):
        raise InputError("position", f"There is no token {position}; the text has {len(text.ids)}.")
    ids = loaded.read_prompt(text.ids[: position + 1])
    text_pass = TextPass(loaded.gpt, ids, loaded.read_head_mask(text.head_mask))
    return text_pass.logits(position, position + 1)[0].numpy().tobytes()


def repeated(pieces: Sequence[Piece]) -> list[list[int]]:
    """Consecutive pieces of one kind as one: ``[a_start, b_start, tokens in a, tokens in b, same, count]``."""
    joined: list[list[int]] = []
    end_a, end_b = -1, -1
    for piece in pieces:
        n_a, n_b = piece.a_stop - piece.a_start, piece.b_stop - piece.b_start
        goes_on = joined and (piece.a_start, piece.b_start) == (end_a, end_b)
        if goes_on and joined[-1][2:5] == [n_a, n_b, int(piece.same)]:
            joined[-1][5] += 1
        else:
            joined.append([piece.a_start, piece.b_start, n_a, n_b, int(piece.same), 1])
        end_a, end_b = piece.a_stop, piece.b_stop
    return joined


def octets(data: bytes) -> Response:
    return Response(data, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})
