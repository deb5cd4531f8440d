"""The answer to the question where each head fires."""

from typing import Any

import torch

from model import InputError, LoadedModel
from model.lens.metrics import METRICS
from model.lens.questions.passages.firing import MEASURES, WINDOW, Firing, Strongest, edges, firing, shared
from model.lens.questions.passages.head_map import head_map
from model.lens.questions.passages.token_marks import PATTERNS, TokenMarks, mark_tokens
from model.lens.questions.progress import Progress, part

from ...questions.service import Answer, Asked
from ...settings import MAX_LONG_TEXT_BYTES, Limits
from .passages_schema import PassagesBody

Parameters = dict[str, Any]


def read_passages(_limits: Limits, _loaded: LoadedModel, _ids: list[int], body: PassagesBody) -> Parameters:
    n_bytes = len(body.text.encode("utf-8", "surrogatepass"))
    if n_bytes > MAX_LONG_TEXT_BYTES:
        raise InputError("text", f"The text has {n_bytes:,} bytes; at most {MAX_LONG_TEXT_BYTES:,} are read.")
    return {"text": body.text}


def answer_passages(asked: Asked, progress: Progress) -> Answer:
    loaded = asked.loaded
    ids = encode(loaded, asked.parameters["text"])  # here and not in the event loop: a long text takes a while
    marks = mark_tokens(loaded.tokenizer, ids)
    found = firing(asked.gpt, marks, progress=part(progress, 0, 0.99))
    starts = sorted({int(start) for each in found.strongest.values() for start in each.window.flatten()})
    size = min(WINDOW, loaded.config.context_length)
    windows = [{"start": start, "tokens": ids[start : start + size]} for start in starts]
    used = sorted({token for window in windows for token in window["tokens"]})  # type: ignore[attr-defined]
    features = torch.cat([found.metrics, found.everywhere], -1)
    where = head_map(features)
    return {
        "n_tokens": len(ids),
        "patterns": PATTERNS,
        "metrics": METRICS,
        "bins": {measure: edges(measure) for measure in MEASURES},
        "heads": per_head(found, marks, {start: index for index, start in enumerate(starts)}),
        "windows": windows,
        "texts": {str(token.id): token.text for token in loaded.tokens(used)},
        "map": {
            "points": where.points.numpy(),
            "explained": where.explained.numpy(),
            "features": (*METRICS, *PATTERNS),
            "axes": where.axes.numpy(),
        },
    }


def encode(loaded: LoadedModel, text: str) -> list[int]:
    """The ids of a text of any length. Raises ``InputError`` for the field ``text``."""
    try:
        ids = loaded.tokenizer.encode(text)
    except InputError as error:
        raise InputError("text", str(error), error.code) from None
    if len(ids) < 2:
        raise InputError("text", "The text must have at least two tokens, so that one can look at another.")
    return ids


def per_head(found: Firing, marks: TokenMarks, index_of: dict[int, int]) -> list[list[Answer]]:
    n_layer, n_head = found.everywhere.shape[:2]
    shares = {measure: shared(found.strongest[measure], marks) for measure in MEASURES}
    return [
        [
            {
                **{
                    measure: measured(found.strongest[measure], layer, head, index_of)
                    | {"share": shares[measure][layer, head].tolist()}
                    for measure in MEASURES
                },
                "everywhere": found.everywhere[layer, head].tolist(),
                "metrics": found.metrics[layer, head].tolist(),
            }
            for head in range(n_head)
        ]
        for layer in range(n_layer)
    ]


def measured(strongest: Strongest, layer: int, head: int, index_of: dict[int, int]) -> Answer:
    columns = (strongest.value, strongest.query, strongest.key, strongest.window)
    rows = zip(*(column[layer, head].tolist() for column in columns), strict=True)
    passages = [
        {"value": value, "query": query, "key": key, "window": index_of[start]}
        for value, query, key, start in rows
        if value > 0
    ]
    return {"histogram": strongest.histogram[layer, head].tolist(), "passages": passages}
