"""Find the circuit, and what a head's weights do to tokens, compared with the functions."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.page import open_head, text
from model import LoadedModel

ROWS = [
    {"prompt": "so it is", "corrupted": "so he is", "answer": "a", "wrong": "b"},
    {"prompt": "as it was", "corrupted": "as he was", "answer": "c", "wrong": "d"},
]


def ask(page: Any, question: str) -> Any:
    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    panel.get_by_role("button", name=re.compile(question)).click()
    return panel


def share(value: float) -> str:
    return f"{100 * value:.0f}%".replace("-", "−").replace("−0%", "0%")


@pytest.mark.slow
def test_a_circuit_of_own_pairs(page: Any, tiny: LoadedModel) -> None:
    panel = ask(page, "Find the circuit")
    panel.get_by_label("Set of prompts").select_option("own")
    own = panel.get_by_label("Your own prompts")
    own.fill("\n".join(["prompt,corrupted,answer,wrong", *(",".join(row.values()) for row in ROWS)]))
    panel.get_by_role("button", name="Use these").click()
    found = tiny.circuit(ROWS)
    heads, edges = len(found.heads), len(found.edges)
    expect(panel.locator(".hs-plain")).to_have_text(
        re.compile(
            f"^Over .* prompts?, {heads} heads? and {edges} edges? are enough: .*, {share(found.kept)} of the pull"
        )
    )
    expect(panel.locator(".hs-head-graph .hs-node-head")).to_have_count(heads)
    expect(panel.locator(".hs-head-graph .hs-edge:not(.hs-reads)")).to_have_count(edges)
    rows = panel.get_by_role("table", name="Edges of the circuit").locator("tbody tr")
    expect(rows).to_have_count(edges)
    strongest = max(found.edges, key=lambda each: abs(each.lost))
    sender = "{}·{}".format(*strongest.edge.sender)
    expect(rows.first).to_contain_text(sender)
    expect(rows.first).to_contain_text(share(strongest.lost))
    rows.first.get_by_role("button").click()
    said = panel.locator(".hs-ask-answer [role=status]").first
    expect(said).to_contain_text(f"{sender} → ")
    expect(said).to_contain_text(f"cut from the circuit, {share(strongest.lost)} of the effect is lost")
    expect(panel.locator(".hs-head-graph .hs-edge.hs-is-open")).to_have_count(1)

    # A node opens its head, and an edge into a head leads to the paths into it.
    first = sorted(found.heads, key=lambda each: (each.layer, each.head))[0]
    panel.locator(f".hs-node-head[data-head='{first.layer}·{first.head}']").click()
    expect(said).to_contain_text(f"at position {first.position} ({share(first.lost_there)})")
    assert open_head(page) == (first.layer, first.head)

    # With MLPs as nodes.
    panel.get_by_role("group", name="Nodes").get_by_role("button", name="heads and MLPs").click()
    found = tiny.circuit(ROWS, mlps=True)
    expect(panel.locator(".hs-head-graph .hs-node-head")).to_have_count(len(found.heads) + len(found.mlps))
    expect(panel.locator(".hs-plain")).to_contain_text("MLP")
    expect(panel.get_by_text(f"Incompleteness is {share(found.incompleteness)}")).to_be_attached()


@pytest.mark.slow
def test_a_circuit_of_this_text_and_a_changed_one(page: Any, tiny: LoadedModel) -> None:
    panel = ask(page, "Find the circuit")
    panel.get_by_label("Set of prompts").select_option("text")
    expect(panel.get_by_text("Change a word in this text that the answer depends on.")).to_be_visible()
    changed, whole = panel.get_by_label("changed text"), text(page).text_content()
    clean = whole[:-1]  # the answer is the newest token
    expect(changed).to_have_value(clean)
    other = "x" + clean[1:]
    changed.fill(other)
    changed.press("Tab")
    found = tiny.circuit([{"prompt": clean, "corrupted": other, "answer": whole[-1]}])
    expect(panel.locator(".hs-plain")).to_contain_text(f"{share(found.kept)} of the pull")
    page.reload()
    expect(page.locator(".hs-ask .hs-plain")).to_contain_text(f"{share(found.kept)} of the pull")


def test_what_a_heads_weights_do_to_tokens(page: Any, tiny: LoadedModel) -> None:
    panel = ask(page, "What is this head for")
    page.locator(".hs-grid button[aria-label^='2·1']").click()
    panel.get_by_text("What its weights do to tokens").click()
    rows = panel.locator("[data-table=token-pairs] tbody tr")
    for circuit, name in (("ov", "what it writes (OV)"), ("qk", "what it looks for (QK)")):
        panel.get_by_role("button", name=name).click()
        expected = tiny.token_circuit(2, 1, circuit, top=12)  # type: ignore[arg-type]
        score = f"{expected.eigenvalue_score:.2f}".replace("-", "−")
        expect(panel.get_by_text(f"score of head 1 of layer 2 is {score}.")).to_be_visible()
        expect(rows).to_have_count(12)
        expect(rows.first.locator("td").last).to_contain_text(f"{float(expected.value[0]):.2f}")
        source = tiny.tokenizer.decode([int(expected.source[0])]).replace(" ", "·")
        expect(rows.first.locator("td").first).to_have_text(f"“{source}”")
