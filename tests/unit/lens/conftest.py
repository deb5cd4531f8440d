"""The model of most tests in this folder."""

import pytest

from helpers.models import tiny_model
from model import LoadedModel


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    """3 layers of 4 heads with 6 numbers each."""
    return tiny_model(n_layer=3, n_embd=24, n_head=4)
