"""The workspace's routes: thumbnails, tokens, exact weights and logits of a run, as bytes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar
from weakref import WeakKeyDictionary

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, FailFast, Field, JsonValue

from model import InputError, LoadedModel
from model.drawing.pictures import NotInText
from model.lens.alignment import Alignment, Piece, align, align_growing, align_texts
from model.lens.difference import check_pieces, head_differences
from model.lens.text_pass import TextPass

from ..client import client_of
from ..serving.body_types import HeadMask, TokenIds, Unicode
from ..serving.served_models import NotServed
from ..serving.snapshots import Snapshots
from ..serving.workers import Workers
from ..settings import MAX_RUN_ID
from .frame import encode_frame
from .run import Run
from .store import Runs

FOREVER = "private, max-age=31536000, immutable"  # private, because the server may require a key
MAX_FILE_WEIGHTS = 40_000_000  # 160 MB as they are computed
AGAIN = "again"  # replaces the run id: recompute the run from the text in the body


T = TypeVar("T")
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


class RunRoutes:
    """``GET look/{run}/...`` for a run that is kept, ``POST look/again/...`` with a ``LostRun`` for one that is not."""

    def __init__(self, snapshots: Snapshots, runs: Runs, workers: Workers) -> None:
        self.snapshots, self.runs, self.workers = snapshots, runs, workers
        self.vocabularies: WeakKeyDictionary[LoadedModel, bytes] = WeakKeyDictionary()

    def router(self) -> APIRouter:
        router = APIRouter(prefix="/look", include_in_schema=False)
        # Gradio compresses the response because the path ends in .json.
        router.get("/vocabulary/{sha256}.json")(self.get_vocabulary)
        router.get("/{run_id}/rows")(self.get_rows)
        router.post("/differences")(self.post_differences)
        router.post("/file")(self.post_file)
        router.post("/alignment")(self.post_alignment)
        router.post("/scaled/{position}")(self.post_scaled)
        router.get("/{run_id}/heads/{layer}/{head}")(self.get_head)
        router.get("/{run_id}/queries/{query}")(self.get_query)
        router.get("/{run_id}/logits/{position}")(self.get_logits)
        router.post(f"/{AGAIN}/rows")(self.post_rows)
        router.post(f"/{AGAIN}/heads/{{layer}}/{{head}}")(self.post_head)
        router.post(f"/{AGAIN}/queries/{{query}}")(self.post_query)
        router.post(f"/{AGAIN}/logits/{{position}}")(self.post_logits)
        return router

    # ---- Handlers ----------------------------------------------------------------------------------------------------
    # The two that are not async run in FastAPI's threads: they only look things up.

    def get_vocabulary(self, sha256: str) -> Response:
        """The texts of all tokens of a model, a JSON list in the order of their ids."""
        loaded = self.model_with_hash(sha256)
        if loaded not in self.vocabularies:
            texts = [token.text for token in loaded.tokens(range(loaded.config.vocab_size))]
            self.vocabularies[loaded] = json.dumps(texts, ensure_ascii=False).encode()
        return Response(self.vocabularies[loaded], media_type="application/json", headers={"Cache-Control": FOREVER})

    def get_rows(self, run_id: str, start: int = 0, until: int | None = None) -> Response:
        return octets(encode_frame(self.find(run_id), max(start, 0), None if until is None else max(until, 1)))

    async def post_differences(self, request: Request, pair: Pair) -> JSONResponse:
        """How differently each head attends in two texts, as ``[layer][head]``; see ``head_differences``."""
        heads = await self.computed(request, self.differences, pair)
        return JSONResponse({"heads": heads}, headers={"Cache-Control": "no-store"})

    async def post_alignment(self, request: Request, texts: TextsToAlign) -> Response:
        """Which tokens of two texts correspond; ``pieces`` are sent in the form that ``repeated`` returns."""
        found = await self.computed(request, self.aligned, texts)
        content = orjson.dumps({"pieces": repeated(found.pieces), "divergence": found.divergence})
        return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def post_file(self, request: Request, text: SavedRun) -> Response:
        """The text as an HTML file (``model/drawing/html.py``), into which the page puts its view."""
        return octets(await self.computed(request, self.file, text))

    async def post_scaled(self, request: Request, text: LostRun, position: int) -> Response:
        """The logits at one position of a text. The run is not kept, since many head masks are tried in a row."""
        return octets(await self.computed(request, self.logits_of_text, text, position))

    async def get_head(self, request: Request, run_id: str, layer: int, head: int, start: int = 0) -> Response:
        return await self.from_kept_run(request, self.runs.exact.picture, run_id, layer, head, max(start, 0))

    async def get_query(self, request: Request, run_id: str, query: int) -> Response:
        return await self.from_kept_run(request, self.runs.exact.query, run_id, query)

    async def get_logits(self, request: Request, run_id: str, position: int, count: int = 1) -> Response:
        return await self.from_kept_run(request, self.runs.exact.logits, run_id, position, count)

    async def post_rows(self, request: Request, text: LostRun, start: int = 0) -> Response:
        return await self.from_posted_text(request, encode_frame, text, max(start, 0))

    async def post_head(self, request: Request, text: LostRun, layer: int, head: int, start: int = 0) -> Response:
        return await self.from_posted_text(request, self.runs.exact.picture, text, layer, head, max(start, 0))

    async def post_query(self, request: Request, text: LostRun, query: int) -> Response:
        return await self.from_posted_text(request, self.runs.exact.query, text, query)

    async def post_logits(self, request: Request, text: LostRun, position: int, count: int = 1) -> Response:
        return await self.from_posted_text(request, self.runs.exact.logits, text, position, count)

    # ---- What they share ---------------------------------------------------------------------------------------------

    async def computed(self, request: Request, compute: Callable[..., T], *args: object) -> T:
        """The result of ``compute``. It may read a whole text, so only a few run at a time, and clients take turns."""
        return await self.workers.run(client_of(request), compute, *args)

    async def from_kept_run(
        self, request: Request, content: Callable[..., bytes], run_id: str, *place: int
    ) -> Response:
        return octets(await self.computed(request, content_at, content, self.find(run_id), *place))

    async def from_posted_text(
        self, request: Request, content: Callable[..., bytes], text: LostRun, *place: int
    ) -> Response:
        return octets(await self.computed(request, lambda: content_at(content, self.recompute(text), *place)))

    def find(self, run_id: str) -> Run:
        """The kept run with this id. Only here is the status 404, on which the page sends the token ids instead."""
        run = self.runs.get(run_id)
        if run is None:
            raise HTTPException(404, "This run is no longer kept: send its token ids to look/again.")
        return run

    def model_with_hash(self, sha256: str) -> LoadedModel:
        try:
            return self.snapshots.with_weights(sha256)
        except NotServed as error:
            raise HTTPException(410, str(error)) from None

    def recompute(self, text: LostRun) -> Run:
        loaded = self.model_with_hash(text.sha256)
        try:
            ids = loaded.read_prompt(text.ids[: loaded.config.context_length])
            return self.runs.recompute(loaded, ids, text.n_prompt, loaded.read_head_mask(text.head_mask))
        except InputError as error:
            raise HTTPException(400, str(error)) from None

    def file(self, text: SavedRun) -> bytes:
        loaded = self.model_with_hash(text.sha256)
        ids = text.ids[: loaded.config.context_length]
        n_weights = loaded.config.n_layer * loaded.config.n_head * len(ids) ** 2
        if n_weights > MAX_FILE_WEIGHTS:
            message = f"The text has {n_weights:,} attention weights; at most {MAX_FILE_WEIGHTS:,} are saved as a file."
            raise HTTPException(400, message)
        try:
            trace = loaded.trace(ids, head_mask=loaded.read_head_mask(text.head_mask))
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        settings = {name: value for name, value in text.settings.items() if isinstance(value, int | float)}
        return replace(trace, n_prompt=min(text.n_prompt, len(ids)), settings=settings).html().encode()

    def differences(self, pair: Pair) -> list[list[float]]:
        a, b = (self.runs.get(side.run) or self.recompute(side) for side in (pair.a, pair.b))
        pieces = [Piece(*piece) for piece in pair.pieces]
        try:
            check_pieces(pieces, len(a.readable_ids), len(b.readable_ids))
            pass_a = self.runs.exact.text_pass(a, pieces[-1].a_stop)
            pass_b = self.runs.exact.text_pass(b, pieces[-1].b_stop)
            found: list[list[float]] = head_differences(pass_a, pass_b, pieces, pair.first).tolist()
            return found
        except ValueError as error:
            raise HTTPException(400, str(error)) from None

    def known_ids(self, text: AlignedText) -> list[int]:
        run = self.runs.get(text.run)
        if run is None and not text.ids:
            raise HTTPException(404, "This run is no longer kept: send its token ids, too.")
        return list((text.ids if run is None else run.ids)[: text.n_tokens])

    def aligned(self, texts: TextsToAlign) -> Alignment:
        sides = texts.a, texts.b
        a, b = map(self.known_ids, sides)
        if texts.a.sha256 != texts.b.sha256:
            one, other = (self.model_with_hash(side.sha256) for side in sides)
            if one.tokenizer.spec != other.tokenizer.spec:
                return align_texts([token.text for token in one.tokens(a)], [token.text for token in other.tokens(b)])
        n_prompt = min(side.n_prompt for side in sides)
        if texts.is_growing:
            return align_growing(a, b, n_prompt=n_prompt)
        is_given = texts.is_given or any(side.n_prompt >= side.n_tokens for side in sides)
        return align(a, b, is_given=is_given, n_prompt=n_prompt)

    def logits_of_text(self, text: LostRun, position: int) -> bytes:
        loaded = self.model_with_hash(text.sha256)
        if not 0 <= position < len(text.ids):
            raise HTTPException(400, f"There is no token {position}; the text has {len(text.ids)}.")
        try:
            ids = loaded.read_prompt(text.ids[: position + 1])
            head_mask = loaded.read_head_mask(text.head_mask)
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        return TextPass(loaded.gpt, ids, head_mask).logits(position, position + 1)[0].numpy().tobytes()


def content_at(content: Callable[..., bytes], run: Run, *place: int) -> bytes:
    """The result of ``content``, or the status 400 if the run has no such picture, row or token."""
    try:
        return content(run, *place)
    except NotInText as error:
        raise HTTPException(400, str(error)) from None


def repeated(pieces: Sequence[Piece]) -> list[list[int]]:
    """Consecutive pieces of one kind as one: ``[a_start, b_start, tokens in a, tokens in b, same, count]``."""
    found: list[list[int]] = []
    end_a, end_b = -1, -1
    for piece in pieces:
        n_a, n_b = piece.a_stop - piece.a_start, piece.b_stop - piece.b_start
        goes_on = found and (piece.a_start, piece.b_start) == (end_a, end_b)
        if goes_on and found[-1][2:5] == [n_a, n_b, int(piece.same)]:
            found[-1][5] += 1
        else:
            found.append([piece.a_start, piece.b_start, n_a, n_b, int(piece.same), 1])
        end_a, end_b = piece.a_stop, piece.b_stop
    return found


def octets(data: bytes) -> Response:
    return Response(data, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})
