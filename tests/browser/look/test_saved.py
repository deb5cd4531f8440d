"""HTML files: opened from disk and in a notebook's frame, offline, they show the numbers of the trace."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

import model
from helpers import also_slow
from helpers.models import tiny_model
from helpers.page import open_head, point, spoken
from helpers.server import CHARACTERS, Server
from model import AttentionView, LoadedModel, Trace
from model.tokenizer import CharTokenizer

HOSTILE = "</script><b>'\"&\u2028${x} to be"


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model(tokenizer=CharTokenizer.train(CHARACTERS + "\u2028"), n_layer=3, context_length=64)


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """A page without a network, on which nothing may fail or be requested but the file."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, offline=True)
    heard: list[str] = []
    # The script with which the tests prepare every page reads the storage that such a frame does not have.
    page.on("pageerror", lambda error: heard.append(str(error)) if "localStorage" not in str(error) else None)
    page.on("console", lambda said: heard.append(said.text) if said.type in ("error", "warning") else None)
    page.on("request", lambda request: heard.append(request.url) if "file:" not in request.url else None)
    yield page
    assert not heard


def readout(part: Any) -> tuple[int, int, str]:
    shown = part.locator(".hs-readout").text_content()
    found = re.match(r"“.+?” (\d+), query looks at “.+?” (\d+), key([\d.e-]+?)(?:next comes|$)", shown, re.DOTALL)
    assert found, shown
    return int(found[1]), int(found[2]), found[3]


def open_file(page: Any, trace: Trace | AttentionView, path: Path, *, exact: bool = False) -> None:
    trace.to_html(path, exact=exact)
    page.goto(path.as_uri())
    expect(page.locator(".hs-number")).not_to_be_empty()


@pytest.mark.parametrize("exact", [False, *also_slow(True)])
def test_a_file_shows_the_numbers_of_the_trace(visit: Any, loaded: LoadedModel, tmp_path: Path, exact: bool) -> None:
    trace = loaded.trace(HOSTILE)
    open_file(visit, trace, tmp_path / "text.html", exact=exact)
    expect(visit.get_by_role("group", name="Text", exact=True)).to_have_text(HOSTILE)
    digits = "float32 weights" if exact else "half precision, shown to three digits"
    expect(visit.get_by_text(digits)).to_be_visible()
    for name, (layer, head) in {"2·1": (2, 1), "0·0": (0, 0)}.items():
        visit.get_by_role("button", name=re.compile(f"^{name},")).click()
        panel = visit.get_by_role("region", name=f"Attention weights, {spoken(name)}")
        for query, key in ((len(trace.tokens) - 1, 3), (9, 2), (4, 4)):
            point(panel, query, key)
            at_query, at_key, shown = readout(panel)
            weight = float(trace.attention[layer, head, query, key])
            assert (at_query, at_key) == (query, key)
            assert abs(float(shown) - weight) <= (0.00006 if exact and weight >= 0.001 else 0.006 * weight)
            assert exact or len(shown.partition("e")[0].replace(".", "").lstrip("0")) == 3
    assert open_head(visit) == (0, 0)


def test_the_bars_follow_the_step_and_the_temperature(visit: Any, loaded: LoadedModel, tmp_path: Path) -> None:
    trace = loaded.generate("To be", max_new_tokens=20, seed=1, record=True).trace()
    open_file(visit, trace, tmp_path / "text.html")
    step = visit.get_by_role("slider", name="Step")
    expect(step).to_be_enabled()
    step.fill("9")
    bars = visit.get_by_role("region", name="Next token")
    written = bars.locator(".hs-is-written td")
    probability = float(trace.logits[8].softmax(-1)[trace.tokens[9].id])
    expect(bars.locator("caption")).to_contain_text("Token 9, after")
    assert abs(float(written.nth(1).text_content()) - probability) <= 0.00006
    bars.get_by_label("temperature, as a number", exact=True).fill("0.5")
    warm = float((trace.logits[8] / 0.5).softmax(-1)[trace.tokens[9].id])
    assert abs(float(written.nth(0).text_content()) - warm) <= 0.00006


@pytest.mark.slow
def test_cells_of_a_notebook(visit: Any, loaded: LoadedModel, tmp_path: Path) -> None:
    """Several frames that may only run scripts, as notebooks show them, in light and dark."""
    traces = [loaded.trace("To be"), loaded.generate("or not", max_new_tokens=5, seed=1, record=True).trace()]
    cells = "".join(trace._repr_html_() or "" for trace in traces)
    (tmp_path / "notebook.html").write_text(
        f"<!DOCTYPE html><meta charset=utf-8><body>{cells}</body>", encoding="utf-8"
    )
    visit.emulate_media(color_scheme="dark")
    visit.goto((tmp_path / "notebook.html").as_uri())
    for i, trace in enumerate(traces):
        frame = visit.frame_locator("iframe").nth(i)
        text = "".join(token.text for token in trace.tokens)
        expect(frame.get_by_role("group", name="Text", exact=True)).to_have_text(text)
        expect(frame.locator(".hs-grid canvas").first).to_be_visible()
        expect(frame.locator("body")).to_have_class(re.compile("dark"))
    visit.emulate_media(color_scheme="light")
    expect(frame.locator("body")).not_to_have_class(re.compile("dark"))


def test_the_page_saves_its_view(page: Any, server: Server, visit: Any, tmp_path: Path) -> None:
    """With the open head, the answer that is open, and the choices; none of it needs the server."""
    page.get_by_role("button", name=re.compile("^2·1,")).click()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("button", name=re.compile("^Which heads does this text need")).click()
    answer = page.get_by_role("region", name="Ask", exact=True)
    expect(answer.locator(".hs-plain b")).not_to_be_empty()
    said = answer.locator(".hs-plain").text_content()
    page.get_by_role("button", name="Save this picture").click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="HTML", exact=True).click()
    assert waiting.value.suggested_filename == "tiny_L2H1.html"
    waiting.value.save_as(tmp_path / "saved.html")
    server.wait_until_idle()
    visit.goto((tmp_path / "saved.html").as_uri())
    expect(visit.locator(".hs-number")).not_to_be_empty()
    expect(visit.get_by_role("region", name="Attention weights, head 1 of layer 2")).to_be_visible()
    saved = visit.get_by_role("region", name="Ask", exact=True)
    expect(saved.locator(".hs-plain")).to_have_text(said)
    expect(saved.get_by_role("button", name="All questions")).to_be_hidden()
    texts = [each.get_by_role("group", name="Text", exact=True).text_content() for each in (page, visit)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("about", ["a set", *also_slow("own prompts", "a long text")])
def test_an_answer_about_other_texts_is_saved_with_them(
    page: Any, server: Server, visit: Any, tmp_path: Path, about: str
) -> None:
    page.get_by_role("button", name="Ask", exact=True).click()
    answer = page.get_by_role("region", name="Ask", exact=True)
    if about == "a long text":
        answer.get_by_role("button", name=re.compile("^Where does this head fire")).click()
        answer.get_by_text("Read another text").click()
        answer.get_by_role("textbox").fill("To be, or not to be: that is the question. " * 3)
        answer.get_by_role("button", name="Read this").click()
    else:
        answer.get_by_role("button", name=re.compile("^What holds over many prompts")).click()
        answer.get_by_label("Measure").select_option("previous")
    if about == "a set":
        answer.get_by_label("Set of prompts").select_option("verbs")
    if about == "own prompts":
        answer.get_by_label("Set of prompts").select_option("own")
        answer.get_by_role("textbox").fill("To be\n\nor not")
        answer.get_by_role("button", name="Use these").click()
        expect(answer.get_by_role("table", name="Every prompt").locator("tbody tr")).to_have_count(2)
    expect(answer.locator(".hs-plain b")).not_to_be_empty(timeout=30_000)  # many prompts are read for it
    # A file does not say how its text came in.
    said = answer.locator(".hs-plain").text_content().replace("the pasted text", "the text that was read")
    rows = answer.get_by_role("table", name="Every prompt").locator("tbody tr").all_text_contents()
    page.get_by_role("button", name="Save this picture").click()
    with page.expect_download() as waiting:
        page.get_by_role("menuitem", name="HTML", exact=True).click()
    waiting.value.save_as(tmp_path / "saved.html")
    server.wait_until_idle()
    visit.goto((tmp_path / "saved.html").as_uri())
    saved = visit.get_by_role("region", name="Ask", exact=True)
    expect(saved.locator(".hs-plain")).to_have_text(said)
    assert saved.get_by_role("table", name="Every prompt").locator("tbody tr").all_text_contents() == rows
    if about != "a long text":
        choice = saved.get_by_label("Set of prompts")
        assert choice.evaluate("e => e.selectedOptions[0].textContent.length") > 3
        saved.get_by_label("Measure").select_option("knockout")
        expect(saved.get_by_text("This file does not have that answer")).to_be_visible()


@pytest.mark.slow
def test_attention_of_an_encoder(visit: Any, tmp_path: Path) -> None:
    """Whole squares, each cell of which has its number, and nothing that needs a model."""
    attention = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0)).mul(2).softmax(-1)
    open_file(visit, model.view(attention, [f" w{i}" for i in range(12)]), tmp_path / "text.html")
    visit.get_by_role("button", name=re.compile("^1·2,")).click()
    panel = visit.get_by_role("region", name="Attention weights, head 2 of layer 1")
    for query, key in ((2, 9), (9, 2), (0, 11), (11, 11)):
        point(panel, query, key)
        at_query, at_key, shown = readout(panel)
        assert (at_query, at_key) == (query, key)
        assert abs(float(shown) - float(attention[1, 2, query, key])) <= 0.006 * float(attention[1, 2, query, key])
    expect(panel.locator(".hs-readout")).to_be_visible()
    expect(visit.get_by_text("without a model")).to_be_visible()
    expect(visit.get_by_role("region", name="Next token")).to_be_hidden()
    expect(visit.get_by_text("next comes")).to_be_hidden()
    panel.get_by_role("button", name="Lines", exact=True).click()
    panel.get_by_role("button", name="Text", exact=True).click()
    visit.get_by_role("button", name="This step", exact=True).click()
    expect(visit.locator(".hs-strips")).to_be_visible()


@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (4, 200), (40, 3)])
def test_cross_attention(visit: Any, tmp_path: Path, queries: int, keys: int) -> None:
    """A rectangle of queries and keys, each cell of which has its number."""
    attention = torch.randn(2, 3, queries, keys, generator=torch.Generator().manual_seed(0)).mul(2).softmax(-1)
    texts = [f"q{i}" for i in range(queries)], [f"k{i}" for i in range(keys)]
    open_file(visit, model.view(attention, *texts, separator=" "), tmp_path / "text.html", exact=True)
    expect(visit.get_by_role("group", name="Text", exact=True)).to_have_text(" ".join([*texts[1], *texts[0]]))
    panel = visit.get_by_role("region", name=re.compile("^Attention weights"))
    layer, head = open_head(visit)
    board = panel.locator(".hs-board")
    box, margin = board.bounding_box(), float(board.get_attribute("data-margin"))
    assert box["height"] <= box["width"] + 1
    for query, key in ((0, 0), (queries - 1, keys - 1), (3, 2)):
        place = [(i + 0.5) / n for i, n in ((key, keys), (query, queries))]
        x, y = (margin + share * (box[side] - margin) for share, side in zip(place, ("width", "height"), strict=True))
        board.hover(position={"x": x, "y": y})
        at_query, at_key, number = readout(panel)
        assert (at_query, at_key) == (keys + query, key)
        assert abs(float(number) - float(attention[layer, head, query, key])) <= 0.00006
    visit.get_by_role("group", name="Text", exact=True).locator(".hs-token").first.hover()
    expect(panel.locator(".hs-readout")).to_contain_text("is a key, and looks at nothing")
    panel.get_by_role("button", name="Lines", exact=True).click()
    expect(panel.locator(".hs-lines canvas")).to_be_visible()
    assert panel.locator(".hs-floor").bounding_box()["height"] < 17 * (max(queries, keys) + 1)
    visit.get_by_role("button", name="This step", exact=True).click()
    expect(visit.locator(".hs-strips")).to_be_visible()
