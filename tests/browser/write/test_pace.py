"""When a token appears: at the chosen pace, or as soon as it arrives. The tests advance the page's clock."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import change_settings, choose_model, expect_drawn, stop_button, text, write, write_button
from helpers.server import Server

SPEED = 20  # tokens per second, unless another is chosen
TICK = 10  # milliseconds
FRAME = 16  # milliseconds between two frames while the tests advance the clock
NOON = 12 * 60 * 60  # when the clock is stopped, in seconds since the epoch
# Counts the requests for rows, weights and logits that are unanswered, and the tokens of the newest text that arrived;
# notes when that text has ended.
WATCH_REQUESTS = """
  window.pending = window.arrived = 0;
  window.hasEnded = false;
  const request = window.fetch;
  const later = window.setTimeout.bind(window);
  const settle = () => later(() => pending--);
  const follow = (answer) => {
    let held = "";
    arrived = 0;
    hasEnded = false;
    const decoder = new TextDecoder();
    const count = new TransformStream({
      transform(bytes, stream) {
        held += decoder.decode(bytes, { stream: true });
        const events = held.split("\\n\\n");
        held = events.pop();
        for (const event of events)
          if (event.startsWith("data: ")) arrived += JSON.parse(event.slice(6)).new?.length ?? 0;
        stream.enqueue(bytes);
      },
      flush: () => void (hasEnded = true),
    });
    return new Response(answer.body.pipeThrough(count), answer);
  };
  window.fetch = async (...what) => {
    const address = String(what[0]?.url ?? what[0]);
    if (address.endsWith("look/write")) return follow(await request(...what));
    if (!address.includes("look/")) return request(...what);
    pending++;
    try {
      const answer = await request(...what);
      answer.clone().arrayBuffer().then(settle, settle);
      return answer;
    } catch (error) {
      settle();
      throw error;
    }
  };
"""
# The newest token shown in each place: text, caption, next-token bars, matrix row, drawn rows, tiles, status line.
SHOWN = """() => {
  const number = (selector, pattern) =>
    Number(document.querySelector(selector)?.textContent.match(pattern)?.[1]);
  return [
    document.querySelectorAll(".hs-writing .hs-token").length - 1,
    number(".hs-scrubber-status b", /token (\\d+)/),
    number(".hs-bars caption", /Token (\\d+)/),
    number(".hs-readout-query small", / (\\d+)/) + 1,
    Number(document.querySelector(".hs-board").dataset.count),
    Number(document.querySelector(".hs-grid").dataset.rows),
    number(".hs-written .hs-status", /(\\d+) of /) + 1,
  ];
}"""


def opened(browser: Any, server: Server, script: str = "") -> Any:
    """The page, with a clock that tests may stop."""
    page = browser.new_page(viewport={"width": 1440, "height": 900}, own_clock=True)
    page.add_init_script(script)
    page.add_init_script(WATCH_REQUESTS)
    page.clock.install(time=0)
    page.goto(server.url)
    expect_drawn(page)
    return page


@pytest.fixture
def paced(browser: Any, server: Server) -> Any:
    """The page of a visitor who has chosen no speed."""
    return opened(browser, server, 'localStorage.removeItem("headscope-speed")')


def stop_clock(page: Any) -> None:
    """Stop the clock at a multiple of a frame's time."""
    page.wait_for_function("pending === 0")
    page.clock.pause_at(NOON)


def tick(page: Any, milliseconds: int) -> None:
    """Advance the page's clock, and wait for the answers to all requests of each tick."""
    for _ in range(milliseconds // TICK):
        page.clock.run_for(TICK)
        page.wait_for_function("pending === 0")


def write_whole(page: Any, prompt: str) -> None:
    """Return when all of the text has arrived."""
    write(page, prompt)
    page.wait_for_function("hasEnded && pending === 0")


def test_a_text_appears_at_its_pace_in_all_panels_and_can_be_skipped(paced: Any) -> None:
    expect(paced.get_by_label("Speed")).to_have_value(str(SPEED))
    change_settings(paced, length=50)
    stop_clock(paced)
    write_whole(paced, "ab")
    assert paced.evaluate("arrived") == 52
    tick(paced, 40)  # the first token appears only with its weights
    for now in range(50, 600, TICK):
        tick(paced, TICK)
        newest = 2 + now // FRAME * FRAME * SPEED // 1000
        assert paced.evaluate(SHOWN) == [newest] * 7, now
    skip = paced.get_by_role("button", name="Skip to the end")
    skip.dispatch_event("click")
    expect(text(paced)).to_have_text(re.compile("^ab.{50}$", re.DOTALL))
    expect(skip).to_be_hidden()
    expect(paced.get_by_text("50 tokens written")).to_be_visible()
    tick(paced, 50)
    for panel, attribute in ((".hs-board", "data-count"), (".hs-grid", "data-rows")):
        expect(paced.locator(panel)).to_have_attribute(attribute, "52")


@pytest.mark.slow
def test_a_stopped_text_keeps_what_was_shown(paced: Any, server: Server, slow: Any) -> None:
    """Stop is shown until the whole text is shown; pressing it ends the text where it is."""
    choose_model(paced, "slow")
    expect(text(paced)).to_have_text(re.compile("^ROMEO"))
    stop_clock(paced)
    write(paced, "ab")
    slow.gate.release(30)
    paced.wait_for_function("arrived === 32")
    tick(paced, 300)
    shown = text(paced).text_content()
    assert re.fullmatch("ab.{1,29}", shown, re.DOTALL)
    (generation,) = server.running
    stop_button(paced).dispatch_event("click")
    assert generation.stopped.wait(10)
    slow.gate.release()
    expect(write_button(paced)).to_be_visible()
    n_written = len(shown) - 2
    status = f"stopped after {n_written} token{'' if n_written == 1 else 's'}"
    expect(paced.locator(".hs-written .hs-status")).to_have_text(status)
    tick(paced, 500)
    expect(text(paced)).to_have_text(shown)


@pytest.mark.slow
def test_stop_is_offered_until_the_whole_text_is_shown(paced: Any) -> None:
    change_settings(paced, length=12)
    stop_clock(paced)
    write_whole(paced, "ab")
    status = paced.locator(".hs-written .hs-status")
    expect(status).to_have_text(re.compile(r"^writing \d+ of 12$"))
    expect(stop_button(paced)).to_be_visible()
    tick(paced, 1000)
    expect(status).to_have_text("12 tokens written")
    expect(write_button(paced)).to_be_visible()


@pytest.mark.slow
def test_the_choice_of_a_speed_is_kept(browser: Any, server: Server) -> None:
    page = browser.new_page()
    page.goto(server.url)
    expect(page.get_by_label("Speed")).to_have_value("0")
    page.get_by_label("Speed").select_option("60")
    page.reload()
    expect(page.get_by_label("Speed")).to_have_value("60")
    page.evaluate('localStorage.setItem("headscope-speed", "toString")')
    page.reload()
    expect(page.get_by_label("Speed")).to_have_value(str(SPEED))


@pytest.mark.slow
def test_without_a_pace_a_token_is_shown_when_it_arrives(browser: Any, server: Server, slow: Any) -> None:
    """The server does not wait for a second token, nor the page for a frame, since its clock is stopped."""
    page = opened(browser, server)
    choose_model(page, "slow")
    expect(text(page)).to_have_text(re.compile("^ROMEO"))
    stop_clock(page)
    write(page, "ab")
    expect(text(page)).to_have_text("ab")
    for n in range(1, 41):
        slow.gate.release()
        expect(text(page)).to_have_text(re.compile(f"^ab.{{{n}}}$", re.DOTALL))


# Notes each change of the workspace's class, and of the visibility of the button that skips to the end.
WATCH_CHANGES = """() => {
  window.changes = [];
  const note = (records) => changes.push(...records.map(({ attributeName }) => attributeName));
  const watch = (element, name) => new MutationObserver(note).observe(element, { attributeFilter: [name] });
  watch(document.querySelector(".hs-workspace"), "class");
  watch(document.querySelector("[aria-label='Skip to the end']"), "hidden");
}"""


@pytest.mark.slow
def test_nothing_flickers_while_the_page_keeps_up_with_the_model(paced: Any, slow: Any) -> None:
    """A change of the workspace's class, moreover, lays out the whole page again."""
    choose_model(paced, "slow")
    expect(text(paced)).to_have_text(re.compile("^ROMEO"))
    write(paced, "ab")
    slow.gate.release(2)
    expect(text(paced)).to_have_text(re.compile("^ab.", re.DOTALL))
    expect(paced.get_by_role("button", name="Skip to the end")).to_be_visible()
    paced.evaluate(WATCH_CHANGES)
    for n_tokens in range(3, 9):
        slow.gate.release(1)
        expect(text(paced)).to_have_text(re.compile(f"^ab.{{{n_tokens}}}$", re.DOTALL))
    assert paced.evaluate("changes") == []
    stop_button(paced).click()
