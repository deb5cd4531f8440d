"""The Use tab: its examples are filled with what Look shows, fit a phone, and run exactly as they are printed."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from safetensors.torch import load_file

from helpers.files import ROOT
from helpers.page import change_settings, expect_status, show_page, write
from helpers.server import Server
from helpers.tabs import Profiles, opened_page

pytestmark = pytest.mark.gradio

ANSWERED = ["write", "attention", "ask", "activations", "health"]
IN_ONE_LANGUAGE = ["mcp", "gradio", "library"]
KEY = "open-sesame-open-sesame"


def examples(page: Any, language: str = "curl") -> dict[str, str]:
    """What is printed for each example, by its name in the address."""
    page.get_by_role("tab", name=language, exact=True).click()
    found = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.hu-example')].map((each) =>"
        " [each.id.replace('use/', ''), each.querySelector('pre').textContent]))"
    )
    return dict(found)


def open_use(page: Any) -> None:
    show_page(page, "Use")
    page.locator(".hu-example").first.wait_for()


def test_examples_ask_for_what_is_in_view(page: Any, server: Server) -> None:
    change_settings(page, seed=3, length=5, temperature=0)
    write(page, 'so it\'s "fine"')
    expect_status(page, "5 tokens written")
    open_use(page)
    code = examples(page)
    assert f"{server.url}/v1/completions" in code["write"]
    body = json.loads(code["write"].split("-d '")[1].removesuffix("'"))
    assert body["prompt"] == 'so it\'s "fine"' and (body["seed"], body["temperature"], body["max_tokens"]) == (3, 0, 5)
    page.locator("#use\\/write").get_by_role("button", name="Ask this server").click()
    answer = page.locator("#use\\/write .hu-text b")
    answer.wait_for()
    written = page.evaluate("document.querySelector('#use\\\\/write .hu-text b').textContent")
    assert len(written) == 5
    show_page(page, "Look")
    assert page.locator(".hs-text").first.inner_text().replace("\n", "").endswith(written.replace("\n", ""))


def test_an_answer_moves_nothing_and_examples_fit_a_phone(page: Any) -> None:
    open_use(page)
    tops = "[...document.querySelectorAll('.hu-example')].map((each) => each.getBoundingClientRect().top + scrollY)"
    for name in ANSWERED:
        example = page.locator(f"#use\\/{name}")
        example.get_by_role("button", name="Ask this server").click()
        before = page.evaluate(tops)  # the place is made when something is asked, not when the answer arrives
        expect(example.locator(".hu-answer .hu-soft").first).to_contain_text("Answered in")
        assert page.evaluate(tops) == before
    answer = page.locator("#use\\/attention .hu-answer")
    answer.get_by_role("button", name="Printed").click()
    expect(answer).to_contain_text('"attention"')
    assert page.evaluate(tops) == before
    page.set_viewport_size({"width": 390, "height": 844})
    wide = "[...document.querySelectorAll('.hu-page pre')].filter((each) => each.scrollWidth > each.clientWidth).length"
    for language in ("curl", "Python", "openai", "JavaScript"):
        examples(page, language)
        assert page.evaluate(wide) == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_address_leads_to_an_example_and_the_contents_mark_it(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?seed=2#use/activations")
    page.wait_for_function("document.querySelector('#use\\\\/activations')?.getBoundingClientRect().top < 200")
    marked = page.locator(".hu-contents [aria-current]")
    expect(marked).to_have_text("Activations")
    examples(page, "Python")
    page.get_by_role("link", name="All routes and limits").click()
    page.wait_for_function("Math.abs(document.getElementById('use/routes').getBoundingClientRect().top) < 2")
    expect(marked).to_have_text("All routes and limits")
    assert "seed=2" in page.url and page.locator(".hu-bar").bounding_box()["y"] < 0
    page.reload()
    expect(page.get_by_role("tab", name="Python", exact=True)).to_have_attribute("aria-selected", "true")


def run(language: str, code: str, folder: Path) -> str:
    """Run a printed example in a folder with the checkpoints and the library. Returns what it prints."""
    if language == "curl" and (not shutil.which("bash") or not shutil.which("curl")):
        pytest.skip("the example needs bash and curl")
    if language == "JavaScript" and not shutil.which("node"):
        pytest.skip("the example needs node")
    commands = {"curl": ["bash", "-ec", code], "JavaScript": ["node", "--input-type=module", "-e", code]}
    environ = {"PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin", "HEADSCOPE_API_KEY": KEY}
    environ |= {"NO_PROXY": "*", "HF_HUB_OFFLINE": "1", "PYTHONPATH": f"{folder}:{ROOT}"}
    command = commands.get(language, [sys.executable, "-c", code])
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ, cwd=folder)
    assert result.returncode == 0, f"{code}\n{result.stderr}"
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("with_key", [False, True])
def test_every_example_runs_as_it_is_printed(
    with_key: bool, browser: Profiles, launch: Callable[..., Server], checkpoints: Path, tmp_path: Path
) -> None:
    server = launch(checkpoints / "tiny", **({"api_key": KEY} if with_key else {}))
    (tmp_path / "checkpoints").symlink_to(checkpoints)
    (tmp_path / "headscope.py").write_text("import sys, model\nsys.modules['headscope'] = model\n")
    page, complaints = opened_page(browser, server.url)
    if with_key:
        page.get_by_label("API key").fill(KEY)
        page.keyboard.press("Enter")
    page.locator(".hs-number").first.wait_for()
    change_settings(page, seed=1, length=8)
    write(page, "so it's")
    expect_status(page, "8 tokens written")
    if not with_key:  # with a head that is off
        page.get_by_role("region", name=re.compile("^Attention weights")).get_by_role("button", name="Ask").click()
        page.get_by_role("button", name=re.compile("What if heads are off?")).click()
        page.locator(".hs-head-scale").get_by_role("button", name="Mute", exact=True).click()
    open_use(page)
    assert ("head_mask" in examples(page)["attention"]) is not with_key
    printed = {language: examples(page, language) for language in ("curl", "Python", "openai", "JavaScript")}
    said = {language: {} for language in printed}
    for language, code in printed.items():
        for name, each in code.items():
            if each != printed["curl"][name] or language == "curl":
                said[language][name] = run(language, each, tmp_path) if name not in IN_ONE_LANGUAGE else each
    gradio, library = (run("Python", printed["curl"][name], tmp_path) for name in ("gradio", "library"))
    complaints.check()
    check(said, library, tmp_path)
    assert len(re.sub(r"^Loaded as API: .*\n", "", gradio.split("\n---\n")[-2])) == 8


def check(said: dict[str, dict[str, str]], library: str, folder: Path) -> None:
    """Every language gets the same text, weights and contributions, and so does the library without a server."""
    curl, python, openai, javascript = (said[each] for each in ("curl", "Python", "openai", "JavaScript"))
    text = json.loads(curl["write"])["choices"][0]["text"]
    assert len(text) == 8 and all(each["write"].removesuffix("\n") == text for each in (python, openai, javascript))
    assert library.startswith(f"{text}\n")
    weights = json.loads(curl["attention"])["attention"][0][0][-1]
    numbers = [
        [float(each) for each in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", said_)]
        for said_ in (
            *(each["attention"] for each in (python, openai, javascript)),
            library.split("tensor(")[1].split("]")[0],
        )
    ]
    for each in numbers:
        assert each == pytest.approx(weights, abs=1e-3)
    heads = json.loads(curl["ask"])["heads"]
    assert json.loads(openai["ask"]) == json.loads(python["ask"]) == heads and "'heads'" in library
    (stored,) = load_file(folder / "activations.safetensors")
    assert all(stored in each for each in (python["activations"], javascript["activations"], library))
    assert '"ok"' in curl["health"] and all("ok" in each["health"] for each in (python, javascript))
    assert json.loads(curl["trained"])["object"] == "list"
    assert json.loads(curl["mcp"])["mcpServers"]["headscope"]["url"].endswith("/gradio_api/mcp/")
