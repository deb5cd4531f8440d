"""The questions about one prediction over HTTP give the numbers of the Python functions."""

from typing import Any

import httpx
import pytest
import torch
from gradio_client import Client

from helpers.models import max_difference
from helpers.server import Server
from model.lens import one_head
from model.lens.attribution import attribution
from model.lens.ledger import ledger
from model.lens.logit_lens import logit_lens
from model.lens.text_pass import TextPass

PROMPT = "so it is"
LAST = len(PROMPT) - 1


@pytest.fixture(scope="module")
def text(server: Server) -> TextPass:
    loaded = server.served.models["tiny"]
    return TextPass(loaded.gpt, loaded.tokenizer.encode(PROMPT))


def post(server: Server, name: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/lens/{name}", json={"model": "tiny", "prompt": PROMPT} | body, timeout=60)


def most_probable(text: TextPass, position: int) -> int:
    return int(text.logits(position, position + 1)[0].argmax())


def test_attribution_equals_the_library(server: Server, text: TextPass) -> None:
    for asked, position, token in [({}, LAST, most_probable(text, LAST)), ({"position": 2, "token": 9}, 2, 9)]:
        found = post(server, "attribution", **asked).json()
        expected = attribution(text, position=position, token=token)
        assert (found["position"], found["token"]["id"]) == (position, token)
        assert max_difference(torch.tensor(found["heads"]), expected.heads) < 1e-6
        assert max_difference(torch.tensor(found["mlps"]), expected.mlps) < 1e-6
        parts = sum(map(sum, found["heads"])) + sum(found["mlps"]) + found["embedding"] + found["biases"]
        assert parts == pytest.approx(found["logit"], abs=1e-3) and found["difference"] <= 1e-3
        assert found["sum"] == pytest.approx(parts, abs=1e-5)
    probabilities = text.logits(LAST, LAST + 1)[0].softmax(-1)
    found = post(server, "attribution", token=9, against=4).json()
    assert [token["id"] for token in found["alternatives"]] == probabilities.topk(6).indices.tolist()
    assert found["alternatives"][0]["probability"] == pytest.approx(float(probabilities.max()), abs=1e-6)
    assert found["against"]["id"] == 4
    expected = attribution(text, position=LAST, token=9, against=4)
    assert found["logit"] == pytest.approx(expected.logit, abs=1e-6)
    first, second = probabilities.topk(2).indices.tolist()
    for token, other in ((first, second), (second, first), (None, second)):
        assert post(server, "attribution", token=token, against="likeliest").json()["against"]["id"] == other


def test_one_head_equals_the_library(server: Server, text: TextPass) -> None:
    found = post(server, "head", layer=1, head=3, position=5, token=9).json()
    expected = one_head.head(text, layer=1, head=3, position=5, token=9)
    assert [key["text"] for key in found["keys"]] == list(PROMPT[:6])
    for name in ("weight", "norm", "attribution", "loss_change"):
        assert max_difference(torch.tensor([key[name] for key in found["keys"]]), getattr(expected, name)) < 1e-6
    assert found["sums"]["weight"] == pytest.approx(1, abs=1e-6)
    assert found["sums"]["norm"] == pytest.approx(expected.output_norm)
    assert {tuple(row["measures"]): row["spearman"] for row in found["correlations"]} == expected.correlations()
    assert found["without_head"]["loss_change"] == pytest.approx(expected.removed.token)


def test_logit_lens_equals_the_library(server: Server, text: TextPass) -> None:
    found, expected = post(server, "logit-lens", top=3).json(), logit_lens(text, top=3)
    assert len(found["layers"]) == 4 and found["decided"] == expected.decided.tolist()
    for i, readings in enumerate(found["layers"]):
        assert [[token["id"] for token in reading["top"]] for reading in readings] == expected.ids[i].tolist()
        assert [reading["id"] for reading in readings] == expected.ids[i, :, 0].tolist()
        assert max_difference(torch.tensor([reading["kl"] for reading in readings]), expected.kl[i]) < 1e-6
    assert {reading["kl"] for reading in found["layers"][3]} == {0}


def test_ledger_equals_the_library(server: Server, text: TextPass) -> None:
    found = post(server, "ledger", layer=2, head=0, query=6, key=1, token=9).json()
    expected = ledger(text, layer=2, head=0, query=6, key=1, token=9)
    for name in (
        "query",
        "key",
        "products",
        "scaled",
        "exponentials",
        "weights",
        "value",
        "weighted",
        "terms",
        "parts",
    ):
        assert max_difference(torch.tensor(found[name]), getattr(expected, name)) < 1e-6, name
    assert found["position"] == [6, 1] and max(found["errors"].values()) < 1e-4
    by_default = post(server, "ledger", layer=2, head=0).json()
    weights = text.attention(2)[0, LAST]
    assert by_default["position"] == [LAST, int(weights.argmax())]


@pytest.mark.parametrize(
    ("name", "body", "param"),
    [
        ("attribution", {"position": 8}, "position"),
        ("attribution", {"position": -1}, "position"),
        ("attribution", {"token": 96}, "token"),
        ("attribution", {"against": 96}, "against"),
        ("attribution", {"against": "best"}, "against"),
        ("attribution", {"token": "ab"}, "token"),
        ("attribution", {"against": "ab"}, "against"),
        ("head", {"head": 0}, "layer"),
        ("head", {"layer": 3, "head": 0}, "layer"),
        ("head", {"layer": 0, "head": 4}, "head"),
        ("logit-lens", {"top": 0}, "top"),
        ("logit-lens", {"top": 21}, "top"),
        ("ledger", {"layer": 0, "head": 0, "query": 8}, "query"),
        ("ledger", {"layer": 0, "head": 0, "query": 3, "key": 4}, "key"),
    ],
)
def test_bad_fields_are_refused_by_name(server: Server, name: str, body: dict[str, Any], param: str) -> None:
    answer = post(server, name, **body)
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] == param and param in error["message"]


def test_answers_too_large_for_json_are_refused(launch: Any, checkpoints: Any) -> None:
    from web.settings import Limits

    server = launch(checkpoints / "tiny", limits=Limits(max_json_weights=4 * len(PROMPT) * 2))
    assert post(server, "logit-lens", top=2).status_code == 200
    assert post(server, "logit-lens", top=3).json()["error"]["param"] == "top"


def test_gradio_endpoints_give_the_same_answers(server: Server) -> None:
    client = Client(server.url, verbose=False)
    assert (
        client.predict(PROMPT, "tiny", 5, 9, api_name="/attribution")
        == post(server, "attribution", position=5, token=9).json()
    )
    assert client.predict(PROMPT, "tiny", 1, 2, api_name="/head_lenses") == post(server, "head", layer=1, head=2).json()
    assert client.predict(PROMPT, "tiny", 2, api_name="/logit_lens") == post(server, "logit-lens", top=2).json()
    assert client.predict(PROMPT, "tiny", 1, 2, api_name="/ledger") == post(server, "ledger", layer=1, head=2).json()
    client.close()
