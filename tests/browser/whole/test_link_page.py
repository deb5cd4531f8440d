"""A link that one browser writes restores the view in another, and a broken link does no harm."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.links import GOOD_QUERY, LINK_SETTINGS, encode_ids
from helpers.models import tiny_model
from helpers.page import (
    change_settings,
    check_number,
    choose_model,
    expect_drawn,
    expect_model,
    number_field,
    opened_settings,
    readout,
    show_summaries,
    text,
    write,
    write_button,
)
from helpers.server import CHARACTERS, Server, save_tiny
from model.tokenizer import CharTokenizer


def copy_link(page: Any) -> str:
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Link copied")).to_be_visible()
    link: str = page.evaluate("window.copied")
    assert page.url == link
    return link


def visit(browser: Any, address: str) -> Any:
    """Another visitor, in a browser of their own, whose page is not waited for."""
    page = browser.new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(address)
    return page


def open_new(browser: Any, address: str) -> Any:
    """Another visitor, once the matrix of the open head is drawn."""
    page = visit(browser, address)
    expect_drawn(page)
    return page


def link_to(server: Server, name: str, ids: list[int], n_prompt: int, **more: Any) -> str:
    sha256 = server.services.served.models[name].sha256[:16]
    query = {"model": name, "sha256": sha256, "ids": encode_ids(ids), "prompt": n_prompt}
    return f"{server.url}/?{urlencode(query | more)}"


def open_link(browser: Any, server: Server, name: str, ids: list[int], n_prompt: int, **more: Any) -> Any:
    """Another visitor, who opens a link to this text."""
    return open_new(browser, link_to(server, name, ids, n_prompt, **more))


def queries(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).query)


def elsewhere(link: str, server: Server) -> str:
    return f"{server.url}/?{urlsplit(link).query}"


def test_a_link_leads_back(page: Any, browser: Any, launch: Callable[..., Server], checkpoints: Path) -> None:
    change_settings(page, seed=1, length=30, temperature=1.3)
    write(page, "What <b>light</b>")
    expect(page.get_by_text("tokens written")).to_be_visible()
    show_summaries(page)
    page.get_by_role("button", name=re.compile("^Mean of layer 1,")).click()
    page.get_by_label("Colour scale").select_option("log")
    page.get_by_label("hide the first token").check()
    page.get_by_label("Smallest weight drawn").fill("0.3")
    page.get_by_label("Order of the heads").select_option(label="lowest first")
    page.get_by_label("Metric of the heads").select_option("distance")
    page.locator(".hs-writing .hs-token").nth(40).click(modifiers=["Shift"])
    page.locator(".hs-writing .hs-token").nth(33).click(modifiers=["Shift"])
    page.mouse.move(5, 5)
    expect(page.locator(".hs-readout")).to_have_text(re.compile(" 33, query"))
    written, (query, key, number) = text(page).text_content(), readout(page)
    link = copy_link(page)

    server = launch(checkpoints / "other", checkpoints / "tiny")  # another process would know no more than this one
    other = open_new(browser, elsewhere(link, server))
    expect(text(other)).to_have_text(written)
    expect(other.get_by_text(f"{len(written)} tokens, opened from a link")).to_be_visible()
    expect(other.get_by_label("Prompt")).to_have_value("What <b>light</b>")
    expect_model(other, "tiny", "3 layers × 4 heads")
    expect(other.get_by_role("region", name="Attention weights, the mean of layer 1")).to_be_visible()
    expect(other.locator(".hs-readout")).to_have_text(re.compile(" 33, query"))
    found = readout(other)
    assert found[:2] == (query, key) and found[2] == pytest.approx(number, abs=1.1e-4)  # read again, and rounded
    expect(other.locator(".hs-writing .hs-query")).to_have_count(2)
    expect(other.get_by_label("Colour scale")).to_have_value("log")
    expect(other.get_by_label("hide the first token")).to_be_checked()
    expect(other.get_by_label("Smallest weight drawn")).to_have_value("0.3")
    expect(other.get_by_label("Order of the heads")).to_have_value("low")
    expect(other.get_by_label("Metric of the heads")).to_have_value("distance")
    assert queries(copy_link(other)) == queries(link)
    # The page continues as from any other text.
    write(other, "now ")
    expect(text(other)).to_have_text(re.compile("^now "))
    assert not other.errors


def test_settings_in_a_link_fill_the_controls(browser: Any, server: Server) -> None:
    ids = server.services.served.models["other"].tokenizer.encode("to be or not")
    view = {"open": "2.2", "step": 7, "mode": "text", "surprise": 1, "heads": "step", "details": 1}
    page = visit(browser, link_to(server, "other", ids, 5, **LINK_SETTINGS | view))
    opened = page.url
    expect(page.get_by_role("group", name="Text", exact=True)).to_have_text("to be or not")
    expect(page.get_by_label("Prompt")).to_have_value("to be")
    with opened_settings(page) as panel:
        expect(number_field(panel, "length")).to_have_value("20")
        expect(number_field(panel, "temperature")).to_have_value("0.80")
        expect(panel.get_by_label("seed", exact=True)).to_have_value("-3")
    expect(page.get_by_role("region", name="Attention weights, the mean of all heads")).to_be_visible()
    for pressed in ("Text", "This step"):
        expect(page.get_by_role("button", name=pressed, exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("colour by surprise")).to_be_checked()
    expect(page.locator(".hs-writing .hs-chosen")).to_have_attribute("data-i", "7")
    assert queries(copy_link(page)) == queries(opened)
    assert not page.errors


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": "<img src=x onerror=pwned=1>", "sha256": "0" * 16},
            "There is no model '<img src=x onerror=pwned=1>'",
        ),
        *also_slow(
            ({"sha256": "0" * 16}, "tiny has different weights here"),
            ({"ids": encode_ids([96])}, "tiny cannot read the text"),
            ({"ids": "%%%${pwned=1}"}, "This link is broken"),
        ),
    ],
)
def test_a_bad_link_shows_the_opening_and_says_why(
    browser: Any, server: Server, changes: dict[str, str], said: str
) -> None:
    sha256 = server.services.served.models["tiny"].sha256[:16]
    page = open_new(browser, f"{server.url}/?{urlencode(GOOD_QUERY | {'sha256': sha256} | changes)}")
    expect(page.get_by_text(said)).to_be_visible()
    expect(text(page)).to_have_text(re.compile("^ROMEO:.{20}", re.DOTALL))
    expect(page.get_by_label("Prompt")).to_have_value("ROMEO:")
    check_number(page, server.services.served.models["tiny"])
    assert page.evaluate("typeof pwned") == "undefined"
    write(page, "now ")
    expect(text(page)).to_have_text(re.compile("^now "))
    assert not page.errors


@pytest.mark.slow
def test_a_link_with_a_damaged_view_still_shows_its_text(browser: Any, server: Server) -> None:
    loaded = server.services.served.models["tiny"]
    ids = loaded.tokenizer.encode("to be or not")
    wrong = {"open": "9.9", "locked": "99", "step": "1e9", "mode": "constructor", "threshold": "-1", "sorted": "yes"}
    page = open_link(browser, server, "tiny", ids, 5, **wrong, scale="linear", temperature="hot")
    expect(text(page)).to_have_text("to be or not")
    notice = page.get_by_text("The link is damaged")
    for word in wrong:
        expect(notice).to_have_text(re.compile(word))
    expect(page.get_by_text("The settings of this link cannot be used")).to_be_visible()
    expect(page.get_by_label("Colour scale")).to_have_value("linear")
    check_number(page, loaded)
    assert not page.errors


@pytest.mark.slow
def test_a_very_long_text(browser: Any, launch: Callable[..., Server], tmp_path: Path) -> None:
    folder = tmp_path / "long"
    tiny_model(0, CharTokenizer.train(CHARACTERS), n_embd=32, context_length=1024).save(folder)
    server = launch(folder, save_tiny(tmp_path / "tiny"))
    loaded = server.services.served.models["long"]
    ids = [(7 * i) % 90 for i in range(1024)]
    page = open_link(browser, server, "long", ids, 1000)
    expect(text(page)).to_have_text(loaded.tokenizer.decode(ids))
    expect(page.get_by_text("1,024 tokens, opened from a link")).to_be_visible()
    # As long as one for GPT-2 would be; the requests it causes must not be refused either.
    page.goto(f"{page.url}&padding={'x' * 4000}")
    expect(page.get_by_text("1,024 tokens, opened from a link")).to_be_visible()
    assert queries(copy_link(page))["ids"] == [encode_ids(ids)]
    assert not page.errors


@pytest.mark.slow
def test_the_clipboard_if_it_is_allowed(browser: Any, server: Server) -> None:
    page = open_new(browser, server.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    before = page.url
    page.get_by_role("button", name="0·1,").click()
    assert page.url == before  # the address changes only when it is copied
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Link copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert "open=0.1" in page.url
    page.reload()
    expect(page.get_by_role("region", name="Attention weights, head 1 of layer 0")).to_be_visible()
    assert not page.errors


def test_a_link_is_copied_over_plain_http(browser: Any, server: Server) -> None:
    """There, browsers have no clipboard to write to; where they refuse to copy at all, the button says so."""
    page = open_new(browser, server.url)
    page.context.grant_permissions(["clipboard-read"], origin=server.url)
    button = page.locator(".hs-panels .hs-link button").first
    page.evaluate("window.clip = navigator.clipboard")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button.click()
    expect(button).to_have_text("Link copied")
    expect(button).to_be_focused()
    assert page.evaluate("clip.readText()") == page.url
    page.evaluate("document.execCommand = () => false")
    button.click()
    expect(button).to_have_text("The browser does not let this page copy")
    assert not page.errors


@pytest.mark.slow
def test_reload_and_back_find_the_texts(page: Any) -> None:
    opening = text(page).text_content()
    texts = []
    for prompt in ("first ", "second "):
        before = page.url
        write(page, prompt)
        expect(text(page)).to_have_text(re.compile(f"^{prompt}."))
        page.wait_for_url(lambda url, before=before: url != before)
        texts.append(text(page).text_content())
    page.reload()
    expect(text(page)).to_have_text(texts[1])
    expect(page.get_by_label("Prompt")).to_have_value("second ")
    page.go_back()
    expect(text(page)).to_have_text(texts[0])
    page.go_back()
    expect(text(page)).to_have_text(opening)
    page.go_forward()
    expect(text(page)).to_have_text(texts[0])


@pytest.mark.slow
def test_back_leaves_a_text_that_is_being_written(page: Any, server: Server, slow: Any) -> None:
    choose_model(page, "slow")
    change_settings(page, length=2)
    write(page, "ab")
    slow.gate.release(3)
    page.wait_for_url("**ids=**")
    first = text(page).text_content()
    write(page, "cd")
    slow.gate.release()
    expect(text(page)).to_have_text(re.compile("^cd.$", re.DOTALL))
    page.go_back()
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    expect(write_button(page)).to_be_visible()
    server.wait_until_idle()
    page.go_forward()
    expect(text(page)).to_have_text(first)
