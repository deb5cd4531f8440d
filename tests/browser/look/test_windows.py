"""A model whose first layer has a window: where a query does not look, pictures are blank, not zero."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import model
from helpers.page import change_settings, expect_drawn, expect_status, write
from helpers.server import Server, save_tiny
from helpers.tabs import opened_page

WINDOW, N_TOKENS = 4, 33
# Whether each pixel has a colour, one for each cell.
COLOURED = """(canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return Array.from({ length: data.length / 4 }, (_, i) => data[4 * i + 3] > 0);
}"""
# The same of the cells of the opened head, at their centres, whose canvas has a margin.
BOARD = f"""(canvas) => {{
    const margin = Number(canvas.parentElement.dataset.margin), cell = (canvas.clientWidth - margin) / {N_TOKENS};
    const context = canvas.getContext('2d'), ratio = window.devicePixelRatio;
    const at = (i) => Math.floor((margin + (i % {N_TOKENS} + 0.5) * cell) * ratio);
    const alpha = (i) => context.getImageData(at(i), at(Math.floor(i / {N_TOKENS})), 1, 1).data[3];
    return Array.from({{ length: {N_TOKENS**2} }}, (_, i) => alpha(i) > 0);
}}"""


def seen(window: int) -> list[bool]:
    return [0 <= query - key < window for query in range(N_TOKENS) for key in range(N_TOKENS)]


def check_pictures(page: Any) -> None:
    """Every tile, and the last head of each layer once it is open."""
    for layer, window in enumerate((WINDOW, N_TOKENS)):
        for head in range(2):
            tile = page.locator(f".hs-grid [data-picture='{layer},{head}']")
            assert tile.locator("canvas").evaluate(COLOURED) == seen(window)
        tile.click()
        page.wait_for_function(
            f"expected => String(({BOARD})(document.querySelector('.hs-board canvas'))) === expected",
            arg=",".join(str(each).lower() for each in seen(window)),
        )


@pytest.mark.slow
def test_cells_outside_the_window_are_blank(browser: Any, launch: Callable[..., Server], tmp_path: Path) -> None:
    """On the page, and in a saved file of the same text."""
    folder = save_tiny(tmp_path / "windows", windows=(WINDOW, None), qkv_bias=False, scale_attn_weights=False)
    page, complaints = opened_page(browser, launch(folder).url)
    expect_drawn(page)
    change_settings(page, seed=1, length=20)
    write(page, "Hello there, ")
    expect_status(page, "20 tokens written")
    expect_drawn(page)
    check_pictures(page)
    complaints.check()
    path = tmp_path / "text.html"
    model.load(folder, device="cpu").trace("Hello there, which has 33 letters").to_html(path)
    page.goto(path.as_uri())
    check_pictures(page)
