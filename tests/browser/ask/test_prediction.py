"""The questions about one prediction: the page shows the numbers that the Python functions compute."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import ask_panel, open_head, readout, text
from helpers.server import Server
from model.lens import one_head
from model.lens.attribution import attribution
from model.lens.ledger import ledger
from model.lens.logit_lens import logit_lens
from model.lens.text_pass import TextPass


@pytest.fixture
def passed(written: Any, server: Server) -> TextPass:
    loaded = server.served.models["tiny"]
    return TextPass(loaded.gpt, loaded.tokenizer.encode(text(written).text_content()))


def ask(page: Any, title: str) -> Any:
    if ask_panel(page).is_hidden():
        page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    else:
        ask_panel(page).get_by_role("button", name="All questions").click()
    ask_panel(page).get_by_role("button", name=re.compile(re.escape(title))).click()
    return ask_panel(page)


def table(page: Any, name: str) -> list[list[str]]:
    """The cells of a table of the answer, row by row."""
    rows = ask_panel(page).locator(f"table[data-table='{name}'] tbody tr")
    expect(rows.first).to_be_visible()
    return rows.evaluate_all("(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")


def number(words: str) -> float:
    return float(words.replace("−", "-"))


def test_why_this_token(written: Any, passed: TextPass) -> None:
    box = ask(written, "Why this token?")
    position, token = len(passed.ids) - 2, passed.ids[-1]
    # First compared with the most probable other token: the difference of their logits.
    first, second = passed.logits(position, position + 1)[0].topk(2).indices.tolist()
    other = second if first == token else first
    expect(box.get_by_text("its logit minus that of")).to_be_visible()
    expect(box.get_by_label("Rather than another token")).to_have_value(f"{other}-{position}")
    expected = attribution(passed, position=position, token=token, against=other)
    assert number(table(written, "parts")[-1][2]) == pytest.approx(expected.logit, abs=0.006)
    box.get_by_label("Rather than another token").select_option("none")
    expect(box.get_by_text(": a logit of")).to_be_visible()
    expected = attribution(passed, position=position, token=token)
    rows = table(written, "parts")
    assert [row[0] for row in rows[:3]] == ["embedding", "Layer 0, heads", "Layer 0, MLP"]
    assert number(rows[1][1]) == pytest.approx(float(expected.heads[0].sum()), abs=0.006)
    assert number(rows[2][1]) == pytest.approx(float(expected.mlps[0]), abs=0.006)
    assert number(rows[-1][2]) == pytest.approx(expected.logit, abs=0.006)
    expect(box.get_by_text("recomputed = model")).to_be_visible()
    tiles = written.locator(".hs-grid button.hs-has-value")
    names = [re.fullmatch(r"(\d)·(\d), .*: (.*)", tile.get_attribute("aria-label")) for tile in tiles.all()]
    assert len(names) == 12
    for found in names:
        assert found and number(found[3]) == pytest.approx(
            float(expected.heads[int(found[1]), int(found[2])]), abs=1e-4
        )
    # The difference of two logits, for a token in the middle of the generated text.
    text(written).locator("[data-i='45']").click()
    expect(box.get_by_text("at position 44")).to_be_visible()
    other = box.get_by_label("Rather than another token").locator("option").nth(2).get_attribute("value")
    box.get_by_label("Rather than another token").select_option(other)
    expect(box.get_by_text("its logit minus that of")).to_be_visible()
    difference = attribution(passed, position=44, token=passed.ids[45], against=int(other.split("-")[0]))
    assert number(table(written, "parts")[-1][2]) == pytest.approx(difference.logit, abs=0.006)
    box.locator("tr[data-picture]").first.get_by_role("button").click()
    largest = int(difference.heads.abs().argmax())
    assert open_head(written) == divmod(largest, 4)


@pytest.mark.slow
def test_tokens_that_a_head_uses_are_measured_and_open_their_arithmetic(written: Any, passed: TextPass) -> None:
    text(written).locator("[data-i='50']").click()
    box = ask(written, "Which tokens does this head use?")
    layer, head = open_head(written)
    token = passed.ids[50]
    expected = one_head.head(passed, layer=layer, head=head, position=49, token=token)
    box.get_by_role("button", name="Show all 50 tokens").click()
    box.get_by_role("button", name="if cut", exact=True).click()
    keys = box.locator("[data-table=keys] tr[data-key]").evaluate_all(
        "(rows) => rows.map((row) => Number(row.dataset.key))"
    )
    rows = table(written, "keys")
    sizes = []
    for key, row in zip(keys, rows[:-1], strict=True):
        for cell, values in zip(row[1:], (expected.weight, expected.norm, expected.attribution), strict=False):
            assert number(cell) == pytest.approx(float(values[key]), abs=6e-4)
        assert number(row[4]) == pytest.approx(float(expected.loss_change[key]), abs=6e-4)
        sizes.append(abs(float(expected.loss_change[key])))
    assert sizes == sorted(sizes, reverse=True) and sorted(keys) == list(range(50))
    assert number(rows[-1][3]) == pytest.approx(float(expected.attribution.sum()), abs=6e-4)
    chosen = keys[3]
    box.locator(f"[data-table=keys] tr[data-key='{chosen}']").get_by_role("button").click()
    assert readout(written)[:2] == (49, chosen)
    box.get_by_role("button", name="Show the arithmetic").click()
    expect(box.get_by_text("recomputed = model")).to_be_visible()
    unfolded = ledger(passed, layer=layer, head=head, query=49, key=chosen, token=token)
    # If there are many products, only the first are shown at first, and all on demand.
    first = box.locator(".hs-step").first
    shown, n = first.locator(".hl-added:visible"), first.locator(".hl-added").count()
    assert n == len(unfolded.query)
    expect(shown).to_have_count(min(n, 6) if n > 8 else n)
    box.get_by_role("button", name="Open every step").click()
    expect(shown).to_have_count(n)
    score, share, part, logit = (number(words) for words in box.locator(".hs-step > div output").all_text_contents())
    assert score == pytest.approx(unfolded.score, abs=1e-4)
    assert share == pytest.approx(float(unfolded.weights[chosen]), abs=1e-4)
    assert part == pytest.approx(unfolded.part, abs=1e-4)
    assert logit == pytest.approx(unfolded.logit, abs=1e-4)
    for i, row in enumerate(table(written, "vectors")):
        assert number(row[1]) == pytest.approx(float(unfolded.query[i]), abs=1e-4)
        assert number(row[5]) == pytest.approx(float(unfolded.weighted[i]), abs=1e-4)


def test_what_each_layer_thought(written: Any, passed: TextPass, server: Server) -> None:
    box = ask(written, "What did each layer expect?")
    expected = logit_lens(passed, top=8)
    tokenizer = server.served.models["tiny"].tokenizer
    expect(box.locator("thead [data-position]")).to_have_count(len(passed.ids))
    marked = box.locator("thead [data-here='true']")
    expect(marked).to_have_attribute("data-position", str(len(passed.ids) - 2))
    *rows, settles = table(written, "readings")
    assert settles[1:] == [f"L{decided - 1}" if decided else "start" for decided in expected.decided.tolist()]
    for row, ids in zip(rows, expected.ids[..., 0].tolist(), strict=True):
        shown = [word.replace("·", " ").replace("↵", "\n") for word in row[1:]]
        assert shown == [tokenizer.decode([token]) for token in ids]
    cell = box.locator("[data-position='44'][data-row='1'] button")
    cell.click()
    expect(marked).to_have_attribute("data-position", "44")
    assert [number(row[1]) for row in table(written, "reading")] == pytest.approx(
        expected.probabilities[1, 44].tolist(), abs=6e-5, rel=6e-3
    )
    expect(box.get_by_text(f"{float(expected.kl[1, 44]):.4f} nats from the model")).to_be_visible()
    cell.press("ArrowRight")
    expect(marked).to_have_attribute("data-position", "45")
    expect(box.get_by_text("at position 45")).to_be_visible()
    assert readout(written)[0] == 45
