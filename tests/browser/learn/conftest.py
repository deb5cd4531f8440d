"""The tests of Learn share a page."""

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.learn_page import LAST_PAGE, settle
from helpers.server import Server
from helpers.tabs import HAS_FAILED, KeptTab, Profiles


class KeptLearnTab(KeptTab):
    """Shows the first rung of Learn, as on a first visit."""

    with_gradio = True

    def visit(self, hash: str = "#learn/1") -> bool:
        is_new = super().visit(hash)
        if is_new:
            settle(self.page, 1)
        return is_new

    def reset(self) -> None:
        self.go_to(f"/#learn/{LAST_PAGE}")
        settle(self.page, LAST_PAGE)
        self.page.locator(".hl-lesson button").filter(has_text="Start over").click()
        settle(self.page, 1)


@pytest.fixture(scope="package")  # an open page costs time even while no test uses it
def kept_learn_tab(profiles: Profiles, server: Server) -> Iterator[KeptLearnTab]:
    kept = KeptLearnTab(profiles, server)
    yield kept
    kept.leave(keep_tab=True)


@pytest.fixture
def page(request: pytest.FixtureRequest, kept_learn_tab: KeptLearnTab) -> Iterator[Any]:
    """The first rung of Learn, as on a first visit; otherwise like ``page`` of the other tests."""
    kept_learn_tab.visit()
    yield kept_learn_tab.page
    kept_learn_tab.end_test(request.node.stash.get(HAS_FAILED, False))
