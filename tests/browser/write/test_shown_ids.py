"""What the page asks for about a text is about its tokens, also where their texts are not what was typed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from helpers.models import tiny_model
from helpers.oracles.pipelines import llama2
from helpers.page import change_settings, compare, expect_drawn, text, write
from helpers.server import Server
from helpers.tabs import Profiles, opened_page
from model.tokenizer import from_spec

PROMPT = "the \u0416\u0436 and “a”"


def posted(page: Any, path: str, act: Callable[[], object]) -> Any:
    with page.expect_request(lambda request: request.url.endswith(path)) as asked:
        act()
    return asked.value.post_data_json


def test_ids_and_prompts_are_sent_as_they_are(browser: Profiles, launch: Callable[..., Server], tmp_path: Path) -> None:
    loaded = tiny_model(0, from_spec(llama2()), n_embd=32, context_length=64)
    loaded.save(tmp_path / "llama")
    ids = loaded.parse_prompt(PROMPT)
    page, complaints = opened_page(browser, launch(tmp_path / "llama").url)
    expect_drawn(page)
    change_settings(page, seed=7, length=8)
    write(page, PROMPT)
    expect(page.get_by_text("8 tokens written")).to_be_visible()
    assert text(page).text_content().startswith(f"<s> {PROMPT}")

    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    questions = panel.get_by_role("button", name="All questions")
    read = posted(page, "/passages", panel.get_by_role("button", name=re.compile("Where does this head fire")).click)
    assert read["text"].startswith(PROMPT)
    questions.click()
    panel.get_by_role("button", name=re.compile("Find the circuit")).click()
    panel.get_by_label("Set of prompts").select_option("text")
    changed = panel.get_by_label("changed text")
    expect(changed).to_have_value(re.compile(f"^{re.escape(PROMPT)}"))  # it is filled once the choice is drawn
    clean = changed.input_value()
    changed.fill(clean.replace("the", "and", 1))
    row = posted(page, "/circuit", lambda: changed.press("Tab"))["prompts"][0]
    assert row["prompt"][: len(ids)] == ids and row["corrupted"].startswith(PROMPT.replace("the", "and", 1))
    assert len(row["prompt"]) == len(ids) + 7

    compare(page, "texts", opens=False)
    form = page.get_by_role("form", name="Another text")
    assert form.get_by_label("Text to compare with").input_value().startswith(PROMPT)
    form.get_by_role("button", name="Cancel").click()
    questions.click()
    panel.get_by_role("button", name=re.compile("What if heads are off")).click()
    page.locator(".hs-grid button[data-picture='1,1']").click()
    asked = posted(page, "/look/write", panel.get_by_role("button", name="Write both").click)
    assert asked["prompt"] == ids
    complaints.check()
