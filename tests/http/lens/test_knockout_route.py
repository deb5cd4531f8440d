"""/v1/lens/knockout: the knockout map as JSON, as a stream, and as an endpoint."""

from typing import Any

import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from helpers.models import max_difference
from helpers.server import Server
from model.lens.interventions.knockout import knockout, removal
from model.lens.interventions.reference import contexts_of, mean_contexts, shipped_passages
from model.lens.text_pass import TextPass
from web.settings import Limits

PROMPT = "so it is"


def post(server: Server, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/lens/knockout", json={"model": "tiny", "prompt": PROMPT} | body, timeout=60)


OTHER = "as he was"


@pytest.mark.parametrize(
    ("method", "texts", "name"),
    [
        ("zero", None, None),
        ("text_mean", None, None),
        ("mean", None, "24 short English passages"),
        ("mean", ["to be", OTHER], "the given texts"),
        ("resample", [OTHER], "the given text"),
    ],
)
def test_knockout_equals_the_library(server: Server, method: Any, texts: list[str] | None, name: str | None) -> None:
    loaded = server.served.models["tiny"]
    ids = [loaded.tokenizer.encode(text) for text in texts] if texts else shipped_passages(loaded)
    reference = mean_contexts(loaded.gpt, ids) if method == "mean" else None
    if method == "resample":
        reference = contexts_of(TextPass(loaded.gpt, ids[0]), len(PROMPT))
    read = TextPass(loaded.gpt, loaded.tokenizer.encode(PROMPT))
    expected = knockout(read, method=method, reference=reference)
    given: dict[str, Any] = {"method": method} | ({"reference": texts} if texts else {})
    found = post(server, **given, per_token=True).json()
    said = {"name": name, "texts": len(ids), "tokens": sum(map(len, ids))}
    assert found["reference"] == (said if name else None)
    assert found["loss"] == pytest.approx(expected.loss, abs=1e-6)
    assert max_difference(torch.tensor(found["delta"]), expected.delta) < 1e-6
    assert max_difference(torch.tensor(found["token_loss"]), expected.token_loss) < 1e-6
    assert max_difference(torch.tensor(found["token_delta"]), expected.token_delta) < 1e-6
    assert found["model"] == "tiny" and found["method"] == method
    assert [token["text"] for token in found["tokens"]] == list(PROMPT)
    assert found["precision"] == {"computed": "float32", "served": "float32"}
    short = post(server, **given).json()
    assert short == {name: value for name, value in found.items() if not name.startswith("token_")}


def test_heads_removed_together(server: Server) -> None:
    def ask(**body: Any) -> httpx.Response:
        return httpx.post(f"{server.url}/v1/lens/removal", json={"model": "tiny", "prompt": PROMPT} | body, timeout=60)

    loaded = server.served.models["tiny"]
    text = TextPass(loaded.gpt, loaded.tokenizer.encode(PROMPT))
    expected = removal(text, [(0, 1), (2, 3)], method="text_mean")
    found = ask(heads=[[0, 1], [2, 3]], method="text_mean").json()
    assert found["loss"] == pytest.approx(expected.loss, abs=1e-6)
    assert found["delta"] == pytest.approx(expected.delta, abs=1e-6)
    assert max_difference(torch.tensor(found["token_delta"]), expected.token_delta) < 1e-6
    for heads in ([], [[3, 0]], [[0, -1]], [[0]]):
        answer = ask(heads=heads)
        assert answer.status_code == 400 and answer.json()["error"]["param"].startswith("heads"), answer.text


def test_knockout_under_a_head_mask(server: Server) -> None:
    mask = [[1.0] * 4, [1.0, 0.0, 1.0, 1.0], [1.0] * 4]
    found = post(server, head_mask=mask).json()
    assert abs(found["delta"][1][1]) < 1e-6
    assert found["loss"] != post(server).json()["loss"]


def test_knockout_over_gradio(server: Server) -> None:
    client = Client(server.url, verbose=False)
    expected = post(server, method="mean").json()
    assert client.predict(PROMPT, "tiny", "mean", api_name="/knockout") == expected
    assert client.predict(PROMPT, api_name="/knockout")["method"] == "zero"
    for wrong, message in (
        ({"method": "half"}, "method"),
        ({"prompt": "é"}, "never seen"),
        ({"model": "x"}, "no model"),
    ):
        with pytest.raises(AppError, match=message):
            client.predict(**{"prompt": PROMPT} | wrong, api_name="/knockout")
    client.close()


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"prompt": "a"}, "prompt", "invalid_value"),
        ({"method": "half"}, "method", "invalid_value"),
        ({"per_token": 1}, "per_token", "invalid_value"),
        ({"reference": [OTHER]}, "reference", "invalid_value"),
        ({"method": "text_mean", "reference": [OTHER]}, "reference", "invalid_value"),
        ({"method": "mean", "reference": []}, "reference", "invalid_value"),
        ({"method": "mean", "reference": ["é"]}, "reference", "unknown_characters"),
        ({"method": "resample"}, "reference", "invalid_value"),
        ({"method": "resample", "reference": ["short"]}, "reference", "invalid_value"),
        ({"method": "resample", "reference": [OTHER, OTHER]}, "reference", "invalid_value"),
    ],
)
def test_bad_fields_are_refused_by_name(server: Server, body: dict[str, Any], param: str, code: str) -> None:
    answer = post(server, **body)
    error = answer.json()["error"]
    assert answer.status_code == 400 and (error["param"], error["code"]) == (param, code)


def test_oversized_knockouts_are_refused(launch: Any, checkpoints: Any) -> None:
    n = 3 * 4 * (len(PROMPT) - 1)
    for most, status in ((n, 200), (n - 1, 400)):
        server = launch(checkpoints / "tiny", limits=Limits(max_json_weights=most))
        assert post(server, per_token=True).status_code == status
        assert post(server).status_code == 200
