"""The binary frame that sends the page the rows of a text that it lacks. ``look/state/run_fetcher.mjs`` decodes it.

    bytes            content
    4                length of the header, an unsigned little-endian integer
    length           the header, a JSON object in UTF-8 (below)
    4 * P * M        float32, little-endian: M numbers (``model.view.metrics.FRAME_MEASURES``) of each of P pictures
    the rest         uint8: the thumbnails of all pictures, one after the other; of each the cells of its lower triangle
                     from pooled row ``first`` on, row after row, as 255 * sqrt(weight)

Header: ``rows`` (how many rows there are now), ``factor`` (tokens in a thumbnail cell), ``first`` (the first pooled row
that follows), ``start`` (the first row that was asked for), ``pictures`` (P), and from token ``start`` on ``tokens``
(texts), ``ids`` and ``logprobs`` (null where unknown). There may be more tokens than rows.
"""

import json
import struct

from .run import Run


def encode_frame(run: Run, start: int, until: int | None = None) -> bytes:
    """The rows of a run that a browser with the first ``start`` lacks, up to about row ``until`` if that is given."""
    thumbnails = run.recording.thumbnails(start, until)
    metrics = run.recording.metrics(until)
    n_tokens = len(run.ids)  # read after the rows: the writer may add to both meanwhile, and no row may lack its token
    tokens = run.loaded.tokens(run.ids[start:n_tokens])
    header = {
        "rows": thumbnails.n_rows,
        "factor": thumbnails.factor,
        "first": thumbnails.first,
        "start": start,
        "pictures": run.recording.n_pictures,
        "tokens": [token.text for token in tokens],
        "ids": [token.id for token in tokens],
        "logprobs": run.logprobs[start:n_tokens],
    }
    content = json.dumps(header).encode()
    return struct.pack("<I", len(content)) + content + metrics.numpy().tobytes() + thumbnails.cells
