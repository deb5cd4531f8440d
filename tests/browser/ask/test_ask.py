"""Ask: the panel next to the open head, with the knockout map as its first question."""

import math
import re
from typing import Any

import pytest
import torch
from playwright.sync_api import expect

from helpers import also_slow
from helpers.page import ask_panel, choose_model, open_head, text, two_frames, write
from helpers.server import Server
from model.lens.interventions.knockout import Knockout, knockout, removal
from model.lens.interventions.reference import Method, mean_contexts, shipped_passages
from model.lens.text_pass import TextPass

SIGNED = re.compile(r"([+−]?[\d.]+) → (−?[\d.]+)")


def ask_button(page: Any) -> Any:
    return page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask")


def ask_knockout(page: Any) -> Any:
    ask_button(page).click()
    ask_panel(page).get_by_role("button", name=re.compile("Which heads does this text need?")).click()
    expect(ask_panel(page).locator("tr[data-picture]")).to_have_count(8)
    return ask_panel(page)


def expected(page: Any, server: Server, method: Method = "zero") -> Knockout:
    loaded = server.served.models["tiny"]
    reference = mean_contexts(loaded.gpt, shipped_passages(loaded)) if method == "mean" else None
    read = TextPass(loaded.gpt, loaded.tokenizer.encode(text(page).text_content()))
    return knockout(read, method=method, reference=reference)


def listed(page: Any) -> dict[tuple[int, int], tuple[float, float]]:
    """The list's entry for every head: the change, and the loss without it."""
    found = {}
    for row in ask_panel(page).locator("tr[data-picture]").all():
        layer, head = map(int, row.get_attribute("data-picture").split(","))
        match = SIGNED.search(" ".join(row.locator("th, td").all_text_contents()))
        assert match
        change, loss = (float(number.replace("−", "-")) for number in match.groups())
        found[layer, head] = change, loss
    return found


def in_grid(page: Any) -> dict[tuple[int, int], float]:
    """What the tiles say, by their accessible names."""
    found = {}
    for button in page.locator(".hs-grid button.hs-has-value").all():
        match = re.fullmatch(r"(\d+)·(\d+), .*: ([+−]?[\d.]+) nats", button.get_attribute("aria-label"))
        assert match
        found[int(match[1]), int(match[2])] = float(match[3].replace("−", "-"))
    return found


def close_to(found: dict[tuple[int, int], float], deltas: torch.Tensor) -> bool:
    return all(abs(value - float(deltas[place])) < 0.0006 for place, value in found.items())


def test_the_list_and_the_grid_say_what_the_model_loses(written: Any, server: Server) -> None:
    ask = ask_knockout(written)
    ask.get_by_role("button", name="Show all 12 heads").click()
    buttons: dict[Method, str] = {"zero": "zeros", "mean": "reference mean", "text_mean": "mean of this text"}
    for method, name in buttons.items():
        if method != "zero":
            with written.expect_response(re.compile("knockout")):
                ask.get_by_role("button", name=name, exact=True).click()
            expect(ask.get_by_text("replaced with their mean")).to_be_visible()
            expect(ask).to_have_attribute("aria-busy", "false")
        answer = expected(written, server, method)
        rows = listed(written)
        changes = {place: change for place, (change, _) in rows.items()}
        assert len(rows) == 12 and close_to(changes, answer.delta)
        assert list(changes.values()) == sorted(changes.values(), reverse=True)
        assert all(abs(loss - answer.loss - change) < 0.0011 for change, loss in rows.values())
        assert close_to(in_grid(written), answer.delta) and len(in_grid(written)) == 12
    expect(ask.get_by_text("Computed in float32, as the model is served.")).to_be_visible()
    expect(ask.get_by_text("What this does not show")).to_be_visible()


def test_the_selected_token_and_the_way_to_a_head(written: Any, server: Server) -> None:
    ask = ask_knockout(written)
    ask.get_by_role("button", name="selected token").click()
    answer = expected(written, server)
    n = answer.token_delta.shape[-1]
    assert close_to(in_grid(written), answer.token_delta[..., n - 1])
    text(written).locator("[data-i='45']").click()
    expect(ask.get_by_text("(token 45)", exact=False).first).to_be_visible()
    assert close_to(in_grid(written), answer.token_delta[..., 44])
    row = ask.locator("tr[data-picture]").nth(3)
    layer, head = map(int, row.get_attribute("data-picture").split(","))
    row.get_by_role("button").click()
    assert open_head(written) == (layer, head)
    expect(row).to_have_attribute("aria-current", "true")
    chip = ask.locator(".hs-knockout > .hs-chips .hs-chip").first
    most = int(answer.token_delta[layer, head].argmax())
    assert f"Token {most + 1}," in chip.get_attribute("title")
    ask.get_by_role("button", name="Back to attention").click()
    assert not in_grid(written)
    ask.get_by_role("button", name="Colour the heads").click()
    assert len(in_grid(written)) == 12
    ask.get_by_role("button", name="Close Ask").click()
    expect(ask).to_be_hidden()
    assert not in_grid(written)


@pytest.mark.slow
def test_a_press_and_the_focus_outlast_a_redraw(written: Any) -> None:
    ask = ask_knockout(written)
    ask.get_by_role("button", name="selected token").click()
    ask.locator("tr[data-picture] button").nth(3).hover()
    layer, head = map(int, ask.locator("tr[data-picture]").nth(3).get_attribute("data-picture").split(","))
    written.mouse.down()
    text(written).locator("[data-i='45']").dispatch_event("click")
    two_frames(written)
    written.mouse.up()
    assert open_head(written) == (layer, head)
    expect(ask.get_by_text("(token 45)").first).to_be_visible()
    name = ask.locator("tr[data-picture] button").first.text_content()
    button = ask.get_by_role("button", name=name, exact=True)
    button.press("Enter")
    layer, head = name.split("·")
    expect(ask.get_by_text(f"Head {head} of layer {layer} helps most with")).to_be_visible()
    expect(button).to_be_focused()


def test_the_conclusion_comes_first(written: Any, server: Server) -> None:
    ask = ask_knockout(written)
    answer = expected(written, server)
    said = ask.locator(".hs-plain").text_content()
    layer, head = divmod(int(answer.delta.argmax()), answer.delta.shape[1])
    percent = 100 * (1 - math.exp(-float(answer.delta.max())))
    assert f"needs head {head} of layer {layer} most" in said
    assert abs(float(re.search(r"average ([\d.]+)% less probable", said)[1]) - percent) < 0.6  # type: ignore[index]
    # The selected token is shown without a further request.
    last = answer.token_delta[..., -1]
    layer, head = divmod(int(last.argmax()), last.shape[1])
    assert re.search(rf"[.] .+ needs head {head} of layer {layer} most", said)
    controls, plain = (ask.locator(name).first.bounding_box() for name in (".hs-controls", ".hs-plain"))
    assert plain["y"] + plain["height"] <= controls["y"]


def test_heads_that_are_removed_together(written: Any, server: Server) -> None:
    ask = ask_knockout(written)
    rows = ask.locator("tr[data-picture]")
    places = [tuple(map(int, rows.nth(i).get_attribute("data-picture").split(","))) for i in (0, 2)]
    for layer, head in places:
        ask.get_by_label(f"Remove {layer}·{head} together with others").check()
    loaded = server.served.models["tiny"]
    text_pass = TextPass(loaded.gpt, loaded.tokenizer.encode(text(written).text_content()))
    whole, single = removal(text_pass, places), knockout(text_pass)
    parts = sum(float(single.delta[place]) for place in places)
    together = ask.locator(".hs-head-set")
    expect(together).to_contain_text(f"+{whole.delta:.3f} nats; one by one they add up to +{parts:.3f}")
    # The same for the selected token alone.
    ask.get_by_role("button", name="selected token").click()
    change, parts = float(whole.token_delta[-1]), sum(float(single.token_delta[place][-1]) for place in places)
    said = f"{change:+.3f} nats; one by one they add up to {parts:+.3f}".replace("-", "−")
    expect(together).to_contain_text(said)
    together.get_by_role("button", name="Switch them off").click()
    for layer, head in places:
        expect(written.locator(f".hs-grid [data-picture='{layer},{head}']")).to_have_class(re.compile("hs-muted"))


@pytest.mark.slow
@pytest.mark.parametrize("width", [1024, *also_slow(1440)])
def test_an_answer_is_next_to_the_tiles_that_it_colours(written: Any, width: int) -> None:
    written.set_viewport_size({"width": width, "height": 900})
    ask = ask_knockout(written)
    tiles = written.locator(".hs-grid").bounding_box()
    box = ask.bounding_box()
    assert box["x"] > tiles["x"] + tiles["width"] and box["y"] < tiles["y"]
    head = written.get_by_role("region", name=re.compile("^Attention weights")).bounding_box()
    assert head["y"] > tiles["y"] + tiles["height"] and head["x"] + head["width"] < box["x"]


def test_the_whole_matrix_is_above_the_fold(written: Any) -> None:
    """With the list of questions, and with an answer on the tiles."""
    written.set_viewport_size({"width": 1440, "height": 900})
    ask_button(written).click()
    board = written.locator(".hs-open .hs-board")
    expect(board).to_be_in_viewport(ratio=1)
    ask_panel(written).get_by_role("button", name=re.compile("Which heads does this text need")).click()
    expect(ask_panel(written).locator("tr[data-picture]").first).to_be_visible()
    expect(board).to_be_in_viewport(ratio=1)
    number = written.locator(".hs-open .hs-number").first
    expect(number).to_be_in_viewport(ratio=1)
    # The picture fills its board, even after the tiles above it have shrunk.
    sizes = "(e) => [e.clientWidth, e.querySelector('canvas').clientWidth]"
    width, drawn = board.evaluate(sizes)
    assert abs(width - drawn) <= 1 and width >= 260


def test_a_link_and_the_keyboard(written: Any, server: Server) -> None:
    written.locator(".hs-grid button[tabindex='0']").focus()
    written.keyboard.press("a")
    expect(ask_panel(written)).to_be_focused()
    written.keyboard.press("a")
    expect(ask_panel(written)).to_be_hidden()
    ask = ask_knockout(written)
    ask.get_by_role("button", name="reference mean", exact=True).click()
    expect(ask.get_by_text("replaced with their mean")).to_be_visible()
    shown = in_grid(written)
    copied = written.evaluate("""() => new Promise((resolve) => {
        navigator.clipboard.writeText = (text) => (resolve(text), Promise.resolve());
        [...document.querySelectorAll('button')].find((button) => button.textContent === 'Copy link').click();
    })""")
    assert "ask=knockout" in copied and "ask_with=method.mean" in copied
    written.goto(copied)
    expect(ask_panel(written).locator("tr[data-picture]")).to_have_count(8)
    assert in_grid(written) == shown


@pytest.mark.slow
def test_another_text_is_asked_about_again(written: Any, server: Server) -> None:
    ask_knockout(written)
    before = in_grid(written)
    write(written, "So it is")
    expect(written.get_by_text("20 tokens written")).to_be_visible()
    expect(text(written)).to_have_text(re.compile("^So it is.{20}$", re.DOTALL))
    expect(ask_panel(written)).to_have_attribute("aria-busy", "false")
    expect(ask_panel(written).locator("tr[data-picture]")).to_have_count(8)
    assert in_grid(written) != before and close_to(in_grid(written), expected(written, server).delta)
    choose_model(written, "other")
    expect(ask_panel(written)).to_be_hidden()  # its question was about another text


def test_progress_stop_and_errors(page: Any) -> None:
    """On a page of its own, which knows no answer yet."""
    page.route("**/v1/lens/knockout", lambda _route: None)  # never answered
    ask_button(page).click()
    ask_panel(page).get_by_role("button", name=re.compile("Which heads does this text")).click()
    expect(ask_panel(page).get_by_role("progressbar")).to_be_visible()
    ask_panel(page).get_by_role("button", name="Stop").click()
    expect(ask_panel(page).get_by_text("Stopped before the answer was ready.")).to_be_visible()
    error = {"error": {"message": "Too many requests are waiting.", "type": "", "param": None, "code": None}}
    page.unroute("**/v1/lens/knockout")
    page.route("**/v1/lens/knockout", lambda route: route.fulfill(status=429, json=error))
    ask_panel(page).get_by_role("button", name="Try again").click()
    expect(ask_panel(page).get_by_text("Too many requests are waiting.")).to_be_visible()
    page.unroute("**/v1/lens/knockout")
    ask_panel(page).get_by_role("button", name="Try again").click()
    expect(ask_panel(page).locator("tr[data-picture]")).to_have_count(8)
