"""/v1/lens/NAME/prompts: every row equals the question about one prompt, and the mean and error are those of NumPy."""

import json
from typing import Any

import httpx
import numpy as np
import pytest

from helpers.server import Server
from web.ask.fields import MAX_ROWS
from web.settings import Limits

ROWS: list[dict[str, Any]] = [
    {"prompt": "so it is", "corrupted": "so he is", "answer": "a", "wrong": "b"},
    {"prompt": "as it was then", "corrupted": "as he was then", "answer": "c", "wrong": 7},
    {"prompt": "to be", "corrupted": "to me", "answer": "d", "wrong": "e"},
]


def post(server: Server, name: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/lens/{name}", json={"model": "tiny"} | body, timeout=60)


def ids(server: Server, token: Any) -> int:
    return token if isinstance(token, int) else int(server.served.models["tiny"].tokenizer.encode(token)[0])


def alone(server: Server, name: str, row: dict[str, Any], **body: Any) -> dict[str, Any]:
    """The question about one row, through the route for a single prompt."""
    one = {"prompt": row["prompt"]} | body
    match name:
        case "attribution":
            one |= {"token": ids(server, row["answer"]), "against": ids(server, row["wrong"])}
        case "head" | "logit-lens":
            one |= {"token": ids(server, row["answer"])}
        case "difference":
            one |= {"other": row["corrupted"]}
        case "paths":
            one |= row
        case "patch":
            one |= row | {"site": body.get("site", "z"), "positions": "all"}
    found: dict[str, Any] = post(server, name, **one).json()
    if name == "logit-lens":
        return {"answer": [readings[-1]["answer"] for readings in found["layers"]], "decided": found["decided"][-1]}
    return found


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("knockout", {}, {"loss": ["loss"], "delta": ["delta"]}),
    ("knockout", {"method": "mean"}, {"delta": ["delta"]}),
    ("removal", {"heads": [[0, 1], [2, 0]]}, {"delta": ["delta"]}),
    ("attribution", {}, {"heads": ["heads"], "mlps": ["mlps"], "logit": ["logit"]}),
    ("paths", {"layer": 2, "head": 1}, {"direct_k": ["patched", "direct", "k"], "clean": ["patched", "clean"]}),
    ("head", {"layer": 2, "head": 1}, {"norm": ["sums", "norm"], "without_head": ["without_head", "loss_change"]}),
    ("logit-lens", {}, {"answer": ["answer"], "decided": ["decided"]}),
    ("patch", {}, {"exact": ["site", "exact"], "clean": ["clean"]}),
    ("patch", {"site": "attn.hook_v", "method": "both"}, {"estimate": ["site", "estimate"]}),
    ("text-roles", {}, {"previous_token": ["scores", "previous_token"], "self": ["scores", "self"]}),
    ("difference", {}, {"heads": ["heads"]}),
]


@pytest.mark.parametrize(("name", "body", "numbers"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_rows_equal_single_prompts(
    server: Server, name: str, body: dict[str, Any], numbers: dict[str, list[str]]
) -> None:
    found = post(server, f"{name}/prompts", prompts=ROWS, **body).json()
    single = [alone(server, name, row, **body) for row in ROWS]
    assert found["n"] == 3 and [row["row"] for row in found["rows"]] == [0, 1, 2]
    for number, path in numbers.items():
        expected: list[Any] = single
        for step in path:
            expected = [each[step] for each in expected]
        samples = np.array(expected, dtype=float)
        assert np.allclose([row[number] for row in found["rows"]], samples, atol=1e-5)
        assert np.allclose(found["mean"][number], samples.mean(0), atol=1e-5)
        assert np.allclose(found["standard_error"][number], samples.std(0, ddof=1) / 3**0.5, atol=1e-5)


def test_position_by_position_rows_are_as_long_as_the_first(server: Server) -> None:
    rows = [ROWS[0], ROWS[1], ROWS[0] | {"prompt": "so we is"}]
    found = post(server, "patch/prompts", prompts=rows, positions="each").json()
    assert "".join(token["text"] for token in found["tokens"]) == ROWS[0]["prompt"]
    assert found["n"] == 2 and "14 tokens and the first row 8" in found["rows"][1]["error"]
    single = [post(server, "patch", **row, site="z", positions="each").json()["site"]["exact"] for row in rows[::2]]
    assert np.allclose(found["mean"]["exact"], np.mean(single, axis=0), atol=1e-5)
    assert post(server, "patch/prompts", prompts=rows).json()["tokens"] is None


def test_rows_may_be_token_ids(server: Server) -> None:
    encode = server.served.models["tiny"].tokenizer.encode
    as_ids = [row | {name: encode(row[name]) for name in ("prompt", "corrupted")} for row in ROWS]
    found = post(server, "patch/prompts", prompts=as_ids).json()
    assert found == post(server, "patch/prompts", prompts=ROWS).json()


def test_rows_are_streamed(server: Server) -> None:
    prompts = ["streamed one", "streamed two", {"prompt": "and three"}]
    for _ in ("computed", "cached"):
        answer = post(server, "knockout/prompts", prompts=prompts, stream=True)
        *events, done, rest = answer.text.split("\n\n")
        assert done == "data: [DONE]" and not rest
        *before, last = [json.loads(event.removeprefix("data: ")) for event in events]
        assert [event["row"] for event in before if "row" in event] == last["rows"] and last["n"] == 3


def test_one_row_has_no_error(server: Server) -> None:
    found = post(server, "knockout/prompts", prompts=["so it is"]).json()
    assert found["n"] == 1 and not np.array(found["standard_error"]["delta"]).any()


@pytest.mark.parametrize(
    ("name", "row", "field", "message"),
    [
        ("knockout", "a", "prompts[1].prompt", "at least two tokens"),
        ("knockout", "é" * 3, "prompts[1].prompt", "é"),
        ("knockout", 5, "prompts[1].row", "a text, or an object with a prompt"),
        ("knockout", {"prompt": "so", "colour": "red"}, "prompts[1].colour", "There is no column"),
        ("knockout", {"corrupted": "so"}, "prompts[1].prompt", "needed"),
        ("attribution", {"prompt": "so", "answer": "ab"}, "prompts[1].answer", "a single token"),
        ("knockout", {"prompt": [84, 96]}, "prompts[1].prompt", "96"),
        ("knockout", {"prompt": [84, "a"]}, "prompts[1].prompt", "text or token ids"),
        ("attribution", {"prompt": "so", "wrong": True}, "prompts[1].wrong", "text or a token id"),
        ("patch", {"prompt": "so it"}, "prompts[1].corrupted", "corrupted is needed"),
        ("patch", {"prompt": "so it", "corrupted": "so"}, "prompts[1].corrupted", "same number of tokens"),
    ],
)
def test_bad_row_is_named_before_anything_runs(server: Server, name: str, row: Any, field: str, message: str) -> None:
    answer = post(server, f"{name}/prompts", prompts=[ROWS[0], row])
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] == field
    assert error["message"].startswith("prompts[1]: ") and message in error["message"]


def test_row_that_only_the_model_can_refuse_is_left_out(server: Server) -> None:
    same = {"prompt": "so it is", "corrupted": "so he is", "answer": "a", "wrong": "a"}
    found = post(server, "patch/prompts", prompts=[*ROWS, same]).json()
    assert found["n"] == 3 and "two different tokens" in found["rows"][3]["error"]
    assert found["mean"] == post(server, "patch/prompts", prompts=ROWS).json()["mean"]
    refused = post(server, "patch/prompts", prompts=[same]).json()["error"]
    assert refused["param"] == "prompts" and "No row could be answered" in refused["message"]


def test_bodies_are_bounded(server: Server) -> None:
    assert post(server, "text-roles/prompts", prompts=["so"] * (MAX_ROWS + 1)).status_code == 400
    assert post(server, "text-roles/prompts", prompts=[]).status_code == 400
    assert post(server, "text-roles/prompts", prompts=["é" * 1_000] * 900).status_code == 400  # read, and refused
    assert post(server, "text-roles/prompts", prompts=["a" * 2_100] * 1_000).status_code == 413


def test_the_size_of_an_answer_is_bounded(launch: Any, checkpoints: Any) -> None:
    """Before the second row is computed: a tiny model has 12 heads, and its knockout 13 numbers."""
    for most, status in ((39, 200), (38, 400)):
        server = launch(checkpoints / "tiny", limits=Limits(max_json_weights=most))
        answer = post(server, "knockout/prompts", prompts=ROWS)
        assert answer.status_code == status
    error = answer.json()["error"]
    expected = "The answer would have 39 numbers, 13 for each of 3 rows; at most 38 are sent. Send fewer rows."
    assert (error["param"], error["message"]) == ("prompts", expected)
