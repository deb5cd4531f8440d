"""Writing beyond a full context: the text continues, and the page shows what the model sees."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import change_settings, expect_drawn, is_shown_as, open_head, opened_settings, readout, text, write
from helpers.server import CONTEXT, Server
from model.sampling import SamplingSettings
from model.serving.engine import Engine
from model.serving.sequence import TextSequence


def shifted_text(server: Server, prompt: str, n: int) -> str:
    """The text that the engine writes with the page's settings."""
    loaded = server.services.served.models["tiny"]
    pieces: list[str] = []
    engine = Engine(loaded)
    request = loaded.request(prompt, n, sampling=SamplingSettings(temperature=0.8), seed=1, context_shift=True)
    engine.submit(TextSequence(request, loaded, lambda event: pieces.append(event.text)))
    while engine.active or engine.queue:
        engine.step()
    return prompt + "".join(pieces)


@pytest.mark.slow
def test_the_text_continues_and_its_newer_half_is_shown(page: Any, server: Server) -> None:
    n = 3 * CONTEXT
    with opened_settings(page) as panel:
        panel.get_by_label("Keep writing past the context window").check()
    change_settings(page, length=n, seed=1)
    write(page, "Well, ")
    expect(page.get_by_text(re.compile(f"^{n} tokens written"))).to_be_visible()
    expected = shifted_text(server, "Well, ", n)
    expect(text(page)).to_have_text(expected)
    assert text(page).text_content() == expected
    assert text(page).evaluate("(e) => e.scrollHeight - e.scrollTop - e.clientHeight") < 40
    earlier = text(page).locator(".hs-earlier").text_content()
    assert expected.startswith(earlier) and len(earlier) > CONTEXT
    # The numbers are those of the tokens that are still in the context, read on their own.
    loaded = server.services.served.models["tiny"]
    window = "".join(text(page).locator(".hs-token").all_text_contents())
    assert earlier + window == expected and len(window) <= CONTEXT + 1
    layer, head = open_head(page)
    expect_drawn(page)  # its weights have arrived
    query, key, shown = readout(page)
    assert is_shown_as(float(loaded.trace(window[:CONTEXT]).attention[layer, head, query, key]), shown)


@pytest.mark.slow
def test_a_part_whose_first_tokens_never_arrived_keeps_no_earlier_ones(page: Any) -> None:
    """When a new part is announced that has more tokens than the page shows of the previous one."""

    def skip(route: Any) -> None:
        response = route.fetch()
        events = [event for event in response.text().split("\n\n") if event.startswith("data: ")]
        runs = [json.loads(event.removeprefix("data: "))["run"] for event in events]
        later = next(i for i, run in enumerate(runs) if run != runs[0])
        route.fulfill(response=response, body="\n\n".join([events[0], *events[later:], ""]))

    page.route("**/look/write", skip)
    with opened_settings(page) as panel:
        panel.get_by_label("Keep writing past the context window").check()
    change_settings(page, length=2 * CONTEXT, seed=1)
    write(page, "Well, ")
    expect(page.get_by_text(re.compile(f"^{2 * CONTEXT} tokens written"))).to_be_visible()
    texts = text(page).locator(".hs-token").all_text_contents()
    assert len(texts) > 6 and "".join(texts[:6]) != "Well, "


def test_without_the_switch_it_ends_where_the_context_is_full(page: Any, server: Server) -> None:
    change_settings(page, length=3 * CONTEXT)
    write(page, "Well, ")
    expect(page.get_by_text("tokens is full")).to_be_visible()
    assert text(page).locator(".hs-earlier").text_content() == ""
