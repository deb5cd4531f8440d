"""Every example of the Use tab runs unchanged, with the page's own address."""

import functools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from helpers.server import Server
from web.page.use import DEFAULT_ADDRESS, examples

# What an example contains with a key, and without one.
KEY_IN_CODE = [
    ("import os\n\n", ""),
    (', headers={"Authorization": "Bearer " + os.environ["HEADSCOPE_API_KEY"]}', ""),
    ('-H "Authorization: Bearer $HEADSCOPE_API_KEY" ', ""),
    ('os.environ["HEADSCOPE_API_KEY"]', '"none"'),
]


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)


def run(language: str, code: str, folder: Path, **environ: str) -> str:
    if language == "bash" and (not shutil.which("bash") or not shutil.which("curl")):
        pytest.skip("the example needs bash and curl")
    command = [sys.executable, "-c", code] if language == "python" else ["bash", "-ec", code]
    environ |= {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "NO_PROXY": "*", "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def check(text: str, folder: Path, **environ: str) -> None:
    runnable = [(language, code) for language, code in blocks(text) if language != "json" and "pip install" not in code]
    curled, openai, weights, _, asked, _, gradio, own, health = [
        run(language, code, folder, **environ) for language, code in runnable
    ]
    assert '"ok"' in health
    assert json.loads(own)["object"] == "list"  # curl leaves out the header while the variable for the token is empty
    written = json.loads(curled)["choices"][0]["text"]
    assert len(written) == 50 and openai == written
    assert len(json.loads(weights)["attention"][0][0]) == 6
    (tensor,) = load_file(folder / "attention.safetensors").values()
    assert tensor.shape == (3, 4, 6, 6)
    one, end = json.JSONDecoder().raw_decode(asked)
    assert len(one["delta"]) == 3 and json.loads(asked[end:])["n"] == 2
    found = load_file(folder / "activations.safetensors")
    assert set(found) == {"blocks.0.hook_resid_post", "blocks.0.attn.hook_z"}
    assert "['R', 'O', 'M', 'E', 'O', ':']" in gradio
    # A text that is written at once arrives in one piece, after the client's own first message.
    whole = re.sub(r"^Loaded as API: .*\n", "", gradio.split("\n---\n")[-2])
    assert len(whole) == 50
    (config,) = (json.loads(code) for language, code in blocks(text) if language == "json")
    assert config["mcpServers"]["headscope"]["url"].endswith("/gradio_api/mcp/")


@pytest.mark.slow
def test_the_examples_run_with_a_key(launch: Callable[..., Server], checkpoints: Path, tmp_path: Path) -> None:
    server = launch(checkpoints / "tiny", api_key="open-sesame")
    check(examples(server.services, server.url, with_key=True), tmp_path, HEADSCOPE_API_KEY="open-sesame")


@pytest.mark.slow
def test_the_examples_run(server: Server, tmp_path: Path) -> None:
    check(examples(server.services, server.url + "/", with_key=False), tmp_path)


def test_examples_differ_only_by_the_key(server: Server) -> None:
    with_key, without = (
        [code for language, code in blocks(examples(server.services, server.url, with_key=each)) if language != "json"]
        for each in (True, False)
    )
    assert [functools.reduce(lambda code, part: code.replace(*part), KEY_IN_CODE, code) for code in with_key] == without


def test_a_conversation_is_an_example_if_a_model_has_a_template(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "/v1/chat/completions" not in examples(server.services, server.url, with_key=False)
    template = "{{ messages[0].content }}"
    monkeypatch.setattr(server.served.models["other"], "chat_template", template)
    (example,) = [
        code
        for _, code in blocks(examples(server.services, server.url, with_key=False))
        if "/v1/chat/completions" in code
    ]
    (choice,) = json.loads(run("bash", example, tmp_path))["choices"]
    assert choice["message"]["role"] == "assistant" and choice["message"]["content"]


@pytest.mark.parametrize(
    "address", ["http://a/\n```", "javascript:x", "http://a'b", 'http://a"', "http://a b", None, 7]
)
def test_unusual_addresses_are_not_put_into_code(server: Server, address: Any) -> None:
    assert DEFAULT_ADDRESS in examples(server.services, address, with_key=False)
