"""Roles on the page: on tiles, at the open head, and as a question."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.server import Server
from model.lens.head_roles import LOOKS, describe_roles, role_scores


@pytest.fixture
def certain(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A measurement in which head 2 of layer 1 is clearly an induction head and no other head has a role."""
    found = role_scores(server.served.models["tiny"])
    scores = {role: (found.scores[role] * 0.2).tolist() for role in LOOKS}
    scores["induction"][1][2] = 0.87
    copying = [[0.5] * 4 for _ in range(3)]
    copying[2][1] = 0.96
    measured = {"scores": scores, "entropy": found.entropy.tolist(), "copying": copying}
    errors = {role: [[0.01] * 4] * 3 for role in LOOKS}
    measured |= {"errors": errors, "uniform": 0.01, "uniform_entropy": 6.5}
    monkeypatch.setattr("web.ask.head_roles.measure_roles", lambda *_: measured)
    server.services.answers.answers.entries.clear()
    assert describe_roles(measured)["heads"][1][2]["label"] == "induction"
    yield measured
    server.services.answers.answers.entries.clear()  # later tests use the same server


def test_a_clear_role_is_stated(certain: dict[str, Any], page: Any) -> None:
    tile = page.locator(".hs-grid").get_by_role("button", name=re.compile("^1·2,"))
    expect(tile).to_have_attribute("aria-label", re.compile("role: induction 0.87$"))
    expect(tile).to_have_attribute("title", re.compile("on random tokens: induction 0.87"))
    expect(tile.locator(".hs-tag")).to_have_text("induction")
    copying = page.locator(".hs-grid").get_by_role("button", name=re.compile("^2·1,"))
    expect(copying.locator(".hs-tag")).to_have_text("copies")
    expect(copying).to_have_attribute("title", re.compile("by its weights: copying 0.96"))
    assert page.locator(".hs-tag:not(:empty)").count() == 2
    # At any width the word is on one line above the picture or above its diagonal, where nothing is drawn, and the
    # pictures of a layer are side by side.
    for width, word in ((390, "ind|induction"), (768, "induction"), (1024, "induction"), (1440, "induction")):
        for details in ("off", "on"):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate("(details) => (document.body.dataset.details = details)", details)
            expect(tile.locator(".hs-tag")).to_have_text(re.compile(f"^({word})$"))
            assert page.locator(".hs-tag").evaluate_all(
                "tags => tags.every((tag) => tag.scrollWidth <= tag.clientWidth && tag.clientHeight < 20)"
            )
            tags, pictures = tile.locator(".hs-tag").bounding_box(), tile.locator("canvas").bounding_box()
            assert tags["y"] + tags["height"] <= pictures["y"] + (0 if details == "on" else 16)
            shared = page.locator(".hs-grid [data-picture='1,1'] canvas").bounding_box()
            assert abs(shared["y"] - pictures["y"]) < 0.1 and abs(shared["height"] - pictures["height"]) < 0.1
    tile.click()
    line = page.locator(".hs-role-line")
    expect(line).to_have_text("On random tokens: induction 0.87, by chance 0.01")
    assert line.evaluate("(line) => getComputedStyle(line, '::after').content") == "none"  # the badge of a chat's turns
    page.locator(".hs-grid").get_by_role("button", name=re.compile("^0·0,")).click()
    expect(line).to_have_text(re.compile("^On random tokens: no clear role \\(.*, by chance 0.\\d\\d\\)$"))

    page.get_by_role("button", name="Ask", exact=True).click()
    ask = page.get_by_role("region", name="Ask", exact=True)
    ask.get_by_role("button", name=re.compile("What is this head for?")).click()
    expect(ask.get_by_text("Head 0 of layer 0 has no clear role")).to_be_visible()
    role = ask.get_by_label("Role", exact=True)
    for each, shown in ((copying, "copying"), (tile, "induction")):  # until another is chosen, that of the open head
        each.click()
        expect(role).to_have_value(shown)
    page.locator(".hs-grid").get_by_role("button", name=re.compile("^0·0,")).click()
    expect(ask.get_by_text("Head 0 of layer 0 has no clear role")).to_be_visible()
    rows = ask.get_by_role("table", name="Scores of the open head").locator("tbody tr").all()
    shown = {
        row.locator("th").evaluate("th => th.firstChild.data"): row.locator("td").all_text_contents()[:2]
        for row in rows
    }
    for role in LOOKS:
        score, uniform = shown[role.replace("_", " ")]
        mean, error = score.split(" ± ")
        assert abs(float(mean) - certain["scores"][role][0][0]) < 0.0006 and error == uniform == "0.010"
    ask.get_by_label("Role", exact=True).select_option("induction")
    expect(ask.locator("tr[data-picture]").first).to_have_attribute("data-picture", "1,2")
    expect(tile).to_have_attribute("aria-label", re.compile("induction heads look: 0.870$"))
    ask.locator("tr[data-picture]").first.get_by_role("button").click()
    expect(ask.get_by_text("Role of head 2 of layer 1: induction (0.87 ± 0.01 on random tokens")).to_be_visible()

    # A copying head is labelled by what it does with a token, and its score is listed with the others.
    copying.click()
    expect(ask.locator(".hs-plain")).to_have_text(
        re.compile("Head 1 of layer 2 tends to copy what it looks at: .* those of 96% of")
    )
    expect(
        ask.get_by_role("row", name=re.compile("^copying ?tends to copy what it looks at 0.960 0.500"))
    ).to_be_visible()
    ask.get_by_label("Role", exact=True).select_option("copying")
    expect(copying).to_have_attribute("aria-label", re.compile("copying.*: 0.960$", re.IGNORECASE))
