"""The workspace's routes: thumbnails, tokens, exact weights and logits of a run, as bytes."""

import json
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar
from weakref import WeakKeyDictionary

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, FailFast, Field

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
from .frame import encode_frame
from .run import Run
from .store import Runs

FOREVER = "private, max-age=31536000, immutable"  # private, because the server may require a key
AGAIN = "again"  # replaces the run id: recompute the run from the text in the body


T = TypeVar("T")
PieceFields = Annotated[tuple[int, int, int, int, bool], FailFast()]


class LostRun(BaseModel):
    """The body that a browser sends for a run that is no longer kept: enough for any process to recompute it."""

    sha256: Unicode = Field(max_length=64)
    ids: TokenIds
    n_prompt: int = Field(ge=0)
    head_mask: HeadMask | None = None


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
    """``GET look/{run}/...`` for a run that is kept, ``POST look/again/...`` with a ``LostRun`` for one that is not."""
    router = APIRouter(prefix="/look", include_in_schema=False)
    vocabularies: WeakKeyDictionary[LoadedModel, bytes] = WeakKeyDictionary()

    async def computed(request: Request, compute: Callable[..., T], *args: object) -> T:
        """The result of ``compute``. It may read a whole text, so only a few run at a time, and clients take turns."""
        return await workers.run(client_of(request), compute, *args)

    def find(run_id: str) -> Run:
        run = runs.get(run_id)
        if run is None:
            raise HTTPException(404, "This run is no longer kept: send its token ids to look/again.")
        return run

    def model_with_hash(sha256: str) -> LoadedModel:
        try:
            return snapshots.with_weights(sha256)
        except NotServed as error:
            raise HTTPException(410, str(error)) from None

    def recompute(text: LostRun) -> Run:
        loaded = model_with_hash(text.sha256)
        try:
            ids = loaded.read_prompt(text.ids[: loaded.config.context_length])
            return runs.recompute(loaded, ids, text.n_prompt, loaded.read_head_mask(text.head_mask))
        except InputError as error:
            raise HTTPException(400, str(error)) from None

    def differences(pair: Pair) -> list[list[float]]:
        a, b = (runs.get(side.run) or recompute(side) for side in (pair.a, pair.b))
        pieces = [Piece(*piece) for piece in pair.pieces]
        try:
            check_pieces(pieces, len(a.readable_ids), len(b.readable_ids))
            pass_a, pass_b = runs.exact.text_pass(a, pieces[-1].a_stop), runs.exact.text_pass(b, pieces[-1].b_stop)
            found: list[list[float]] = head_differences(pass_a, pass_b, pieces, pair.first).tolist()
            return found
        except ValueError as error:
            raise HTTPException(400, str(error)) from None

    def known_ids(text: AlignedText) -> list[int]:
        run = runs.get(text.run)
        if run is None and not text.ids:
            raise HTTPException(404, "This run is no longer kept: send its token ids, too.")
        return list((text.ids if run is None else run.ids)[: text.n_tokens])

    def aligned(texts: TextsToAlign) -> Alignment:
        sides = texts.a, texts.b
        a, b = map(known_ids, sides)
        if texts.a.sha256 != texts.b.sha256:
            one, other = (model_with_hash(side.sha256) for side in sides)
            if one.tokenizer.spec != other.tokenizer.spec:
                return align_texts([token.text for token in one.tokens(a)], [token.text for token in other.tokens(b)])
        n_prompt = min(side.n_prompt for side in sides)
        if texts.is_growing:
            return align_growing(a, b, n_prompt=n_prompt)
        is_given = texts.is_given or any(side.n_prompt >= side.n_tokens for side in sides)
        return align(a, b, is_given=is_given, n_prompt=n_prompt)

    def scaled(text: LostRun, position: int) -> bytes:
        loaded = model_with_hash(text.sha256)
        if not 0 <= position < len(text.ids):
            raise HTTPException(404, f"there is no token {position}: the text has {len(text.ids)}")
        try:
            ids = loaded.read_prompt(text.ids[: position + 1])
            head_mask = loaded.read_head_mask(text.head_mask)
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        return TextPass(loaded.gpt, ids, head_mask).logits(position, position + 1)[0].numpy().tobytes()

    async def kept(request: Request, content: Callable[..., bytes], run_id: str, *place: int) -> Response:
        return octets(await computed(request, at, content, find(run_id), *place))

    async def again(request: Request, content: Callable[..., bytes], text: LostRun, *place: int) -> Response:
        return octets(await computed(request, lambda: at(content, recompute(text), *place)))

    # This handler and ``get_rows`` are not async, so FastAPI runs them in its threads: they only look things up.
    # Gradio compresses the response because the path ends in .json.
    @router.get("/vocabulary/{sha256}.json")
    def get_vocabulary(sha256: str) -> Response:
        """The texts of all tokens of a model, a JSON list in the order of their ids."""
        loaded = model_with_hash(sha256)
        if loaded not in vocabularies:
            texts = [token.text for token in loaded.tokens(range(loaded.config.vocab_size))]
            vocabularies[loaded] = json.dumps(texts, ensure_ascii=False).encode()
        return Response(vocabularies[loaded], media_type="application/json", headers={"Cache-Control": FOREVER})

    @router.get("/{run_id}/rows")
    def get_rows(run_id: str, start: int = 0, until: int | None = None) -> Response:
        return octets(at(encode_frame, find(run_id), max(start, 0), None if until is None else max(until, 1)))

    @router.post("/differences")
    async def post_differences(request: Request, pair: Pair) -> JSONResponse:
        """How differently each head attends in two texts, as ``[layer][head]``; see ``head_differences``."""
        heads = await computed(request, differences, pair)
        return JSONResponse({"heads": heads}, headers={"Cache-Control": "no-store"})

    @router.post("/alignment")
    async def post_alignment(request: Request, texts: TextsToAlign) -> Response:
        """Which tokens of two texts correspond to each other; ``pieces`` are sent as ``repeated`` has them."""
        found = await computed(request, aligned, texts)
        content = orjson.dumps({"pieces": repeated(found.pieces), "divergence": found.divergence})
        return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})

    @router.post("/scaled/{position}")
    async def post_scaled(request: Request, text: LostRun, position: int) -> Response:
        """The logits at one position of a text. The run is not kept, since many head masks are tried in a row."""
        return octets(await computed(request, scaled, text, position))

    @router.get("/{run_id}/heads/{layer}/{head}")
    async def get_head(request: Request, run_id: str, layer: int, head: int, start: int = 0) -> Response:
        return await kept(request, runs.exact.picture, run_id, layer, head, max(start, 0))

    @router.get("/{run_id}/queries/{query}")
    async def get_query(request: Request, run_id: str, query: int) -> Response:
        return await kept(request, runs.exact.query, run_id, query)

    @router.get("/{run_id}/logits/{position}")
    async def get_logits(request: Request, run_id: str, position: int, count: int = 1) -> Response:
        return await kept(request, runs.exact.logits, run_id, position, count)

    @router.post(f"/{AGAIN}/rows")
    async def post_rows(request: Request, text: LostRun, start: int = 0) -> Response:
        return await again(request, encode_frame, text, max(start, 0))

    @router.post(f"/{AGAIN}/heads/{{layer}}/{{head}}")
    async def post_head(request: Request, text: LostRun, layer: int, head: int, start: int = 0) -> Response:
        return await again(request, runs.exact.picture, text, layer, head, max(start, 0))

    @router.post(f"/{AGAIN}/queries/{{query}}")
    async def post_query(request: Request, text: LostRun, query: int) -> Response:
        return await again(request, runs.exact.query, text, query)

    @router.post(f"/{AGAIN}/logits/{{position}}")
    async def post_logits(request: Request, text: LostRun, position: int, count: int = 1) -> Response:
        return await again(request, runs.exact.logits, text, position, count)

    return router


def at(content: Callable[..., bytes], run: Run, *place: int | None) -> bytes:
    """The result of ``content``, or 404 if it raises ``ValueError`` because the run has no such position or picture."""
    try:
        return content(run, *place)
    except ValueError as error:
        raise HTTPException(404, str(error)) from None


def repeated(pieces: Sequence[Piece]) -> list[list[int]]:
    """``[a_start, b_start, tokens in a, tokens in b, same, count]``: so many pieces like it, one after the other."""
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
