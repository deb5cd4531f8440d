"""/v1/activations: a safetensors file with the activations of a text, as the library computes them."""

import json
from typing import Any

import httpx
import pytest
import torch
from safetensors.torch import load

from helpers.models import max_difference
from helpers.server import Server
from model import InputError
from model.lens.interventions.sites import SITES, layer_activations
from model.lens.text_pass import TextPass
from model.points import WEIGHTS

PROMPT = "so it is"


def post(server: Server, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/activations", json={"model": "tiny", "prompt": PROMPT} | body, timeout=60)


@pytest.mark.parametrize("mask", [None, [[1.0, 0.0, 1.0, 1.0], [0.5] * 4, [1.0] * 4]])
@pytest.mark.parametrize("choice", [{}, {"layers": [2, 0], "positions": [7, 1]}])
def test_activations_equal_the_library(server: Server, choice: dict[str, Any], mask: Any) -> None:
    loaded = server.served.models["tiny"]
    ids = loaded.tokenizer.encode(PROMPT)
    text = TextPass(loaded.gpt, ids, None if mask is None else torch.tensor(mask))
    lacking = ("attn.hook_rot_q", "attn.hook_rot_k", "mlp.hook_pre_linear", "ln1_post.", "ln2_post.")
    sites = [site for site in SITES.values() if not site.hook.startswith(lacking)]
    answer = post(server, sites=[site.name for site in sites], head_mask=mask, **choice)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/octet-stream"
    found = load(answer.content)
    positions = choice.get("positions", list(range(len(PROMPT))))
    layers = choice.get("layers", [0, 1, 2])
    assert len(found) == len(layers) * len(sites)
    for layer in layers:
        for site, x in zip(sites, layer_activations(text, layer, sites), strict=True):
            expected = x[0, :, positions] if site.hook in WEIGHTS else x[0, positions]
            ours = found[site.at(layer)]
            assert ours.shape == expected.shape and max_difference(ours, expected) < 1e-6
    length = int.from_bytes(answer.content[:8], "little")
    metadata = json.loads(answer.content[8 : 8 + length])["__metadata__"]
    assert metadata["names"] == "TransformerLens 3.9, weights as published"
    assert metadata["model"] == "tiny" and json.loads(metadata["positions"]) == positions
    assert [token["id"] for token in json.loads(metadata["tokens"])] == ids


@pytest.mark.parametrize("mask", [None, [[1.0, 0.0, 1.0, 1.0], [0.5] * 4, [1.0] * 4]])
def test_the_method_of_a_loaded_model_gives_the_same(server: Server, mask: Any) -> None:
    loaded, sites = server.served.models["tiny"], ["hook_z", "pattern", "mlp_post", "k"]
    text = PROMPT if mask is None else loaded.trace(PROMPT, head_mask=mask)
    found = loaded.activations(text, sites, layers=[2, 0])
    sent = load(post(server, sites=sites, layers=[2, 0], head_mask=mask).content)
    assert found.keys() == sent.keys()
    assert all(found[name].shape == x.shape and max_difference(found[name], x) < 1e-5 for name, x in sent.items())
    assert len(loaded.activations(PROMPT, ["z"])) == 3
    for given, field in (((["nowhere"],), "sites"), ((["z"], [3]), "layers")):
        with pytest.raises(InputError) as refused:
            loaded.activations(PROMPT, *given)
        assert refused.value.field == field


def test_names_of_transformer_lens(server: Server) -> None:
    both = load(post(server, sites=["hook_z", "attn.hook_z", "z", "hook_resid_pre"], layers=[1]).content)
    assert set(both) == {"blocks.1.attn.hook_z", "blocks.1.hook_resid_pre"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "sites"),
        ({"sites": []}, "sites"),
        ({"sites": ["hook_nothing"]}, "sites"),
        ({"sites": ["rot_q"]}, "sites"),
        ({"sites": ["z"], "layers": [3]}, "layers"),
        ({"sites": ["z"], "positions": [8]}, "positions"),
        ({"sites": ["z"], "tokens": [1]}, "prompt"),
        ({"sites": ["z"], "prompt": "é"}, "prompt"),
        ({"sites": ["z"], "model": "nobody"}, "model"),
    ],
)
def test_bad_input_is_named(server: Server, body: dict[str, Any], param: str) -> None:
    answer = post(server, **body)
    assert answer.status_code in (400, 404) and answer.json()["error"]["param"] == param
