"""The selected step: the bars of its next token, the scrubber, and the row of every head."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import (
    change_settings,
    choose_model,
    is_shown_as,
    number_field,
    opened_settings,
    readout,
    show_page,
    stop,
    text,
    write,
)
from helpers.server import Server
from model import LoadedModel
from model.lens.text_pass import TextPass
from model.sampling import SamplingSettings, probabilities

N_PROMPT = len("ROMEO:")
READY = "[aria-busy=false]"


def bars(page: Any, after: str = "") -> list[tuple[int, float, float]]:
    """Id, sampling probability and model probability of each row but the last, once no request is pending."""
    page.locator(f".hs-bars table{READY}").filter(has_text=after).wait_for()
    rows = page.locator(".hs-bars tbody tr[data-id]").evaluate_all(
        "rows => rows.map((row) => [row.dataset.id, ...[...row.cells].slice(1).map((cell) => cell.textContent)])"
    )
    return [(int(token), float(drawn), float(own)) for token, drawn, own in rows]


def check_bars(page: Any, loaded: LoadedModel, token: int, **settings: Any) -> None:
    """The table has the model's numbers for the token at this place of the text on the screen."""
    ids = loaded.parse_prompt(text(page).text_content())
    logits = loaded.trace(ids).logits[token - 1]
    drawn = probabilities(logits, SamplingSettings(**({"temperature": 0.8} | settings)))
    own = logits.double().softmax(-1)
    shown = bars(page, f"Token {token}, after")
    ranked = sorted(range(len(logits)), key=lambda i: -float(logits[i]))[:20]
    assert [row[0] for row in shown] == ranked + ([] if ids[token] in ranked else [ids[token]])
    for place, shown_drawn, shown_own in shown:
        assert is_shown_as(float(drawn[place]), shown_drawn), (place, shown_drawn, float(drawn[place]))
        assert is_shown_as(float(own[place]), shown_own)
    rest = [float(cell) for cell in page.locator(".hs-rest td").all_text_contents()]
    seen = [row[0] for row in shown]
    assert rest == pytest.approx([1 - float(drawn[seen].sum()), 1 - float(own[seen].sum())], abs=1e-4)
    expect(page.locator(".hs-is-written")).to_have_attribute("data-id", str(ids[token]))


def newest_token(page: Any) -> int:
    expect(text(page)).to_have_text(re.compile("^ROMEO:.{20}", re.DOTALL))
    return len(text(page).text_content()) - 1


def go_to(page: Any, step: int) -> None:
    page.get_by_label("Step", exact=True).fill(str(step))


@pytest.mark.slow
def test_bars_show_the_models_probabilities_at_each_step_and_follow_the_settings(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    newest = newest_token(page)
    check_bars(page, loaded, newest)
    for step in (N_PROMPT, 20, newest - 1):
        go_to(page, step)
        check_bars(page, loaded, step)
    # The settings change the bars without a request.
    go_to(page, 12)
    check_bars(page, loaded, 12)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    settings: dict[str, Any] = {}
    values = {"temperature": 1.5, "top-k (0 = all)": 9, "top-p": 0.9, "min-p": 0.3}
    for label, value in values.items():
        with opened_settings(page) as panel:
            number_field(panel, label).fill(str(value))
        settings[label.split(" ")[0].replace("-", "_")] = value
        check_bars(page, loaded, 12, **settings)
    change_settings(page, temperature=0)
    expect(page.locator(".hs-bars tbody tr").first).to_contain_text("1.0000")
    assert all(drawn == 0 for _, drawn, _ in bars(page)[1:])
    assert asked == []


def test_the_scrubber_moves_every_panel(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    newest = newest_token(page)
    scrubber = page.get_by_label("Step", exact=True)
    expect(scrubber).to_have_attribute("min", str(N_PROMPT))
    expect(scrubber).to_have_value(str(newest))
    scrubber.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    step = N_PROMPT + 1
    expect(page.locator(".hs-chosen").first).to_have_attribute("data-i", str(step))
    expect(page.locator(".hs-readout")).to_have_text(re.compile(rf" {step - 1}, query"))
    check_bars(page, loaded, step)
    ids = loaded.parse_prompt(text(page).text_content())
    logprob = TextPass(loaded.gpt, ids).logprobs()[step - 1]
    said = page.locator(".hs-scrubber-status").text_content()
    assert f"token {step} " in said and f"{-logprob / 0.6931471805599453:.2f} bits" in said
    alpha = "canvas => canvas.getContext('2d').getImageData(0, canvas.height - 1, 1, 1).data[3]"
    assert 0 < page.get_by_role("button", name="1·2,").locator("canvas").evaluate(alpha) < 255  # later rows are faded
    page.keyboard.press("End")
    expect(page.locator(".hs-chosen")).to_have_count(0)
    assert page.get_by_role("button", name="1·2,").locator("canvas").evaluate(alpha) == 255
    # It can be dragged, too.
    box = page.get_by_label("Step", exact=True).bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 8, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=8)
    page.mouse.up()
    step = int(page.get_by_label("Step", exact=True).input_value())
    assert abs(step - (N_PROMPT + newest) / 2) <= 2
    check_bars(page, loaded, step)


@pytest.mark.slow
def test_replay_steps_to_the_end_and_can_be_paused(page: Any) -> None:
    newest = newest_token(page)
    go_to(page, newest - 20)  # long enough to see that it plays
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_label("Step", exact=True)).to_have_value(str(newest))
    expect(page.get_by_role("button", name="Replay")).to_be_visible()
    go_to(page, 10)
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_label("Step", exact=True)).not_to_have_value("10")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Replay")).to_be_visible()


@pytest.mark.slow
def test_the_scrubber_while_it_is_written(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    write(page, "But soft")
    slow.gate.release(4)
    scrubber = page.get_by_label("Step", exact=True)
    expect(scrubber).to_have_value("11")
    check_bars(page, slow, 11)
    go_to(page, 9)
    slow.gate.release(2)
    expect(scrubber).to_have_attribute("max", "13")
    expect(scrubber).to_have_value("9")
    check_bars(page, slow, 9)
    go_to(page, 13)
    slow.gate.release()
    expect(scrubber).to_have_value("14")
    check_bars(page, slow, 14)
    stop(page, server)


def test_the_row_of_every_head_at_this_step(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    step = 15
    go_to(page, step)
    page.get_by_role("button", name="This step").click()
    # A panel that is not on the screen has no table and cannot be saved.
    expect(page.get_by_role("button", name="Show heads as a table")).to_have_count(0)
    expect(page.get_by_role("button", name="Save all heads")).to_have_count(0)
    page.get_by_role("button", name="Show this step as a table").click()
    attention = loaded.trace(text(page).text_content()).attention[:, :, step - 1, :step]
    expect(page.locator(f".hs-strips[data-query='{step - 1}']")).to_be_visible()
    rows = page.get_by_role("table", name=re.compile(f"{step - 1} looks at in every head")).locator("tbody tr")
    expect(rows).to_have_count(12)
    for i, row in enumerate(rows.all()):
        name, key, weight, *others = row.locator("th, td").all_text_contents()
        expected = attention[i // 4, i % 4]
        assert name == f"{i // 4}·{i % 4}"
        assert int(key.split("” ")[1]) == int(expected.argmax())
        assert len(others) == step
        for number, shown in zip([expected.max(), *expected], [weight, *others], strict=True):
            assert is_shown_as(float(number), float(shown))
    box = page.locator(".hs-strips").bounding_box()
    page.mouse.move(box["x"] + 52 + (box["width"] - 52) * 3.5 / step, box["y"] + 20 + 4 * 13 + 6 + 2 * 13 + 6)
    said = page.locator(".hs-step-status").text_content()
    assert said.startswith("1·2: ") and "” 3, key" in said
    assert is_shown_as(float(attention[1, 2, 3]), float(said.split(" gets ")[1]))
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("region", name="Attention weights, head 2 of layer 1")).to_be_visible()
    page.locator(".hs-strips").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Attention weights, head 3 of layer 1")).to_be_visible()


def test_a_click_on_a_token_selects_its_step(page: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    newest, tokens = newest_token(page), page.locator(".hs-writing .hs-token")
    for step in (20, 9):
        tokens.nth(step).click()
        expect(page.get_by_label("Step", exact=True)).to_have_value(str(step))
        expect(page.locator(".hs-writing .hs-chosen")).to_have_attribute("data-i", str(step))
        check_bars(page, loaded, step)
        page.mouse.move(5, 5)
        expect(page.locator(".hs-readout")).to_have_text(re.compile(rf" {step - 1}, query"))
    for key, step in (("Home", N_PROMPT), ("ArrowRight", N_PROMPT + 1), ("End", newest), ("ArrowLeft", newest - 1)):
        text(page).press(key)
        expect(page.get_by_label("Step", exact=True)).to_have_value(str(step))
        check_bars(page, loaded, step)
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Pin", exact=True)).to_have_attribute("aria-pressed", "true")
    tokens.nth(30).hover()
    page.mouse.move(5, 5)
    expect(page.locator(".hs-readout")).to_have_text(re.compile(rf" {newest - 2}, query"))


def lock(page: Any, query: int, key: int) -> None:
    """Click a cell of the matrix, and take the pointer away."""
    page.locator(".hs-board").click(position=page.evaluate(CELL, [query, key]))
    page.mouse.move(5, 5)


CELL = """([query, key]) => {
    const board = document.querySelector('.hs-board');
    const margin = Number(board.dataset.margin), cell = (board.clientWidth - margin) / Number(board.dataset.count);
    return { x: margin + (key + 0.5) * cell, y: margin + (query + 0.5) * cell };
}"""


def test_a_locked_cell_takes_every_panel_to_its_row(page: Any, server: Server) -> None:
    """Text, next token, matrix, scrubber and the answers name one position, in what was written and in the prompt."""
    loaded = server.served.models["tiny"]
    go_to(page, 30)
    ask = page.get_by_role("region", name="Ask", exact=True)
    page.get_by_role("button", name="Ask", exact=True).click()
    ask.get_by_role("button", name=re.compile("Why this token?")).click()
    answered = ask.get_by_label("Rather than another token").locator("option").first
    expect(answered).to_have_attribute("value", re.compile(r"^\d+-29$"))
    for query, key in ((20, 7), (2, 1), (20, 3)):
        token = query + 1
        lock(page, query, key)
        check_bars(page, loaded, token)
        assert readout(page)[:2] == (query, key)
        expect(page.locator(".hs-writing .hs-query")).to_have_attribute("data-i", str(query))
        expect(page.locator(".hs-scrubber output")).to_contain_text(f" token {token} ")
        expect(answered).to_have_attribute("value", re.compile(rf"^\d+-{query}$"))
    # A step that is chosen afterwards is another one, and the locked cell says so.
    go_to(page, 12)
    check_bars(page, loaded, 12)
    assert readout(page)[0] == 11
    expect(page.locator(".hs-pinned")).to_contain_text(re.compile(r"^locked: .* 20, query looks at .* 3, key"))
    # Within the prompt, too, another token can be written instead.
    lock(page, 2, 1)
    check_bars(page, loaded, 3)
    page.get_by_role("button", name=re.compile("^Branch here with")).first.click()
    expect(page.get_by_role("group", name="Text B")).to_have_text(re.compile("^ROM[^E].{20}", re.DOTALL))


@pytest.mark.slow
def test_a_selected_step_is_scrolled_into_view_with_the_tokens_before_it(page: Any) -> None:
    newest = newest_token(page)
    text(page).evaluate("(e) => Object.assign(e.style, { flex: '0 0 70px', minHeight: 0, width: '90px' })")
    text(page).evaluate("(e) => (e.scrollTop = e.scrollHeight)")
    lines = """(e) => [...e.querySelectorAll(".hs-token")].map((token) => {
      const [box, room] = [token.getBoundingClientRect(), e.getBoundingClientRect()];
      return box.top >= room.top - 1 && box.bottom <= room.bottom + 1;
    })"""
    step = newest // 2
    assert not text(page).evaluate(lines)[step]
    go_to(page, step)
    in_view = text(page).evaluate(lines)
    assert in_view[step] and in_view[step - 8]


@pytest.mark.gradio
@pytest.mark.slow
def test_arrow_keys_select_steps_from_the_write_button_and_without_focus(page: Any) -> None:
    change_settings(page, length=20)
    page.get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("20 tokens written")).to_be_visible()
    button, step = page.get_by_role("button", name="Write", exact=True), page.get_by_label("Step", exact=True)
    expect(button).to_be_focused()
    newest = N_PROMPT + 19
    for key, at in (
        ("ArrowLeft", newest - 1),
        ("ArrowLeft", newest - 2),
        ("Home", N_PROMPT),
        ("ArrowRight", N_PROMPT + 1),
    ):
        page.keyboard.press(key)
        expect(step).to_have_value(str(at))
    expect(button).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("End")
    expect(step).to_have_value(str(newest))
    page.keyboard.press("Shift+ArrowLeft")
    # Elements that handle keys themselves still get them.
    page.get_by_label("Prompt").press("ArrowLeft")
    page.get_by_role("button", name="1·2,").press("ArrowLeft")
    page.get_by_role("button", name="Matrix", exact=True).press("Home")
    page.get_by_label("Speed").press("End")
    with opened_settings(page):
        page.get_by_role("button", name="Settings", exact=True).press("ArrowLeft")
    show_page(page, "Learn")
    page.keyboard.press("ArrowLeft")
    show_page(page, "Look")
    expect(step).to_have_value(str(newest))
