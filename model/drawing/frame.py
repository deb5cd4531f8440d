"""The binary frame that brings the page's rows of a text up to date. ``look/state/run_fetcher.mjs`` decodes it.

    bytes            content
    4                length of the header, an unsigned little-endian integer
    length           the header, a JSON object in UTF-8 (below)
    4 * P * M        float32, little-endian: M numbers (``metrics.FRAME_MEASURES``) of each of P pictures
    the rest         uint8: the thumbnails of all pictures, one after the other; of each the cells of its lower triangle
                     from pooled row ``first`` on, row after row, as 255 * sqrt(weight)

Header: ``rows`` (how many rows there are now), ``factor`` (tokens in a thumbnail cell), ``first`` (the first pooled row
that follows), ``start`` (the first row that was asked for), ``pictures`` (P), and from token ``start`` on ``tokens``
(texts), ``ids`` and ``logprobs`` (null where unknown), and ``bytes``, by their places in ``tokens``, of those that hold
only a part of a character; left out if there is none. There may be more tokens than rows.
"""

import json
import struct
from collections.abc import Sequence

from torch import Tensor

from ..tokenizer import Token
from .thumbnails import ThumbnailRows


def encode_frame(
    thumbnails: ThumbnailRows, metrics: Tensor, start: int, tokens: Sequence[Token], logprobs: Sequence[float | None]
) -> bytes:
    """The frame of the rows from ``start`` on, with the tokens from there on and their log-probabilities."""
    header = {
        "rows": thumbnails.n_rows,
        "factor": thumbnails.factor,
        "first": thumbnails.first,
        "start": start,
        "pictures": len(metrics),
        "tokens": [token.text for token in tokens],
        "ids": [token.id for token in tokens],
        "logprobs": logprobs,
    }
    if parts := {i: token.byte_text for i, token in enumerate(tokens) if token.byte_text}:
        header["bytes"] = parts
    content = json.dumps(header).encode()
    return struct.pack("<I", len(content)) + content + metrics.numpy().tobytes() + thumbnails.cells
