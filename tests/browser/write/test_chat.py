"""Conversations: the switch in the prompt, the turns in the text, and what continues them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers import also_slow
from helpers.oracles.chat_templates import chat_model
from helpers.page import (
    change_settings,
    choose_model,
    expect_drawn,
    expect_status,
    number_field,
    opened_settings,
    text,
    write,
)
from helpers.server import Server, save_tiny, start
from helpers.tabs import opened_page
from model import LoadedModel
from model.tokenizer.base import PartialToken

N_NEW = 8
SETTINGS = {"temperature": 0.8, "seed": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of "chat", which has a chat template and settings of its own, and "tiny", which has neither."""
    folder = tmp_path_factory.mktemp("chats")
    chat = chat_model("chatml")
    chat.generation_config = {"temperature": 0.6, "top_k": 20, "repetition_penalty": 1.1}
    chat.save(folder / "chat")
    server = start(folder / "chat", save_tiny(folder / "tiny"))
    yield server
    server.close()


@pytest.fixture
def loaded(server: Server) -> LoadedModel:
    return server.served.models["chat"]


def prompt_of(*turns: tuple[str, str]) -> str:
    first = "" if turns[0][0] == "system" else "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
    said = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return f"{first}{said}<|im_start|>assistant\n"


def answer(loaded: LoadedModel, prompt: str) -> list[int]:
    steps = loaded.generate(prompt, N_NEW, **SETTINGS)
    return [step.token_id for step in steps if step.token_id not in loaded.end_token_ids]


@pytest.mark.slow
def test_settings_of_the_model_are_used_when_asked_for(browser: Any, server: Server) -> None:
    page, complaints = opened_page(browser, server.url)
    expect_drawn(page)
    with opened_settings(page) as panel:
        sentence = (
            "The model’s own settings: temperature 0.6, top-k 20, repetition penalty 1.1 (which cannot be set here)."
        )
        expect(panel.get_by_text(sentence)).to_be_visible()
        expect(number_field(panel, "temperature")).to_have_value("0.80")
        panel.get_by_role("button", name="Use them").click()
        expect(number_field(panel, "temperature")).to_have_value("0.60")
        expect(number_field(panel, "top-k (0 = all)")).to_have_value("20")
    choose_model(page, "tiny")
    with opened_settings(page) as panel:
        expect(panel.get_by_text("own settings")).to_be_hidden()
    complaints.check()


def whole(loaded: LoadedModel, prompt: str) -> str:
    """The running text, in which a part of a character adds nothing until the character is complete."""
    tokens = loaded.text_tokens([*loaded.parse_prompt(prompt), *answer(loaded, prompt)])
    return "".join(
        re.sub(r"(<0x..>)+$", "", each.text) if isinstance(each, PartialToken) else each.text for each in tokens
    )


def say(page: Any, message: str) -> None:
    page.get_by_label("Message", exact=True).fill(message)
    page.locator("#hs-write").click()


def roles(part: Any) -> list[str]:
    labels = part.get_by_role("img", name=re.compile("^Turn: "))
    return [label.get_attribute("aria-label").removeprefix("Turn: ") for label in labels.all()]


def system_message(page: Any) -> Any:
    return page.get_by_label("System message")


def open_chat(browser: Any, server: Server) -> tuple[Any, Any]:
    """The page, set to write ``N_NEW`` tokens, with Chat turned on."""
    page, complaints = opened_page(browser, server.url)
    expect_drawn(page)
    change_settings(page, seed=1, length=N_NEW)
    page.get_by_role("switch", name="Chat").click()
    return page, complaints


@pytest.mark.parametrize("width", [390, *also_slow(1440)])
def test_a_conversation_goes_on_and_comes_back(browser: Any, server: Server, loaded: LoadedModel, width: int) -> None:
    page, complaints = open_chat(browser, server)
    page.set_viewport_size({"width": width, "height": 900})
    say(page, "Why? Why?")
    first = prompt_of(("user", "Why? Why?"))
    expect(text(page)).to_have_text(whole(loaded, first))
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    assert roles(text(page)) == ["user", "assistant"]
    # Labels are before the words of a turn; everything else in the prompt is the template's, on as few lines.
    starts = text(page).locator(".hs-token:has(> .hs-role) > .hs-word").all_text_contents()
    assert starts[0] == "W" and len(starts) == 2
    markers = text(page).locator(".hs-marker")
    assert "".join(markers.all_text_contents()) == first.replace("Why? Why?", "")
    assert markers.and_(page.locator(".hs-special")).all_text_contents() == re.findall(r"<\|.*?\|>", first)
    line_breaks = "(spans) => spans.map((span) => getComputedStyle(span).whiteSpaceCollapse)"
    assert set(text(page).locator(".hs-marker.hs-line").evaluate_all(line_breaks)) == {"collapse"}

    answered = loaded.tokenizer.decode(answer(loaded, first))
    say(page, "And?")
    second = prompt_of(("user", "Why? Why?"), ("assistant", answered), ("user", "And?"))
    expect(text(page)).to_have_text(whole(loaded, second))
    assert roles(text(page)) == ["user", "assistant", "user", "assistant"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.wait_for_function("location.search.includes('chat=')")
    page.reload()
    expect_drawn(page)
    expect(text(page)).to_have_text(whole(loaded, second))
    assert roles(text(page)) == ["user", "assistant", "user", "assistant"]
    expect(page.get_by_role("switch", name="Chat")).to_be_checked()
    change_settings(page, seed=1, length=N_NEW)
    before = page.url
    say(page, "So?")
    more = loaded.tokenizer.decode(answer(loaded, second))
    turns = [("user", "Why? Why?"), ("assistant", answered), ("user", "And?"), ("assistant", more), ("user", "So?")]
    expect(text(page)).to_have_text(whole(loaded, prompt_of(*turns)))
    page.wait_for_url(lambda url: url != before)
    page.go_back()
    expect(text(page)).to_have_text(whole(loaded, second))

    page.get_by_role("button", name="New conversation").click()
    page.get_by_text("System message").click()
    system_message(page).fill("Be brief.")
    say(page, "Why?")
    expect(text(page)).to_have_text(whole(loaded, prompt_of(("system", "Be brief."), ("user", "Why?"))))
    assert roles(text(page)) == ["system", "user", "assistant"]
    expect(system_message(page)).to_be_hidden()
    complaints.check()


def test_chat_is_offered_for_models_with_a_template(browser: Any, server: Server) -> None:
    page, complaints = opened_page(browser, server.url)
    expect_drawn(page)
    switch = page.get_by_role("switch", name="Chat")
    suggested = page.get_by_label("Prompt", exact=True).input_value()
    switch.click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    switch.click()
    expect(page.get_by_label("Prompt", exact=True)).to_have_value(suggested)
    switch.click()
    choose_model(page, "tiny")
    expect(switch).to_be_hidden()
    expect(page.get_by_text("System message")).to_be_hidden()
    change_settings(page, seed=1, length=2)
    write(page, "ab")
    expect_status(page, "2 tokens written")
    assert roles(text(page)) == []
    choose_model(page, "chat")
    expect(switch).to_be_checked()
    complaints.check()


def test_a_template_that_refuses_says_why(
    browser: Any, server: Server, loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, _ = open_chat(browser, server)
    monkeypatch.setattr(loaded, "chat_template", "{{ raise_exception('No questions.') }}")
    say(page, "Why?")
    said = "The chat template of chat cannot be used for these messages: No questions."
    expect(page.locator(".hs-refusal")).to_have_text(said)
    expect(page.get_by_label("Message", exact=True)).to_have_value("Why?")


@pytest.mark.slow
def test_second_texts_have_the_same_turns(browser: Any, server: Server, loaded: LoadedModel) -> None:
    page, complaints = open_chat(browser, server)
    say(page, "Why?")
    prompt = prompt_of(("user", "Why?"))
    expect(text(page)).to_have_text(whole(loaded, prompt))
    change_settings(page, length=4)
    page.get_by_label("Step", exact=True).fill(str(len(loaded.parse_prompt(prompt)) + 1))
    page.get_by_role("button", name=re.compile("^Branch here with")).first.click()
    left, right = (page.get_by_role("group", name=f"Text {letter}", exact=True) for letter in "AB")
    expect(right.locator(".hs-token").nth(len(loaded.parse_prompt(prompt)) + 3)).to_be_attached()
    assert roles(left) == roles(right) == ["user", "assistant"]
    # The conversation goes on from the text on the left.
    change_settings(page, seed=1, length=N_NEW)
    say(page, "And?")
    answered = loaded.tokenizer.decode(answer(loaded, prompt))
    turns = ("user", "Why?"), ("assistant", answered), ("user", "And?")
    expect(text(page)).to_have_text(whole(loaded, prompt_of(*turns)))
    page.get_by_role("button", name="Write another").click()
    expect(right.get_by_role("img", name="Turn: assistant")).to_have_count(2)
    assert roles(left) == roles(right) == ["user", "assistant", "user", "assistant"]
    complaints.check()
