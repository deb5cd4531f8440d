"""The tests of Learn share a page."""

from typing import Any

import pytest


@pytest.fixture
def page(learn_page: Any) -> Any:
    """The first rung of Learn, as on a first visit."""
    return learn_page
