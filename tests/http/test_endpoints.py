"""/generate and /attention through gradio_client and as curl calls them, with valid and invalid input."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from helpers.server import CONTEXT, Server
from web.settings import Limits


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    client = Client(server.url, verbose=False)
    yield client
    client.close()


def test_generate_writes_what_the_model_writes(server: Server, client: Client) -> None:
    settings: dict[str, Any] = {"temperature": 0.9, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "seed": 7}
    loaded = server.services.served.models["tiny"]
    expected = "".join(step.text for step in loaded.generate("To be", 12, **settings))
    assert client.predict("To be", "tiny", 12, 0.9, 20, 0.9, 0.01, 7, api_name="/generate") == expected
    assert client.predict("To be", max_new_tokens=12, **settings, api_name="/generate") == expected
    other = client.predict("To be", "other", 12, 0.9, 20, 0.9, 0.01, 7, api_name="/generate")
    assert other != expected and len(other) == 12


def test_generate_streams_the_text_so_far(server: Server, client: Client, slow: Any) -> None:
    gate = slow.gate
    job = client.submit("ab", model="slow", max_new_tokens=2, seed=1, api_name="/generate")
    gate.release()
    texts = iter(job)
    first = next(texts)
    gate.release()
    *_, last = texts
    assert len(first) == 1 and len(last) == 2 and last.startswith(first)


def test_texts_differ_without_a_seed(client: Client) -> None:
    texts = {client.predict("a", max_new_tokens=20, temperature=2, api_name="/generate") for _ in range(3)}
    assert len(texts) == 3


@pytest.mark.parametrize("top_k", [None, 0])
def test_top_k_none_and_0_keep_all_tokens(client: Client, top_k: int | None) -> None:
    wide = client.predict("a", max_new_tokens=20, temperature=5, top_k=top_k, seed=3, api_name="/generate")
    assert wide == client.predict("a", max_new_tokens=20, temperature=5, top_k=96, seed=3, api_name="/generate")


def test_generate_ends_at_a_full_context(client: Client) -> None:
    assert len(client.predict("a" * (CONTEXT - 4), max_new_tokens=100, api_name="/generate")) == 5
    assert len(client.predict("a" * CONTEXT, max_new_tokens=100, api_name="/generate")) == 1


def test_attention_equals_the_trace(server: Server, client: Client) -> None:
    found = client.predict("so it is", "tiny", 2, 1, api_name="/attention")
    trace = server.services.served.models["tiny"].trace("so it is")
    assert found["tokens"] == list("so it is")
    torch.testing.assert_close(torch.tensor(found["attention"]), trace.attention[2, 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompt": ""}, "empty"),
        ({"prompt": "caf\u00e9"}, "'\u00e9'"),
        ({"prompt": "a" * (CONTEXT + 1)}, f"{CONTEXT + 1} tokens, but this model reads at most {CONTEXT}"),
        ({"prompt": "a" * (Limits.max_prompt_characters + 1)}, "40,001 characters"),
        ({"prompt": 7}, "must be text"),
        ({"prompt": None}, "must be text"),
        ({"model": "nobody"}, "no model 'nobody'"),
        ({"model": "broken"}, "cannot be served"),
        ({"model": ["tiny"]}, "no model"),
        ({"max_new_tokens": 0}, "from 1 to"),
        ({"max_new_tokens": Limits.max_new_tokens + 1}, "from 1 to"),
        ({"max_new_tokens": 2.5}, "integer"),
        ({"max_new_tokens": True}, "integer"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_k": False}, "top_k"),
        ({"top_p": 0}, "top_p"),
        ({"min_p": 1.1}, "min_p"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_bad_input_is_refused_with_a_reason(client: Client, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AppError, match=said.replace("(", r"\(")):
        client.predict(**{"prompt": "ab", "max_new_tokens": 2} | changes, api_name="/generate")


@pytest.mark.parametrize(("layer", "head"), [(3, 0), (-1, 0), (0, 4), (0, 1.5), ("0", 0), (None, 0)])
def test_unknown_heads_are_refused(client: Client, layer: Any, head: Any) -> None:
    with pytest.raises(AppError, match="must be an integer from 0 to"):
        client.predict("ab", "tiny", layer, head, api_name="/attention")


@pytest.mark.parametrize("name", ["nobody", "nobody@5", 3, ["tiny"], {"a": 1}])
@pytest.mark.parametrize("endpoint", ["attention", "tokenize", "knockout"])
def test_unknown_models_are_refused(client: Client, endpoint: str, name: Any) -> None:
    with pytest.raises(AppError, match="no model|model:"):
        client.predict("ab", name, *([0, 0] if endpoint == "attention" else []), api_name=f"/{endpoint}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("field", ["temperature", "top_p", "min_p", "top_k", "seed", "max_new_tokens"])
def test_nan_and_infinity_are_refused(server: Server, field: str, number: str) -> None:
    assert field in call(server, "generate", f'{{"prompt": "ab", "{field}": {number}}}')["error"]


def call(server: Server, name: str, body: str) -> Any:
    """The last event of a call as curl would make it."""
    url = f"{server.url}/gradio_api/call"
    posted = httpx.post(f"{url}/v2/{name}", content=body, headers={"Content-Type": "application/json"})
    stream = httpx.get(f"{url}/{name}/{posted.json()['event_id']}", timeout=20).text
    return json.loads(stream.strip().rsplit("data: ", 1)[1])


def test_endpoints_work_over_curl(server: Server) -> None:
    (text,) = call(server, "generate", '{"prompt": "ab", "max_new_tokens": 3, "seed": 1}')
    assert len(text) == 3
    (found,) = call(server, "attention", '{"prompt": "abc", "layer": 1, "head": 3}')
    assert len(found["attention"]) == 3 and abs(sum(found["attention"][2]) - 1) < 1e-5


def test_only_documented_endpoints_are_public(client: Client) -> None:
    endpoints = client.view_api(return_format="dict")["named_endpoints"]
    lenses = {"/roles", "/knockout", "/removal", "/attribution", "/head_lenses", "/logit_lens", "/ledger"}
    lenses |= {
        "/patch",
        "/composition",
        "/paths",
        "/patch_paths",
        "/role_paths",
        "/difference",
        "/passages",
        "/text_roles",
        "/circuit",
        "/token_circuit",
        "/neuron",
    }
    of_many = ("knockout", "removal", "attribution", "head_lenses", "logit_lens", "patch", "paths", "difference")
    lenses |= {f"/{name}_prompts" for name in (*of_many, "text_roles")}
    assert set(endpoints) == {"/attention", "/generate", "/models", "/tokenize", "/train"} | lenses
    generate = [parameter["parameter_name"] for parameter in endpoints["/generate"]["parameters"]]
    assert generate == ["prompt", "model", "max_new_tokens", "temperature", "top_k", "top_p", "min_p", "seed"]
