"""The mixing desk: what the model predicts and writes with heads muted or scaled, compared with the model itself."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import change_settings, is_shown_as, text, write, write_button
from helpers.server import Server

PROMPT = "What light"
LENGTH = 20


@pytest.fixture
def desk(page: Any) -> Any:
    change_settings(page, seed=7, length=LENGTH)
    write(page, PROMPT)
    expect(page.get_by_text(f"{LENGTH} tokens written")).to_be_visible()
    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    panel.get_by_role("button", name=re.compile("What if heads are off?")).click()
    return panel


def tile(page: Any, layer: int, head: int) -> Any:
    return page.locator(f".hs-grid button[data-picture='{layer},{head}']")


def mask_of(**scales: float) -> list[list[float]]:
    """For the tiny model; ``L0H1=0`` removes a head."""
    mask = [[1.0] * 4 for _ in range(3)]
    for name, scale in scales.items():
        mask[int(name[1])][int(name[3])] = scale
    return mask


def check_bars(page: Any, server: Server, mask: list[list[float]], position: int) -> None:
    """The next-token bars show the model's prediction with the mask next to its prediction without it."""
    loaded = server.served.models["tiny"]
    written = text(page).text_content()
    plain = loaded.trace(written).logits[position].log_softmax(-1)
    changed = loaded.trace(written, head_mask=mask).logits[position].log_softmax(-1)
    best = int(changed.argmax())
    row = page.locator(f".hs-bars tr[data-id='{best}']")
    expect(row.locator(".hs-change")).to_have_text(re.compile(signed(float(changed[best] - plain[best]))))
    rows = page.locator(".hs-bars tr[data-id]").evaluate_all(
        "all => all.map((e) => [e.dataset.id, ...[...e.cells].slice(2).map((cell) => cell.textContent)])"
    )
    assert len(rows) >= 20
    for token, own, change in rows:
        assert is_shown_as(float(changed[int(token)].exp()), float(own))
        difference = float(change.replace("−", "-"))
        assert difference == pytest.approx(float(changed[int(token)] - plain[int(token)]), abs=0.0006)


def signed(value: float) -> str:
    """The number in the page's format, to at least two decimals."""
    return re.escape(f"{value:+.3f}".replace("-", "−"))[:-1]


def test_the_next_token_moves_with_the_heads(page: Any, desk: Any, server: Server) -> None:
    last = len(PROMPT) + LENGTH - 2  # the token before the newest
    tile(page, 1, 2).click()
    check_bars(page, server, mask_of(L1H2=0), last)
    expect(tile(page, 1, 2)).to_have_attribute("aria-description", "muted, click to restore")
    expect(tile(page, 1, 2).locator(".hs-scale-badge")).to_have_text("×")
    # By key, and by the scale of the open head.
    tile(page, 0, 1).focus()
    page.keyboard.press("m")
    desk.get_by_role("button", name="opens its head").click()
    tile(page, 2, 3).click()
    page.get_by_label("Scale of this head").fill("1.5")
    mask = mask_of(L1H2=0, L0H1=0, L2H3=1.5)
    check_bars(page, server, mask, last)
    # At another step, and again after following the link.
    page.get_by_label("Step", exact=True).fill(str(len(PROMPT) + 3))
    expect(page.locator(".hs-bars caption")).to_contain_text(f"Token {len(PROMPT) + 3}, after")
    check_bars(page, server, mask, len(PROMPT) + 2)
    desk.get_by_role("button", name="Show next tokens as a table").click()
    expect(desk.locator("table tr[data-id]")).to_have_count(12)
    link = page.evaluate(
        "() => new Promise((found) => { navigator.clipboard.writeText = (text) => Promise.resolve(found(text));"
        " [...document.querySelectorAll('button')].find((e) => e.textContent === 'Copy link').click(); })"
    )
    assert "ask=desk" in link and "0-1_1-2_2-3x150" in link
    page.goto(link)
    expect(text(page)).to_have_text(re.compile(f"^{PROMPT}.{{{LENGTH}}}$", re.DOTALL))
    check_bars(page, server, mask, len(PROMPT) + 2)
    # A clicked preset keeps its place and is marked as active. "All back" restores the heads as the text was read.
    preset = desk.locator("[data-preset=layer]")
    place = "document.querySelector('[data-preset=layer]')?.getBoundingClientRect().y"
    y = page.wait_for_function(f"() => {place}").json_value()
    preset.click()
    expect(preset).to_have_attribute("aria-pressed", "true")
    expect(desk.locator(".hs-plain")).to_contain_text("Without 8 heads")
    page.wait_for_function(f"(y) => {place} === y", arg=y)
    desk.locator("[data-preset=all]").click()
    expect(page.locator(".hs-bars .hs-change")).to_have_count(0)
    expect(page.locator(".hs-scale-badge")).to_have_count(0)
    expect(desk.locator("[data-preset=all]")).to_be_disabled()
    # Escape first closes an open popover, then Ask.
    page.get_by_role("button", name="Settings", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.locator("#hs-settings")).to_be_hidden()
    expect(desk).to_be_visible()
    page.keyboard.press("Escape")
    expect(desk).to_be_hidden()


@pytest.mark.slow
def test_the_text_is_written_with_and_without_the_mixed_heads(page: Any, desk: Any, server: Server) -> None:
    loaded = server.served.models["tiny"]
    desk.locator("[data-preset=layer]").click()
    kept = int(re.findall(r"\d+", desk.locator("[data-preset=layer]").text_content())[0])
    mask = [[float(layer == kept)] * 4 for layer in range(3)]
    before = text(page).text_content()
    desk.get_by_role("button", name="Write both, side by side").click()
    expect(page.get_by_role("region", name="Compare", exact=True)).to_be_visible()
    settings = {"seed": 7, "temperature": 0.8}
    changed = PROMPT + "".join(step.text for step in loaded.generate(PROMPT, LENGTH, head_mask=mask, **settings))
    expect(page.get_by_role("group", name="Text A", exact=True)).to_have_text(before, use_inner_text=False)
    expect(page.get_by_role("group", name="Text B", exact=True)).to_have_text(changed, use_inner_text=False)
    expect(page.get_by_role("region", name="Without 8 heads")).to_be_visible()
    expect(write_button(page)).to_be_visible()
    # The point where they diverge is marked, and the change for the tokens before it is the model's own.
    diverges_at = next(i for i in range(len(before)) if before[i] != changed[i])
    expect(page.locator(".hs-side-b .hs-divergence")).to_have_attribute("data-i", str(diverges_at))
    ids = loaded.tokenizer.encode(before)[:diverges_at]
    logprobs = [loaded.trace(ids, head_mask=each).logits[:-1].log_softmax(-1) for each in (None, mask)]
    sums = [float(sum(rows[i, ids[i + 1]] for i in range(diverges_at - 1))) for rows in logprobs]
    said = page.locator(".hs-side-b .hs-pair-change").text_content()
    assert f"diverge at token {diverges_at}." in said
    found = re.search(r"in B: ([+−][\d.]+) nats in all", said)
    assert found
    assert float(found[1].replace("−", "-")) == pytest.approx(sums[1] - sums[0], abs=0.002)
    # The same again from the comparison, with one more head.
    page.get_by_role("button", name="Mute heads in B").click()
    page.get_by_role("group", name="Difference of each head").get_by_role(
        "button", name=re.compile(f"^Mute {kept}·0,")
    ).click()
    expect(page.get_by_role("region", name="Without 9 heads")).to_be_visible()
    page.get_by_role("button", name="Write both", exact=True).click()
    mask[kept][0] = 0.0
    changed = PROMPT + "".join(step.text for step in loaded.generate(PROMPT, LENGTH, head_mask=mask, **settings))
    expect(page.get_by_role("group", name="Text B", exact=True)).to_have_text(changed, use_inner_text=False)
