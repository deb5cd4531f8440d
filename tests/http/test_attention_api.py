"""/v1/attention: the weights of a trace, as JSON and as safetensors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from gradio_client import Client
from safetensors.torch import load

import model
from helpers.models import max_difference
from helpers.server import CONTEXT, Server, save_tiny
from model.checkpoint.write import write_snapshot
from model.lens.text_pass import TextPass
from web.api import attention_answer
from web.settings import Limits

PROMPT = "so it is"
ALL = {"layers": [0, 1, 2], "heads": [0, 1, 2, 3]}


def post(server: Server, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/attention", json={"model": "tiny"} | body, timeout=60)


def metadata_of(content: bytes) -> dict[str, str]:
    length = int.from_bytes(content[:8], "little")
    return dict(json.loads(content[8 : 8 + length])["__metadata__"])


@pytest.mark.parametrize("choice", [{}, {"layers": [1]}, {"layers": [2, 0], "heads": [3, 1]}])
@pytest.mark.parametrize("mask", [None, [[1.0, 0.0, 1.0, 1.0], [0.5] * 4, [1.0] * 4]])
def test_both_formats_give_the_trace(server: Server, choice: dict[str, Any], mask: Any) -> None:
    loaded = server.services.served.models["tiny"]
    expected = loaded.trace(PROMPT, head_mask=mask, **choice).attention
    found = post(server, prompt=PROMPT, head_mask=mask, **choice).json()
    assert found.keys() == {"model", "tokens", "layers", "heads", "attention"}
    assert found["tokens"] == [token._asdict() for token in loaded.trace(PROMPT).tokens]
    chosen = ALL | choice
    assert (found["model"], found["layers"], found["heads"]) == ("tiny", chosen["layers"], chosen["heads"])
    assert max_difference(torch.tensor(found["attention"]), expected) < 1e-5
    answer = post(server, prompt=PROMPT, head_mask=mask, format="safetensors", **choice)
    assert answer.headers["content-type"] == "application/octet-stream"
    (tensor,) = load(answer.content).values()
    assert tensor.dtype == torch.float32 and max_difference(tensor, expected) < 1e-5
    metadata = metadata_of(answer.content)
    assert metadata["model"] == "tiny" and json.loads(metadata["heads"]) == chosen["heads"]
    assert json.loads(metadata["tokens"]) == found["tokens"]


@pytest.mark.parametrize("n_weights", [1, 5, 16, 33, 200, 65_536])
def test_answer_is_streamed_in_pieces(server: Server, monkeypatch: pytest.MonkeyPatch, n_weights: int) -> None:
    """The oracles: ``json.dumps`` and the file that safetensors makes of the whole trace at once."""
    monkeypatch.setattr(attention_answer, "PIECE_WEIGHTS", n_weights)
    loaded = server.services.served.models["tiny"]
    ids = loaded.tokenizer.encode(PROMPT)
    weights = loaded.trace(PROMPT).attention[[2, 0]][:, [3, 1]]
    answer = attention_answer.AttentionBody(loaded, ids, [2, 0], [3, 1], None)
    as_json, binary = list(answer.json()), list(answer.safetensors())
    assert max_difference(torch.tensor(json.loads(b"".join(as_json))["attention"]), weights) < 1e-5
    assert max_difference(load(b"".join(binary))["attention"], weights) < 1e-5
    most = max(n_weights, len(ids))  # a row is not cut
    assert all(piece.count(b",") <= most for piece in as_json[1:]) and all(len(p) <= 4 * most for p in binary[1:])


@pytest.mark.parametrize("heads", [[0], [0, 1, 2, 3]])
def test_response_memory_is_counted_in_the_budget(server: Server, heads: list[int]) -> None:
    loaded = server.services.served.models["tiny"]
    ids = loaded.tokenizer.encode("a" * 64)
    answer = attention_answer.AttentionBody(loaded, ids, [0, 1, 2], heads, None)
    pieces = max(map(len, (*answer.json(), *answer.safetensors())))
    stream, layer = TextPass(loaded.gpt, ids).nbytes, torch.zeros(len(heads), 64, 64).nbytes
    assert stream + layer + 2 * pieces < answer.held_bytes - attention_answer.REQUEST_BYTES


def test_tokens_may_replace_the_prompt(server: Server) -> None:
    ids = server.services.served.models["tiny"].tokenizer.encode(PROMPT)
    assert post(server, tokens=ids).json() == post(server, prompt=PROMPT).json()


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({}, "prompt", "invalid_value"),
        ({"prompt": "a", "tokens": [1]}, "prompt", "invalid_value"),
        ({"prompt": ""}, "prompt", "empty_prompt"),
        ({"tokens": []}, "prompt", "empty_prompt"),
        ({"prompt": "a" * (CONTEXT + 1)}, "prompt", "context_length_exceeded"),
        ({"prompt": "a" * (Limits.max_prompt_characters + 1)}, "prompt", "invalid_value"),
        ({"prompt": "a", "layers": [3]}, "layers", "invalid_value"),
        ({"prompt": "a", "layers": [0, 0]}, "layers", "invalid_value"),
        ({"prompt": "a", "heads": []}, "heads", "invalid_value"),
        ({"prompt": "a", "heads": [True]}, "heads", "invalid_value"),
        ({"prompt": "a", "head_mask": [[1.0]]}, "head_mask", "invalid_value"),
        ({"prompt": "a", "format": "xml"}, "format", "invalid_value"),
        ({"prompt": "a", "query": 1}, "query", "unsupported_option"),
    ],
)
def test_bad_fields_are_refused_by_name(server: Server, body: dict[str, Any], param: str, code: str) -> None:
    answer = post(server, **body)
    error = answer.json()["error"]
    assert answer.status_code == 400 and (error["param"], error["code"]) == (param, code)


def test_oversized_json_answers_name_safetensors(launch: Any, checkpoints: Any) -> None:
    """Just below and just above the limit; safetensors has no limit."""
    n = 3 * 4 * len(PROMPT) ** 2
    for most, status in ((n, 200), (n - 1, 400)):
        server = launch(checkpoints / "tiny", limits=Limits(max_json_weights=most))
        answer = post(server, prompt=PROMPT)
        assert answer.status_code == status
        assert post(server, prompt=PROMPT, format="safetensors").status_code == 200
        if status == 400:
            error = answer.json()["error"]
            assert error["code"] == "too_many_weights"
            assert all(word in error["message"] for word in ("safetensors", "layers", "heads"))


def test_attention_of_a_training_snapshot(launch: Callable[..., Server], tmp_path: Path) -> None:
    """``NAME@STEP`` reads with the snapshot of that training step."""
    folder, other = save_tiny(tmp_path / "kept"), model.load(save_tiny(tmp_path / "other", seed=3), device="cpu")
    write_snapshot(folder, 20, other.config, other.gpt.state_dict())
    server = launch(folder)
    expected = model.load(f"{folder}@000020", device="cpu").trace(PROMPT).attention
    for name in ("kept@20", "kept@000020"):
        found = post(server, model=name, prompt=PROMPT).json()
        assert found["model"] == "kept@20"
        assert max_difference(torch.tensor(found["attention"]), expected) < 1e-5
        content = post(server, model=name, prompt=PROMPT, format="safetensors").content
        assert max_difference(load(content)["attention"], expected) < 1e-5
    answer = httpx.post(f"{server.url}/v1/embeddings", json={"model": "kept@20", "input": PROMPT})
    assert answer.json()["model"] == "kept@20"
    client = Client(server.url, verbose=False)
    told = client.predict(PROMPT, "kept@20", 1, 1, api_name="/attention")["attention"]
    assert max_difference(torch.tensor(told), expected[1, 1]) < 1e-5
    for name, status in (("kept@21", 400), ("kept@", 404), ("nobody@20", 404), ("kept@2e1", 404)):
        refused = post(server, model=name, prompt=PROMPT)
        assert refused.status_code == status and refused.json()["error"]["param"] in ("model", "step")
    # Texts can be written only with models, not with snapshots.
    refused = httpx.post(f"{server.url}/v1/completions", json={"model": "kept@20", "prompt": PROMPT})
    assert refused.status_code == 404 and refused.json()["error"]["code"] == "model_not_found"
