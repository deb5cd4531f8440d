"""The rows of a run that a browser lacks, as a frame (``model/drawing/frame.py``)."""

from model.drawing import frame

from .run import Run


def encode_frame(run: Run, start: int, until: int | None = None) -> bytes:
    """The rows of a run that a browser with the first ``start`` lacks, up to about row ``until`` if that is given."""
    thumbnails, metrics = run.recording.thumbnails(start, until), run.recording.metrics(until)
    n_tokens = len(run.ids)  # read after the rows: the writer may add to both meanwhile, and no row may lack its token
    tokens = run.loaded.tokens(run.ids[start:n_tokens])
    return frame.encode_frame(thumbnails, metrics, start, tokens, run.logprobs[start:n_tokens])
