"""Metrics, sorting, means and rollout, colour scales, the three views of a head, and locked cells."""

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

import model
from helpers import also_slow
from helpers.page import (
    check_number,
    expect_drawn,
    is_shown_as,
    module,
    open_head,
    readout,
    show_summaries,
    spoken,
    text,
)
from helpers.server import Server, save_tiny
from model import LoadedModel
from model.drawing.pictures import picture_index
from model.drawing.recording import Recording
from model.drawing.thumbnails import tile

PROMPT = "What light through yonder window breaks?"


@pytest.fixture
def written(write_once: Callable[[str, int], Any]) -> Any:
    """The page with a written text, all of it drawn."""
    page = write_once(PROMPT, 20)
    expect(text(page)).to_have_text(re.compile("^" + re.escape(PROMPT)))
    expect(page.locator(".hs-board")).to_have_attribute("data-count", "60")
    return page


def recording(page: Any, loaded: LoadedModel) -> Recording:
    """All pictures of the text on the page, recomputed."""
    attention = loaded.trace(text(page).text_content()).attention
    made = Recording(loaded.config.n_layer, loaded.config.n_head, attention.shape[-1])
    made.extend(attention)
    return made


def rows_of(made: Recording, layer: int, column: int) -> torch.Tensor:
    """A picture as ``(T, T)``."""
    flat = torch.frombuffer(bytearray(made.picture(layer, column, 0, torch.zeros)), dtype=torch.float32)
    weights = torch.zeros(made.n_rows, made.n_rows)
    weights[torch.ones(made.n_rows, made.n_rows).tril().bool()] = flat
    return weights


def names(page: Any) -> list[str]:
    """The accessible names of the thumbnails of heads, in the order shown."""
    found = page.locator(".hs-grid button").evaluate_all("buttons => buttons.map((button) => button.ariaLabel)")
    return [name for name in found if re.match(r"\d+·\d+", name)]


# The page's own modules compute the ramp step of a pixel.
LOAD_PALETTE = f"const {{ palette }} = await import({module('lib/drawing/palette.mjs')});\n"
STEPS = (
    f"async (canvas) => {{ {LOAD_PALETTE}"
    + """
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const { looks } = palette();
    return Array.from(new Uint32Array(data.buffer), (pixel) => pixel && looks.pixels.indexOf(pixel));
}"""
)


METRICS = ["entropy", "mean distance", "on the first token", "on the previous token"]


@pytest.mark.slow
@pytest.mark.parametrize("metric", [METRICS[0], *also_slow(*METRICS[1:])])
def test_every_thumbnail_says_its_metric_and_can_be_sorted_by_it(written: Any, server: Server, metric: str) -> None:
    loaded = server.services.served.models["tiny"]
    written.get_by_label("Metric of the heads").select_option(label=metric)
    place = METRICS.index(metric)
    made = recording(written, loaded)
    expected = {
        f"{layer}·{head}": float(made.metrics()[picture_index(layer, head, 3, 4), place])
        for layer in range(3)
        for head in range(4)
    }
    shown = {}
    for name in names(written):
        found = re.fullmatch(rf"(\d+·\d+), {metric} (\d+\.\d+)( bits| tokens)?(, role: .+)?", name)
        assert found, name
        shown[found[1]] = float(found[2])
    assert shown == pytest.approx(expected, abs=0.006)
    least, most = (min(shown.values()), max(shown.values()))
    ends = re.search(
        r"Bar: from ([\d.]+) to ([\d.]+)( bits| tokens)? in this text\.$",
        written.locator(".hs-tile-legend").text_content(),
    )
    assert ends and float(ends[2]) == pytest.approx(most, abs=0.06)
    assert float(ends[1]) == pytest.approx(min(least, most - 1) if metric == "entropy" else 0, abs=0.06)
    for label, sign in (("lowest first", -1), ("highest first", 1)):
        written.get_by_label("Order of the heads").select_option(label=label)
        order = [re.match(r"\d+·\d+", name)[0] for name in names(written)]
        values = [sign * expected[name] for name in order]
        assert len(order) == 12 and all(a >= b - 1e-4 for a, b in itertools.pairwise(values))
    least = written.get_by_label("Smallest value of the metric")
    least.fill("0.9")
    assert len(names(written)) == sum(value >= 0.9 * max(values) for value in values) < 12
    least.fill("0")
    most = written.get_by_label("Largest value of the metric")
    most.fill("0.9")
    assert len(names(written)) == sum(value <= 0.9 * max(values) for value in values) < 12
    most.fill("0")
    assert min(values) > 0
    expect(written.get_by_text("No head is in this range.")).to_be_visible()


def test_a_thumbnail_has_the_models_weights(written: Any, server: Server) -> None:
    """The largest weight of each tile, by the chosen scale; nothing above the diagonal, as in the matrix."""
    made = recording(written, server.services.served.models["tiny"])
    show_summaries(written)
    for scale, part in (("square root", torch.sqrt), ("linear", torch.clone)):
        written.get_by_label("Colour scale").select_option(label=scale)
        for name, layer, column in (
            ("0·3", 0, 3),
            ("2·1", 2, 1),
            ("Mean of layer 1", 1, 4),
            ("Mean of all heads", 3, 4),
        ):
            steps = written.get_by_role("button", name=f"{name},").locator("canvas").evaluate(STEPS)
            side = round(len(steps) ** 0.5)
            factor = next(factor for factor in (1, 2, 3, 4) if tile(59, factor) + 1 == side)
            expected = torch.zeros(side, side)
            weights = rows_of(made, layer, column)
            for query, key in weights.nonzero().tolist():
                place = tile(query, factor), tile(key, factor)
                expected[place] = max(expected[place], part(weights[query, key]))
            shown = torch.tensor(steps).view(side, side) / 255
            assert float((shown - expected).abs().max()) < 0.01


@pytest.mark.parametrize(
    ("name", "layer", "column"),
    [("Rollout of layer 2", 2, 5), *also_slow(("Mean of layer 1", 1, 4), ("Mean of all heads", 3, 4))],
)
def test_means_and_rollout_are_pictures_like_the_others(
    written: Any, server: Server, name: str, layer: int, column: int
) -> None:
    show_summaries(written)
    written.get_by_role("button", name=f"{name}, entropy").click()
    expect(written.get_by_role("region", name=f"Attention weights, {spoken(name)}")).to_be_visible()
    expect(written.locator(".hs-number")).not_to_be_empty()
    weights = rows_of(recording(written, server.services.served.models["tiny"]), layer, column)
    query, key, shown = readout(written)
    assert is_shown_as(float(weights[query, key]), shown)
    written.get_by_role("button", name="Show as a table").last.click()
    row = written.get_by_role("table", name=f"Attention weights, {spoken(name)}").locator("tbody tr").nth(7)
    cells = [float(cell) for cell in row.locator("td").all_text_contents() if cell]
    assert all(is_shown_as(float(weights[7, key]), cell) for key, cell in enumerate(cells)) and len(cells) == 8
    written.get_by_role("button", name="Show as a table").last.click()  # as it was


STEP_AT = (
    f"async ([query, key]) => {{ {LOAD_PALETTE}"
    + """
    const canvas = document.querySelector('.hs-board canvas');
    const n = document.querySelectorAll('.hs-writing .hs-token').length;
    const ratio = window.devicePixelRatio, box = canvas.clientWidth;
    const margin = Number(canvas.parentElement.dataset.margin), cell = (box - margin) / n;
    const at = (i) => Math.floor((margin + (i + 0.5) * cell) * ratio);
    const [pixel] = new Uint32Array(canvas.getContext('2d').getImageData(at(key), at(query), 1, 1).data.buffer);
    return palette().looks.pixels.indexOf(pixel);
}"""
)


def ramp(page: Any, name: str) -> list[str]:
    """The colours of a ramp, by step."""
    found: list[str] = page.evaluate(f"async (name) => {{ {LOAD_PALETTE} return palette()[name].css; }}", name)
    return found


@pytest.mark.parametrize("scale", ["logarithmic", *also_slow("square root", "linear", "row maximum")])
def test_a_scale_changes_colours_and_no_number(written: Any, server: Server, scale: str) -> None:
    loaded = server.services.served.models["tiny"]
    written.get_by_label("Colour scale").select_option(label=scale)
    check_number(written, loaded)
    layer, head = open_head(written)
    weights = rows_of(recording(written, loaded), layer, head)

    shown = weights[weights > 0]
    decades = next(n for n in range(2, 13) if float((shown <= 10**-n).float().mean()) <= 0.02)  # of its logarithms

    def expected(query: int, key: int, first: int = 0) -> int:
        weight = float(weights[query, key])
        if scale == "square root":
            part = math.sqrt(weight)
        elif scale == "logarithmic":
            part = 1 + math.log10(max(weight, 1e-13)) / decades
        else:
            part = weight / float(weights[query, first : query + 1].max()) if scale == "row maximum" else weight
        return round(255 * min(max(part, 0), 1))

    for query, key in ((55, 0), (55, 13), (50, 41), (59, 58), (5, 5)):
        assert abs(written.evaluate(STEP_AT, [query, key]) - expected(query, key)) <= 1
    written.get_by_label("hide the first token").check()
    assert written.evaluate(STEP_AT, [55, 0]) == 0
    assert abs(written.evaluate(STEP_AT, [55, 13]) - expected(55, 13, first=1)) <= 1
    assert readout(written)[1] > 0
    check_number(written, loaded)
    written.get_by_label("Smallest weight drawn").fill("0.2")  # its square root
    for query, key in ((55, 13), (50, 41), (59, 58)):
        assert (written.evaluate(STEP_AT, [query, key]) == 0) == (
            weights[query, key] < 0.04 or expected(query, key) == 0
        )
    check_number(written, loaded)


@pytest.mark.slow
def test_a_locked_token_stays_locked_over_heads_and_views(written: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    tokens = written.locator(".hs-writing .hs-token")
    tokens.nth(33).click(modifiers=["Shift"])
    for name, view in (("0·2", "Text"), ("2·1", "Lines"), ("1·0", "Matrix")):
        written.get_by_role("button", name=f"{name}, entropy").click()
        written.get_by_role("button", name=view, exact=True).click()
        written.mouse.move(5, 5)
        expect(written.get_by_role("region", name=f"Attention weights, {spoken(name)}")).to_be_visible()
        expect(tokens.nth(33)).to_have_class(re.compile("hs-query"))
    expect(written.locator(".hs-readout")).to_have_text(re.compile(" 33, query"))
    check_number(written, loaded)
    tokens.nth(20).click(modifiers=["Shift"])
    expect(written.locator(".hs-writing .hs-query")).to_have_count(2)
    assert written.evaluate("getSelection().toString()") == ""
    tokens.nth(20).click(modifiers=["Shift"])
    written.mouse.move(5, 5)
    expect(written.locator(".hs-writing .hs-query")).to_have_count(1)
    tokens.nth(33).click(modifiers=["Shift"])
    written.mouse.move(5, 5)
    expect(tokens.nth(33)).not_to_have_class(re.compile("hs-query"))


def test_the_text_of_a_head_is_coloured_both_ways(written: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    written.get_by_role("button", name="0·1, entropy").click()
    written.get_by_role("button", name="Text", exact=True).click()
    view = written.get_by_role("group", name="Text of the open head")
    spans = view.locator(".hs-token")
    spans.nth(45).click(modifiers=["Shift"])
    written.mouse.move(5, 5)
    expect_drawn(written)
    weights = loaded.trace(text(written).text_content()).attention[0, 1]
    ramps = [ramp(written, "looks"), ramp(written, "seen")]
    coloured = 0
    for i in (0, 3, 30, 44, 46, 50, 58):
        weight = float(weights[45, i] if i <= 45 else weights[i, 45])
        step = round(255 * math.sqrt(weight))
        found = spans.nth(i).evaluate("e => e.style.getPropertyValue('--hs-shade')").replace(" ", "")
        near = [ramps[i > 45][s] for s in (step - 1, step, step + 1) if 12 < s < 256]
        assert found in near or (found == "" and step <= 13), (i, found, step)
        coloured += bool(found)
    assert coloured >= 2


def test_surprise_colours_the_whole_text(written: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    content = text(written).text_content()
    logprobs = loaded.trace(content).logits.log_softmax(-1)
    ids = loaded.tokenizer.encode(content)
    written.get_by_label("colour by surprise").check()
    expect(written.get_by_text("surprise in bits")).to_be_visible()
    tokens = written.locator(".hs-writing .hs-token")
    colours = ramp(written, "surprise")
    assert tokens.nth(0).evaluate("e => e.style.getPropertyValue('--hs-shade')") == ""  # nothing came before it
    for i in (1, 10, 39, 45, 59):
        bits = -float(logprobs[i - 1, ids[i]]) / math.log(2)
        assert tokens.nth(i).get_attribute("title").endswith(f": probability {2**-bits:.4f}, {bits:.2f} bits")
        step = min(round(255 * bits / 8), 255)
        found = tokens.nth(i).evaluate("e => e.style.getPropertyValue('--hs-shade')").replace(" ", "")
        near = [colours[s] for s in (step - 1, step, step + 1) if 12 < s < 256]
        assert found in near or (found == "" and step <= 13), (i, found, step)


@pytest.mark.slow
def test_attention_that_looks_untrained_is_called_so(
    browser: Any, launch: Callable[..., Server], tmp_path: Path
) -> None:
    folder = save_tiny(tmp_path / "flat")
    loaded = model.load(folder)
    for block in loaded.gpt.h:
        torch.nn.init.normal_(block.attn.c_attn.weight, std=0.001)
    loaded.save(folder)
    server = launch(folder)
    page = browser.new_page()
    page.goto(server.url)
    expect(page.get_by_text("this model is untrained")).to_be_visible()


def test_trained_looking_attention_is_not(page: Any) -> None:
    expect_drawn(page)
    expect(page.get_by_text("looks untrained")).to_have_count(0)
