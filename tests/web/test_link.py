"""A link to a view: written by the browser, read by any server with the same weights, and harmless when it is wrong."""

import base64
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from conftest import CHARACTERS, CONTEXT, Server, save_tiny
from helpers import tiny_model
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import expect
from test_page import check_number, readout, text, write

from model.tokenizer import CharTokenizer
from web.link import BadLink, decode_ids, read_link, read_settings

RANGES = {"temperature": (0, 2), "max_new_tokens": (1, 1024), "top_k": (0, 100), "top_p": (0.05, 1), "min_p": (0, 1)}
SETTINGS = {"length": "20", "temperature": "0.8", "top_k": "0", "top_p": "1", "min_p": "0", "seed": "-3"}


def encode_ids(ids: list[int]) -> str:
    """What link.mjs does."""
    data = bytearray()
    for number in ids:
        while number > 127:
            data.append(128 + number % 128)
            number //= 128
        data.append(number)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def shelf(**models: str) -> Any:
    """A shelf of one small model under these names, with these hashes."""
    gpt = tiny_model(tokenizer=CharTokenizer.train(CHARACTERS), context_length=CONTEXT)
    kinds = {
        name: SimpleNamespace(sha256=sha, config=gpt.config, read_prompt=gpt.read_prompt)
        for name, sha in models.items()
    }
    for kind in kinds.values():
        kind.generate = gpt.generate
    return SimpleNamespace(models=kinds, ready=SimpleNamespace(done=lambda: True), failures={}, problems=lambda: [])


SHELF = shelf(tiny="a" * 64, other="b" * 64)
GOOD = {"model": "tiny", "sha256": "a" * 16, "ids": encode_ids([1, 2, 3]), "prompt": "2"}


@given(st.lists(st.integers(0, 2**35 - 1), min_size=1, max_size=50))
def test_ids_survive(ids: list[int]) -> None:
    assert decode_ids(encode_ids(ids), 50) == ids


@given(st.text() | st.text("AZaz09-_/+=", max_size=40))
def test_ids_that_nobody_wrote(text: str) -> None:
    try:
        ids = decode_ids(text, 8)
    except BadLink:
        return
    assert 1 <= len(ids) <= 8 and all(0 <= number < 2**35 for number in ids)


@given(st.dictionaries(st.sampled_from([*GOOD, *SETTINGS]), st.text(max_size=30)))
def test_a_query_that_nobody_wrote(changes: dict[str, str]) -> None:
    query = GOOD | SETTINGS | changes
    try:
        link = read_link(SHELF, query)
    except BadLink as error:
        assert str(error).isprintable()
    else:
        assert link is not None and link.name in SHELF.models and 1 <= link.n_prompt <= len(link.ids)
    settings, notices = read_settings(SHELF, "tiny", "ab", query, RANGES)
    assert bool(settings) != bool(notices)
    assert all(least <= settings[field] <= most for field, (least, most) in RANGES.items() if settings)


def test_a_good_query() -> None:
    link = read_link(SHELF, GOOD)
    assert link is not None and (link.name, link.ids, link.n_prompt) == ("tiny", [1, 2, 3], 2)
    assert read_link(SHELF, {"__theme": "dark", "model": "tiny"}) is None
    renamed = read_link(SHELF, GOOD | {"model": "gone"})
    assert renamed is not None and renamed.name == "tiny"
    full = read_link(SHELF, GOOD | {"ids": encode_ids([1] * (CONTEXT + 1))})
    assert full is not None and len(full.ids) == CONTEXT + 1
    settings, notices = read_settings(SHELF, "tiny", "ab", GOOD | SETTINGS, RANGES)
    assert (settings["max_new_tokens"], settings["seed"], settings["temperature"], notices) == (20, -3, 0.8, [])
    assert read_settings(SHELF, "tiny", "ab", GOOD, RANGES) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "nowhere", "sha256": "c" * 16}, "a model that is not served here: 'nowhere'. There is: tiny, other"),
        ({"sha256": "c" * 16}, "tiny has other weights here"),
        ({"sha256": ""}, "which weights"),
        ({"ids": encode_ids([1, 96])}, "tiny cannot read the text of this link"),
        ({"ids": encode_ids([1] * CONTEXT + [96])}, "tiny cannot read the text of this link"),
        ({"ids": encode_ids([1] * (CONTEXT + 2))}, f"at most {CONTEXT} tokens"),
        ({"ids": ""}, "cut off"),
        ({"ids": "A"}, "cut off"),
        ({"ids": "gA"}, "cut off"),
        ({"ids": "_____w"}, "cut off"),
        ({"prompt": "4"}, "which part"),
        ({"prompt": "0"}, "which part"),
        ({"prompt": "\u0661"}, "which part"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, str], said: str) -> None:
    with pytest.raises(BadLink) as error:
        read_link(SHELF, GOOD | changes)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperature": "nan"}, "temperature must be a number"),
        ({"temperature": "9"}, "temperature must be from 0 to 2"),
        ({"length": "99999999999"}, "max_new_tokens must be"),
        ({"seed": "9" * 20}, "seed"),
        ({"top_p": "0"}, "top_p"),
    ],
)
def test_settings_that_cannot_be_used(changes: dict[str, str], said: str) -> None:
    settings, (notice,) = read_settings(SHELF, "tiny", "ab", SETTINGS | changes, RANGES)
    assert settings == {} and said in notice


@pytest.mark.browser
def test_both_sides_write_ids_alike(page: Any) -> None:
    module = page.locator('link[href$="/link.mjs"]').get_attribute("href")
    lists = [[0], [127, 128, 50256], [2**35 - 1, 0, 16383, 16384], list(range(0, 60000, 7))]
    encoded = page.evaluate(
        "([m, l]) => import(new URL(m, document.baseURI)).then((link) => l.map(link.encodeIds))", [module, lists]
    )
    assert encoded == [encode_ids(ids) for ids in lists]
    # GPT-2's ids at their longest, a full context of them: servers and browsers take 8,000 characters and more.
    assert len(encode_ids([50256] * 1024)) == 4096


def copy_link(page: Any) -> str:
    """Through the field: in a new context the clipboard is refused."""
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('refused')); }")
    page.get_by_role("button", name="Copy link").click()
    field = page.get_by_role("textbox", name="Link to this view")
    expect(field).to_be_focused()
    link = field.input_value()
    assert page.url == link
    assert page.evaluate("document.activeElement.selectionEnd") == len(link)
    field.press("Escape")
    return link


def open_new(browser: Any, address: str) -> Any:
    """Another visitor, in a browser of their own."""
    page = browser.new_context().new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(address)
    expect(page.locator(".hs-number")).not_to_be_empty()
    return page


def elsewhere(link: str, server: Server) -> str:
    return f"{server.url}/?{urlsplit(link).query}"


def close(page: Any) -> None:
    errors = page.errors
    page.context.close()
    assert not errors


@pytest.mark.browser
def test_a_link_leads_back(page: Any, browser: Any, launch: Callable[..., Server], checkpoints: Path) -> None:
    page.get_by_label("number input for length").fill("30")
    page.get_by_label("number input for temperature").fill("1.3")
    page.get_by_label("number input for temperature").press("Tab")
    write(page, "What <b>light</b>")
    expect(page.get_by_text("tokens written")).to_be_visible()
    page.get_by_role("button", name=re.compile("^L1 mean,")).click()
    page.get_by_label("Colour scale").select_option("log")
    page.get_by_label("hide the first token").check()
    page.get_by_label("Least weight drawn").fill("0.3")
    page.get_by_role("checkbox", name="sorted").check()
    page.get_by_label("Metric of the heads").select_option("distance")
    page.locator(".hs-writing .hs-token").nth(40).click()
    page.locator(".hs-writing .hs-token").nth(33).click(modifiers=["Shift"])
    page.mouse.move(5, 5)
    expect(page.locator(".hs-readout")).to_have_text(re.compile(" 33, query"))
    written, number = text(page).text_content(), readout(page)
    link = copy_link(page)

    server = launch(checkpoints / "other", checkpoints / "tiny")  # another process would see no more than this one
    other = open_new(browser, elsewhere(link, server))
    expect(text(other)).to_have_text(written)
    expect(other.get_by_text(f"{len(written)} tokens, from a link")).to_be_visible()
    expect(other.get_by_label("Prompt")).to_have_value("What <b>light</b>")
    expect(other.get_by_text("3 layers × 4 heads")).to_be_visible()
    expect(other.get_by_role("region", name="Attention weights, L1 mean")).to_be_visible()
    expect(other.locator(".hs-readout")).to_have_text(re.compile(" 33, query"))
    assert readout(other) == number
    expect(other.locator(".hs-writing .hs-query")).to_have_count(2)
    expect(other.get_by_label("Colour scale")).to_have_value("log")
    expect(other.get_by_label("hide the first token")).to_be_checked()
    expect(other.get_by_label("Least weight drawn")).to_have_value("0.3")
    expect(other.get_by_role("checkbox", name="sorted")).to_be_checked()
    expect(other.get_by_label("Metric of the heads")).to_have_value("distance")
    assert parse_qs(urlsplit(copy_link(other)).query) == parse_qs(urlsplit(link).query)
    # The page goes on as from any other text.
    write(other, "now ")
    expect(text(other)).to_have_text(re.compile("^now "))
    close(other)


@pytest.mark.browser
def test_settings_in_a_link_fill_the_controls(browser: Any, server: Server) -> None:
    gpt = server.parts.shelf.models["other"]
    ids = gpt.tokenizer.encode("to be or not")
    query = {"model": "other", "sha256": gpt.sha256[:16], "ids": encode_ids(ids), "prompt": 5}
    view = {"open": "2.2", "step": 7, "mode": "text", "surprise": 1}
    page = open_new(browser, f"{server.url}/?{urlencode(query | SETTINGS | view)}")
    expect(page.get_by_role("group", name="Text", exact=True)).to_have_text("to be or not")
    expect(page.get_by_label("Prompt")).to_have_value("to be")
    expect(page.get_by_label("number input for length")).to_have_value("20")
    expect(page.get_by_label("number input for temperature")).to_have_value("0.8")
    page.get_by_role("button", name="more").click()
    expect(page.get_by_label("seed")).to_have_value("-3")
    expect(page.get_by_role("region", name="Attention weights, Mean of all heads")).to_be_visible()
    expect(page.get_by_role("button", name="Text", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("colour by surprise")).to_be_checked()
    expect(page.locator(".hs-writing .hs-chosen")).to_have_attribute("data-i", "7")
    assert {name: value[0] for name, value in parse_qs(urlsplit(copy_link(page)).query).items()} == {
        name: str(value) for name, value in (query | SETTINGS | view).items()
    }
    close(page)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": "<img src=x onerror=pwned=1>", "sha256": "0" * 16},
            "not served here: '<img src=x onerror=pwned=1>'",
        ),
        ({"sha256": "0" * 16}, "tiny has other weights here"),
        ({"ids": encode_ids([96])}, "tiny cannot read the text"),
        ({"ids": "%%%${pwned=1}"}, "This link is broken"),
    ],
)
def test_a_bad_link_shows_the_opening_and_says_why(
    browser: Any, server: Server, changes: dict[str, str], said: str
) -> None:
    sha256 = server.parts.shelf.models["tiny"].sha256[:16]
    page = open_new(browser, f"{server.url}/?{urlencode(GOOD | {'sha256': sha256} | changes)}")
    expect(page.get_by_text(said)).to_be_visible()
    expect(text(page)).to_have_text(re.compile("^ROMEO:.{20}", re.DOTALL))
    expect(page.get_by_label("Prompt")).to_have_value("ROMEO:")
    check_number(page, server.parts.shelf.models["tiny"])
    assert page.evaluate("typeof pwned") == "undefined"
    write(page, "now ")
    expect(text(page)).to_have_text(re.compile("^now "))
    close(page)


@pytest.mark.browser
def test_a_damaged_view_keeps_the_text(browser: Any, server: Server) -> None:
    gpt = server.parts.shelf.models["tiny"]
    ids = gpt.tokenizer.encode("to be or not")
    query = {"model": "tiny", "sha256": gpt.sha256[:16], "ids": encode_ids(ids), "prompt": 5}
    wrong = {"open": "9.9", "locked": "99", "step": "1e9", "mode": "constructor", "threshold": "-1", "sorted": "yes"}
    page = open_new(browser, f"{server.url}/?{urlencode(query | wrong | {'scale': 'linear', 'temperature': 'hot'})}")
    expect(text(page)).to_have_text("to be or not")
    notice = page.get_by_text("The link is damaged")
    for word in wrong:
        expect(notice).to_have_text(re.compile(word))
    expect(page.get_by_text("The settings of this link cannot be used")).to_be_visible()
    expect(page.get_by_label("Colour scale")).to_have_value("linear")
    check_number(page, gpt)
    close(page)


@pytest.mark.browser
def test_a_very_long_text(browser: Any, launch: Callable[..., Server], tmp_path: Path) -> None:
    folder = tmp_path / "long"
    tiny_model(0, CharTokenizer.train(CHARACTERS), n_embd=32, context_length=1024).save(folder)
    server = launch(folder, save_tiny(tmp_path / "tiny"))
    gpt = server.parts.shelf.models["long"]
    ids = [(7 * i) % 90 for i in range(1024)]
    query = {"model": "long", "sha256": gpt.sha256[:16], "ids": encode_ids(ids), "prompt": 1000}
    page = open_new(browser, f"{server.url}/?{urlencode(query)}")
    expect(text(page)).to_have_text(gpt.tokenizer.decode(ids))
    expect(page.get_by_text("1024 tokens, from a link")).to_be_visible()
    # As long as one of GPT-2's would be: what it asks for on its way must not be refused either.
    page.goto(f"{server.url}/?{urlencode(query)}&padding={'x' * 4000}")
    expect(page.get_by_text("1024 tokens, from a link")).to_be_visible()
    assert parse_qs(urlsplit(copy_link(page)).query)["ids"] == [encode_ids(ids)]
    close(page)


@pytest.mark.browser
def test_the_clipboard_where_it_is_allowed(browser: Any, server: Server) -> None:
    page = open_new(browser, server.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    before = page.url
    page.get_by_role("button", name="L0 H1").click()
    assert page.url == before  # the address changes for those only who copy it
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Link copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    assert "open=0.1" in page.url
    page.reload()
    expect(page.get_by_role("region", name="Attention weights, L0 H1")).to_be_visible()
    close(page)
