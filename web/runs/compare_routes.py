"""The routes of a comparison: which tokens of two texts correspond, and which heads attend differently in them."""

from collections.abc import Sequence
from typing import Annotated

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, FailFast, Field

from model.lens.alignment import Alignment, Piece, align, align_growing, align_texts
from model.lens.difference import check_pieces, head_differences

from ..body_types import TokenIds, Unicode
from ..client import client_of
from ..serving.fair_pool import FairThreads
from ..serving.snapshots import Snapshots
from ..settings import MAX_RUN_ID
from .routes import LostRun, model_with_hash, recompute
from .store import Runs

PieceFields = Annotated[tuple[int, int, int, int, bool], FailFast()]


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
    ids: TokenIds = Field([])
    n_tokens: int = Field(ge=0)


class TextsToAlign(BaseModel):
    """``is_given``: one of them was not written by a model. ``is_growing``: more of one of them is to come."""

    a: AlignedText
    b: AlignedText
    is_given: bool = False
    is_growing: bool = False


def compare_routes(snapshots: Snapshots, runs: Runs, pool: FairThreads) -> APIRouter:
    """``look/differences`` and ``look/alignment``, computed in ``pool`` like all that may read a whole text."""
    router = APIRouter(prefix="/look", include_in_schema=False)

    @router.post("/differences")
    async def post_differences(request: Request, pair: Pair) -> JSONResponse:
        """How differently each head attends in two texts, as ``[layer][head]``; see ``head_differences``."""
        heads = await pool.run(client_of(request), differences, snapshots, runs, pair)
        return JSONResponse({"heads": heads}, headers={"Cache-Control": "no-store"})

    @router.post("/alignment")
    async def post_alignment(request: Request, texts: TextsToAlign) -> Response:
        """Which tokens of two texts correspond; ``pieces`` are sent in the form that ``repeated`` returns."""
        alignment = await pool.run(client_of(request), align_posted, snapshots, runs, texts)
        content = orjson.dumps({"pieces": repeated(alignment.pieces), "divergence": alignment.divergence})
        return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})

    return router


def differences(snapshots: Snapshots, runs: Runs, pair: Pair) -> list[list[float]]:
    """``head_differences`` of two runs. Raises ``InputError`` if the pieces do not fit them."""
    a, b = (runs.get(side.run) or recompute(snapshots, runs, side) for side in (pair.a, pair.b))
    pieces = [Piece(*piece) for piece in pair.pieces]
    check_pieces(pieces, len(a.readable_ids), len(b.readable_ids))
    pass_a, pass_b = runs.exact.text_pass(a, pieces[-1].a_stop), runs.exact.text_pass(b, pieces[-1].b_stop)
    heads: list[list[float]] = head_differences(pass_a, pass_b, pieces, pair.first).tolist()
    return heads


def align_posted(snapshots: Snapshots, runs: Runs, texts: TextsToAlign) -> Alignment:
    """Which tokens of two texts correspond: equal ids, or equal bytes if the models' tokenizers differ."""

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
            return align_texts(one.tokenizer.text_bytes(a), other.tokenizer.text_bytes(b))
    n_prompt = min(side.n_prompt for side in sides)
    if texts.is_growing:
        return align_growing(a, b, n_prompt=n_prompt)
    is_given = texts.is_given or any(side.n_prompt >= side.n_tokens for side in sides)
    return align(a, b, is_given=is_given, n_prompt=n_prompt)


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
