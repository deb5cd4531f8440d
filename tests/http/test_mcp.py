"""The tools through the official MCP client, with a key and without."""

import json
from typing import Any

import httpx
import pytest

from helpers import run_async
from helpers.server import Server
from helpers.third_party.mcp_client import with_tools

KEY = "sesame"


LONG = "to be or not to be that is the question whether tis nobler"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("generate", {"prompt": "To be", "max_new_tokens": 12, "seed": 1}),
    ("attention", {"prompt": "so", "layer": 1, "head": 2}),
    ("tokenize", {"text": "so"}),
    ("models", {}),
    ("generate", {"prompt": "caf\u00e9"}),
    ("attention", {"prompt": LONG}),
    ("attention", {"prompt": LONG, "whole": True}),
]


@pytest.mark.parametrize("key", [None, KEY])
def test_tools_have_schemas_and_answers(server: Server, launch: Any, checkpoints: Any, key: str | None) -> None:
    server = launch(checkpoints / "tiny", api_key=key) if key else server
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    tools, results = run_async(with_tools(server.url, headers, CALLS))
    lenses = {"roles", "knockout", "removal", "attribution", "head_lenses", "logit_lens", "ledger"}
    lenses |= {
        "patch",
        "composition",
        "paths",
        "patch_paths",
        "role_paths",
        "difference",
        "passages",
        "text_roles",
        "circuit",
        "token_circuit",
        "neuron",
    }
    of_many = ("knockout", "removal", "attribution", "head_lenses", "logit_lens", "patch", "paths", "difference")
    lenses |= {f"{name}_prompts" for name in (*of_many, "text_roles")}
    assert set(tools) == {"generate", "attention", "tokenize", "models", "train"} | lenses
    arguments = tools["generate"].inputSchema["properties"]
    assert arguments["max_new_tokens"]["type"] == "integer" and "seed" in arguments["seed"]["description"]
    texts = [result.content[0].text for result in results]
    loaded = server.services.served.models["tiny"]
    assert texts[0] == "".join(step.text for step in loaded.generate("To be", 12, seed=1))
    weights = json.loads(texts[1])
    assert weights["tokens"] == ["s", "o"] and abs(sum(weights["attention"][1]) - 1) < 1e-5
    assert [token["text"] for token in json.loads(texts[2])] == ["s", "o"]
    assert json.loads(texts[3])[0]["id"] == "tiny"
    assert [result.isError for result in results] == [False] * 4 + [True] * 2 + [False] and "\u00e9" in texts[4]
    assert "whole: true" in texts[5] and len(texts[5]) < 400
    assert len(texts[6]) > 8_192 and len(json.loads(texts[6])["tokens"]) == len(LONG)
    required = {name: tool.inputSchema.get("required", []) for name, tool in tools.items()}
    assert required["generate"] == required["attention"] == ["prompt"] and required["tokenize"] == ["text"]
    assert tools["attention"].inputSchema["properties"]["whole"]["default"] is False


def test_a_tool_says_what_is_wrong_with_a_call(server: Server) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("no_such_tool", {}),
        ("generate", {"prompt": "To be", "colour": "red"}),
        ("generate", {}),
        ("attention", {"prompt": "so", "layer": 99}),
        ("knockout", {"prompt": "so", "model": "missing"}),
    ]
    _, results = run_async(with_tools(server.url, {}, calls))
    assert all(result.isError for result in results)
    said = [result.content[0].text for result in results]
    for text, expected in zip(said, ("no_such_tool", "colour", "prompt", "layer", "missing"), strict=True):
        assert expected in text
    listed = httpx.get(f"{server.url}/gradio_api/mcp/schema").json()
    assert {"generate", "knockout"} <= {tool["name"] for tool in listed}
    assert httpx.get(f"{server.url}/gradio_api/mcp/").status_code == 405


def test_mcp_needs_the_key(launch: Any, checkpoints: Any) -> None:
    server = launch(checkpoints / "tiny", api_key=KEY)
    with pytest.raises(BaseExceptionGroup) as refused:
        run_async(with_tools(server.url, {}, []))
    assert "401" in str(refused.value.exceptions)
