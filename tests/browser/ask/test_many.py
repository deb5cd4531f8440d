"""A question asked of many prompts, and answers copied as calls that give the same numbers."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from helpers.api import assert_same
from helpers.files import ROOT
from helpers.page import text
from helpers.server import Server
from model.lens.interventions.knockout import knockout
from model.lens.text_pass import TextPass

PROMPTS = ["To be, or not to be", "What light is that?", "Good night."]


def ask(page: Any) -> Any:
    page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
    panel = page.get_by_role("region", name="Ask", exact=True)
    panel.get_by_role("button", name=re.compile("What holds over many prompts?")).click()
    return panel


@pytest.mark.slow
def test_own_prompts_are_answered_row_by_row_and_found_again(page: Any, server: Server) -> None:
    panel = ask(page)
    panel.get_by_label("Measure").select_option("knockout")
    panel.get_by_label("Set of prompts").select_option("own")
    own, use = panel.get_by_role("textbox"), panel.get_by_role("button", name="Use these")
    own.fill('{"prompt": "To be"}\n{"prompt": 3}')
    use.click()
    expect(panel.get_by_text("Line 2: a row must be a text or an object with a prompt.")).to_be_visible()
    own.fill("\n".join(PROMPTS))
    use.click()
    rows = panel.get_by_role("table", name="Every prompt").locator("tbody tr")
    expect(rows).to_have_count(len(PROMPTS))

    loaded = server.served.models["tiny"]
    deltas = [knockout(TextPass(loaded.gpt, loaded.tokenizer.encode(prompt))).delta for prompt in PROMPTS]
    mean = sum(deltas) / len(deltas)
    layer, head = divmod(int(mean.argmax()), 4)
    first = panel.locator("tr[data-picture]").first
    expect(first).to_have_attribute("data-picture", f"{layer},{head}")
    shown = [float(row.locator("td").last.text_content().split()[0].replace("−", "-")) for row in rows.all()]
    assert all(abs(one - float(delta[layer, head])) < 6e-4 for one, delta in zip(shown, deltas, strict=True))
    error = (sum((delta - mean) ** 2 for delta in deltas) / (len(deltas) - 1) / len(deltas)) ** 0.5
    assert f"± {float(error[layer, head]):.3f} nats" in first.text_content()

    page.reload()
    panel = page.get_by_role("region", name="Ask", exact=True)
    rows = panel.get_by_role("table", name="Every prompt").locator("tbody tr")
    expect(rows).to_have_count(len(PROMPTS))
    rows.nth(1).get_by_role("button").click()  # opens this prompt
    expect(text(page)).to_have_text(PROMPTS[1])


@pytest.mark.slow
def test_a_link_keeps_the_position_whose_means_are_shown(page: Any, server: Server) -> None:
    panel = ask(page)
    panel.get_by_label("Set of prompts").select_option("own")
    lines = ["prompt,corrupted,answer,wrong", "so it is,so he is,a,b", "or we do,or me do,c,d", "now,not,a,b"]
    panel.get_by_role("textbox").fill("\n".join(lines))
    panel.get_by_role("button", name="Use these").click()
    panel.get_by_label("Positions").select_option("each")
    cells = panel.get_by_role("table", name=re.compile("The mean at each position")).locator("td button")
    n_layer = len(server.served.models["tiny"].gpt.blocks)
    expect(cells).to_have_count(8 * n_layer)
    expect(panel.get_by_text("1 row could not be answered.")).to_be_attached()
    cells.nth(3).click()
    conclusion = re.compile(r"^Over 2 prompts, .* comes first at “i” \(token 3\)")
    expect(panel.get_by_role("status").first).to_have_text(conclusion)
    expect(cells.nth(3)).to_be_focused()
    page.reload()
    expect(panel.get_by_role("status").first).to_have_text(conclusion)


@pytest.mark.slow
def test_copied_calls_give_the_same_numbers(page: Any, server: Server, checkpoints: Path, tmp_path: Path) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    panel = ask(page)
    panel.get_by_label("Measure").select_option("previous")
    panel.get_by_label("Set of prompts").select_option("own")
    panel.get_by_role("textbox").fill("\n".join(PROMPTS))
    panel.get_by_role("button", name="Use these").click()
    expect(panel.get_by_role("table", name="Every prompt").locator("tbody tr")).to_have_count(len(PROMPTS))

    def copied(name: str) -> str:
        panel.get_by_role("button", name="Copy the answer").click()
        panel.get_by_role("menuitem", name=name).click()
        return str(page.evaluate("navigator.clipboard.readText()"))

    answer = json.loads(copied("As JSON"))
    assert answer["n"] == len(PROMPTS)
    installed = {"headscope": ROOT / "model", "web": ROOT / "web", "checkpoints": checkpoints}
    for name, folder in installed.items():
        (tmp_path / name).symlink_to(folder)
    script = copied("The Python call") + "import json\nprint(json.dumps(answer))"
    python = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    curl = subprocess.run(["bash", "-c", copied("The curl call")], capture_output=True, text=True, check=True)
    assert_same(json.loads(python.stdout)["mean"], answer["mean"], 1e-5)
    assert json.loads(curl.stdout)["mean"] == answer["mean"]
    table = dict(line.rsplit(",", 1) for line in copied("As CSV").splitlines()[1:] if '"' not in line)
    assert float(table["mean.previous_token.1.2"]) == answer["mean"]["previous_token"][1][2]
