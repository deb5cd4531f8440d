"""The outcomes of requests in the metrics: one name for each error, wherever it ends a request."""

import pytest
from starlette.requests import ClientDisconnect

from model import InputError
from model.errors import Busy, Closed, OutOfTime
from model.lens.progress import Cancelled
from web.api.errors import ApiError
from web.prometheus import outcome_of
from web.serving.budget import NoRoom
from web.serving.engine_client import EngineLost


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Busy(), "busy"),
        (NoRoom(), "busy"),
        (ApiError(429, "Too many large bodies."), "busy"),
        (OutOfTime("This took longer."), "deadline"),
        (Cancelled(), "cancelled"),
        (ClientDisconnect(), "cancelled"),
        (InputError("prompt", "The prompt is empty."), "refused"),
        (ApiError(413, "The body is too large."), "refused"),
        (Closed(), "refused"),
        (EngineLost("The engine is gone."), "failed"),
        (FloatingPointError("NaN"), "failed"),
    ],
)
def test_an_error_has_one_outcome(error: Exception, outcome: str) -> None:
    assert outcome_of(error) == outcome
