"""Ask: what carries the answer, which heads feed this one, and where this head fires, compared with the functions."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import open_head, readout, text
from model import LoadedModel
from model.lens.composition import composition
from model.lens.interventions.patching import patch
from model.lens.interventions.paths import cut_paths
from model.lens.interventions.reference import mean_contexts, shipped_passages
from model.lens.passages import firing, mark_tokens
from model.lens.text_pass import TextPass

PROMPT = "Tom ran to the dog."
PER_CENT = re.compile(r"(−?\d+)% \((−?[\d.]+)\)")


@pytest.fixture
def written(write_once: Callable[[str, int], Any]) -> Any:
    return write_once(PROMPT, 6)


def ask(page: Any, question: str) -> Any:
    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    panel.get_by_role("button", name=re.compile(question)).click()
    return panel


def rows(panel: Any) -> dict[tuple[int, int], str]:
    found = {}
    for row in panel.locator("tr[data-picture]").all():
        layer, head = map(int, row.get_attribute("data-picture").split(","))
        found[layer, head] = row.locator(".hs-number-cell").text_content()
    return found


def number(shown: str) -> float:
    return float(shown.replace("−", "-").removesuffix("%"))


def test_what_carries_the_answer(written: Any, tiny: LoadedModel) -> None:
    panel = ask(written, "What carries the answer")
    whole = text(written).text_content()
    expect(panel.get_by_text("Change a word in this text that the answer depends on.")).to_be_visible()
    changed = panel.get_by_label("changed text")
    expect(changed).to_have_value(whole[:-1])  # up to the answer, which is the newest token
    changed.fill(whole[:-1].replace("Tom", "Tim"))
    changed.press("Tab")
    panel.get_by_role("button", name="Show all 12 heads").click()
    ids, other = (tiny.tokenizer.encode(each) for each in (whole[:-1], whole[:-1].replace("Tom", "Tim")))
    answer = tiny.tokenizer.encode(whole[-1])[0]
    texts = TextPass(tiny.gpt, ids), TextPass(tiny.gpt, other)
    likely = [int(i) for i in texts[1].logits(len(ids) - 1, len(ids))[0].topk(2).indices]
    expected = patch(*texts, answer=answer, wrong=likely[likely[0] == answer])
    restored = expected.heads
    for place, shown in rows(panel).items():
        match = PER_CENT.fullmatch(shown)
        assert match and abs(number(match[1]) - 100 * float(restored[place])) < 0.51
        assert abs(number(match[2]) - float(expected.raw["heads"][place])) < 0.0051
    best = divmod(int(restored.argmax()), 4)
    expect(panel.get_by_text(f"Head {best[1]} of layer {best[0]} alone restores")).to_be_visible()
    assert abs(expected.clean - expected.corrupted) < 0.3
    expect(panel.locator(".hs-plain")).to_contain_text("The change hardly matters here")
    table = panel.locator("[data-table=residual] tbody tr")
    expect(table).to_have_count(4)
    assert table.last.locator("td").last.text_content() == "100"
    changed.fill("Tim")
    changed.press("Tab")
    expect(panel.get_by_text("Both prompts must have the same number of tokens")).to_be_visible()
    panel.get_by_label("wrong answer").fill("ab")
    panel.get_by_label("wrong answer").press("Tab")
    changed.fill(whole[:-1].replace("Tom", "Tim"))
    changed.press("Tab")
    expect(panel.get_by_text("wrong must be a single token, found 2")).to_be_visible()
    panel.get_by_label("wrong answer").fill("")
    panel.get_by_label("wrong answer").press("Tab")
    # Several heads together, and in the other direction.
    for place in (best, (2, 3) if best != (2, 3) else (0, 0)):
        panel.get_by_label(f"Patch {place[0]}·{place[1]} together").check()
    together = [best, (2, 3) if best != (2, 3) else (0, 0)]
    wrong = likely[likely[0] == answer]
    for way, does, sign in (("into the changed text", "restore", 1), ("into the original", "take away", -1)):
        panel.get_by_role("button", name=way, exact=True).click()
        said = panel.locator(".hs-head-set .hs-answer")
        expect(said).to_contain_text(f"together {does}")
        both = patch(*texts, answer=answer, wrong=wrong, direction="denoise" if sign > 0 else "noise", heads=together)
        share = both.joint if sign > 0 else 1 - both.joint
        match = re.search(
            f"together {does} (−?\\d+)% of the difference, .* difference of (−?[\\d.]+);", said.text_content()
        )
        assert (
            match and abs(number(match[1]) - 100 * share) < 0.51 and abs(number(match[2]) - both.raw["joint"]) < 0.0051
        )
    found = panel.locator(".hs-plain").text_content()
    panel.get_by_role("button", name="Compare the two texts").click()
    expect(written.locator(".hs-compare-why")).to_contain_text(found)
    written.wait_for_url(re.compile("b_sha256"))
    written.go_back()  # the result is still shown
    expect(panel.locator(".hs-plain")).to_have_text(found)
    expect(panel.locator(".hs-head-set .hs-answer")).to_contain_text("together take away")
    written.go_forward()  # nothing was inserted in between
    expect(written.locator(".hs-compare")).to_be_visible()
    written.go_back()
    panel.get_by_role("button", name="Compare the two texts").click()
    written.get_by_role("button", name="Back to the answer").click()
    expect(panel.locator(".hs-plain")).to_have_text(found)
    panel.get_by_role("button", name="Compare the two texts").click()
    for letter, expected_text in (("A", whole), ("B", whole[:-1].replace("Tom", "Tim"))):
        expect(written.get_by_role("group", name=f"Text {letter}", exact=True)).to_have_text(expected_text)

    # B is not described as the same text; clicking a tile mutes a head only in the comparison where muting was chosen.
    written.locator(".hs-compare-more").get_by_role("button", name="More", exact=True).click()
    mute = written.get_by_role("button", name="Mute heads in B")
    mute.click()
    expect(written.get_by_text("Click tiles: B is read again with these heads scaled.")).to_be_visible()
    written.get_by_role("button", name="Back to the text").click()
    written.get_by_role("button", name="Write another").click()
    expect(mute).to_have_count(0)  # but in the menu, which is closed


def test_which_heads_feed_this_one(written: Any, tiny: LoadedModel) -> None:
    panel = ask(written, "Which heads feed this head")
    written.locator(".hs-grid button[aria-label^='0·1']").click()
    expect(panel.get_by_text("Heads of layer 0 read only the embeddings")).to_be_visible()
    written.locator(".hs-grid button[aria-label^='2·3']").click()
    expect(panel.locator("tr[data-picture]")).to_have_count(8)
    found = composition(tiny.gpt)
    scores, deviations = found.scores["k"][2][3], found.deviations["k"][2][3]
    for place, shown in rows(panel).items():
        assert abs(number(shown.split()[0]) - float(scores[place])) < 0.00051
    n_above = int((deviations > 3).sum())
    expect(written.locator(".hs-grid .hs-arcs path")).to_have_count(min(n_above, 8))
    panel.get_by_role("button", name="cut in this text").click()
    panel.get_by_role("button", name="values").click()
    panel.get_by_role("button", name="direct path").click()
    expect(panel.get_by_text("change of the output when cut").first).to_be_visible()
    read = TextPass(tiny.gpt, tiny.tokenizer.encode(text(written).text_content()))
    reference = mean_contexts(tiny.gpt, shipped_passages(tiny))
    moved = cut_paths(read, layer=2, head=3, reference=reference).moved["direct"]["v"]
    for place, shown in rows(panel).items():
        assert abs(number(shown.split()[0]) - 100 * float(moved[place])) < 0.051
    panel.get_by_role("button", name="effect on its role").click()
    expect(panel.locator(".hs-ask-answer").get_by_text("on random tokens", exact=False).first).to_be_visible()
    panel.get_by_role("button", name="Close Ask").click()
    expect(written.locator(".hs-grid .hs-arcs")).to_have_count(0)


@pytest.mark.slow
def test_the_passages_where_a_head_fires_are_listed(written: Any, tiny: LoadedModel) -> None:
    long = 'Tom ran to the dog. "Hi!" he said.\nThe dog did not run.\n' * 8
    panel = ask(written, "Where does this head fire")
    expect(panel.locator(".hs-passages li").first).to_be_visible()  # of texts that come with the page
    panel.get_by_text("Read another text").click()
    panel.get_by_label("text to read").fill(long)
    panel.get_by_role("button", name="Read this").click()
    expect(panel.get_by_text(f"in {len(long)} tokens of the pasted text")).to_be_visible()
    panel.locator(".hs-head-map").get_by_role("button", name="1·2", exact=True).click()
    assert open_head(written) == (1, 2)
    ids = tiny.tokenizer.encode(long)
    strongest = firing(tiny.gpt, mark_tokens(tiny.tokenizer, ids)).strongest["weight"]
    shown = panel.locator(".hs-passages .hs-mono").all_text_contents()
    assert [float(value) for value in shown] == pytest.approx(strongest.value[1, 2].tolist()[: len(shown)], abs=5e-5)
    panel.locator(".hs-passages button").nth(1).click()
    query, key, start = (int(each[1, 2, 1]) for each in (strongest.query, strongest.key, strongest.window))
    expect(text(written)).to_have_text(long[start : start + 64])
    expect(written.locator(".hs-readout")).to_contain_text(f"{query - start}, query")
    shown_query, shown_key, weight = readout(written)
    assert (shown_query, shown_key) == (query - start, key - start)
    assert weight == pytest.approx(float(strongest.value[1, 2, 1]), abs=1e-5)
    expect(panel.locator(".hs-plain")).to_contain_text("of the pasted text")  # the question is still about it
    panel.get_by_label("Text file").set_input_files(
        {"name": "story.txt", "mimeType": "text/plain", "buffer": b"It is a dog. " * 20}
    )
    expect(panel.locator(".hs-plain")).to_contain_text("260 tokens of story.txt")
