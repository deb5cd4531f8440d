"""The workspace's own routes: thumbnails, tokens, exact weights and logits of a run, as bytes."""

import json
import struct

from fastapi import APIRouter, HTTPException, Response
from pydantic import BaseModel, Field

from model import PromptError

from .runs import Run, Runs
from .shelf import Shelf

FOREVER = "private, max-age=31536000, immutable"  # private, as a key may be asked for
LOST = "again"  # in the place of a run id: compute it anew from what the body says


class Text(BaseModel):
    """What a browser sends for a run that is no longer kept: enough for any process to compute it anew."""

    sha256: str = Field(max_length=64)
    ids: list[int]
    n_prompt: int = Field(ge=0)


def row_routes(shelf: Shelf, runs: Runs) -> APIRouter:
    """``GET look/{run}/...`` for a run that is kept, ``POST look/again/...`` with a ``Text`` for one that is not."""
    router = APIRouter(prefix="/look", include_in_schema=False)

    vocabularies: dict[str, bytes] = {}

    def find(run_id: str) -> Run:
        run = runs.get(run_id)
        if run is None:
            raise HTTPException(404, "This run is no longer kept: send its token ids to look/again.")
        return run

    def reread(text: Text) -> Run:
        _, gpt = shelf.with_hash(text.sha256) or ("", None)
        if gpt is None:
            raise HTTPException(410, "The model that wrote this text is no longer served here.")
        try:
            return runs.reread(gpt, gpt.read_prompt(text.ids[: gpt.config.context_length]), text.n_prompt)
        except PromptError as error:
            raise HTTPException(400, str(error)) from None

    def thumbnails(run: Run, start: int) -> Response:
        header, data = run.frame(start)
        content = json.dumps(header).encode()
        return binary(struct.pack("<I", len(content)) + content + data)

    def weights(run: Run, layer: int, head: int, start: int) -> Response:
        try:
            return binary(run.head(layer, head, start))
        except ValueError as error:
            raise HTTPException(404, str(error)) from None

    def rows_of(run: Run, query: int) -> Response:
        try:
            return binary(run.query(query))
        except ValueError as error:
            raise HTTPException(404, str(error)) from None

    def logits(run: Run, position: int) -> Response:
        if not 0 <= position < min(len(run.ids), run.gpt.config.context_length):
            raise HTTPException(404, f"There is no token {position}: the text has {len(run.ids)}.")
        return binary(run.logits(position))

    # Plain functions: they wait for a lock and compute, so they run in threads, not on the event loop.
    # The ending tells Gradio to compress it.
    @router.get("/vocabulary/{sha256}.json")
    def get_vocabulary(sha256: str) -> Response:
        """The texts of all tokens of a model, a JSON list in the order of their ids."""
        if sha256 not in vocabularies:
            _, gpt = shelf.with_hash(sha256) or ("", None)
            if gpt is None:
                raise HTTPException(410, "The model that wrote this text is no longer served here.")
            texts = [token.text for token in gpt.tokens(range(gpt.config.vocab_size))]
            vocabularies[sha256] = json.dumps(texts, ensure_ascii=False).encode()
        return Response(vocabularies[sha256], media_type="application/json", headers={"Cache-Control": FOREVER})

    @router.get("/{run_id}/rows")
    def get_rows(run_id: str, start: int = 0) -> Response:
        return thumbnails(find(run_id), max(start, 0))

    @router.get("/{run_id}/heads/{layer}/{head}")
    def get_head(run_id: str, layer: int, head: int, start: int = 0) -> Response:
        return weights(find(run_id), layer, head, max(start, 0))

    @router.get("/{run_id}/queries/{query}")
    def get_query(run_id: str, query: int) -> Response:
        return rows_of(find(run_id), query)

    @router.get("/{run_id}/logits/{position}")
    def get_logits(run_id: str, position: int) -> Response:
        return logits(find(run_id), position)

    @router.post(f"/{LOST}/rows")
    def post_rows(text: Text, start: int = 0) -> Response:
        return thumbnails(reread(text), max(start, 0))

    @router.post(f"/{LOST}/heads/{{layer}}/{{head}}")
    def post_head(text: Text, layer: int, head: int, start: int = 0) -> Response:
        return weights(reread(text), layer, head, max(start, 0))

    @router.post(f"/{LOST}/queries/{{query}}")
    def post_query(text: Text, query: int) -> Response:
        return rows_of(reread(text), query)

    @router.post(f"/{LOST}/logits/{{position}}")
    def post_logits(text: Text, position: int) -> Response:
        return logits(reread(text), position)

    return router


def binary(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})
