"""The model of most tests in this folder."""

import pytest

from helpers.models import tiny_model
from model import LoadedModel


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    """3 layers of 2 heads, with a context of 64."""
    return tiny_model(n_layer=3, context_length=64)
