"""Properties of every question of Ask."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

import model
from helpers import also_slow
from helpers.api import Document, assert_same, open_post
from helpers.files import ROOT
from helpers.gate import Gate, News
from helpers.server import CONTEXT, LLAMA, QWEN3, Server, save_tiny, start
from helpers.siege.fuzz import few, the_document_is_as_strict_as_the_server
from web.api.lens import BODIES
from web.ask.fields import PROMPT
from web.ask.question import Question
from web.ask.table import QUESTIONS
from web.settings import Limits


def is_about_text(question: Question) -> bool:
    return PROMPT in question.fields


TEXTS = [question for question in QUESTIONS if is_about_text(question)]
MODELS = [question for question in QUESTIONS if not is_about_text(question)]
# The fields that a question requires in addition to a text.
NEEDED: dict[str, dict[str, Any]] = {
    "head": {"layer": 2, "head": 1},
    "removal": {"heads": [[0, 1], [2, 3]]},
    "ledger": {"layer": 2, "head": 1},
    "patch": {"corrupted": "so he is", "answer": "a", "wrong": "b"},
    "paths": {"layer": 2, "head": 1},
    "patch-paths": {"corrupted": "so he is", "answer": "a", "wrong": "b"},
    "role-paths": {"layer": 2, "head": 1},
    "difference": {"other": "so he is"},
    "passages": {"text": "so it is, and so it was"},
    "token-circuit": {"layer": 2, "head": 1},
    "neuron": {"text": "so it is, and so it was", "layer": 1, "neuron": 5},
}
PAIRS = [
    {"prompt": "so it is", "corrupted": "so he is", "answer": "a", "wrong": "b"},
    {"prompt": "as it was", "corrupted": "as he was", "answer": "c", "wrong": "d"},
]
NEEDED["circuit"] = {"prompts": PAIRS}
NEEDED |= {
    f"{name}/prompts": {
        each: value for each, value in NEEDED.get(name, {}).items() if each in ("heads", "layer", "head")
    }
    | {"prompts": PAIRS}
    for name in (question.name.split("/")[0] for question in QUESTIONS if "/" in question.name)
}
every_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
every_text_question = pytest.mark.parametrize("question", TEXTS, ids=lambda question: question.name)


NORMALISED = "normalises each query and key"  # the reason for which Qwen 3 has no composition


@pytest.fixture(scope="module")
def families(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Llama and a Qwen 3."""
    root = tmp_path_factory.mktemp("families")
    server = start(save_tiny(root / "llama", **LLAMA), save_tiny(root / "qwen3", **QWEN3))
    yield server
    server.close()


def ask(server: Server, question: Question, **body: Any) -> httpx.Response:
    url = f"{server.url}/v1{question.path}"
    body = {"model": "tiny"} | NEEDED.get(question.name, {}) | body
    if question.method == "GET":
        return httpx.get(url, params={name: str(value).lower() for name, value in body.items()}, timeout=60)
    has_text = {"prompt", "tokens"} & body.keys() or not is_about_text(question)
    return httpx.post(url, json=body if has_text else {"prompt": "so it is"} | body, timeout=60)


def events_of(answer: httpx.Response) -> list[Any]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, done, rest = answer.text.split("\n\n")
    assert done == "data: [DONE]" and not rest
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.fixture(scope="module")
def document(server: Server) -> Document:
    return Document(httpx.get(f"{server.url}/v1/openapi.json").json())


@every_question
def test_streamed_answer_equals_plain_answer(server: Server, document: Document, question: Question) -> None:
    server.services.answers.answers.entries.clear()
    *progress, streamed = [event for event in events_of(ask(server, question, stream=True)) if "row" not in event]
    whole = ask(server, question)
    assert whole.status_code == 200 and whole.json() == streamed
    document.check_answer(question.path, question.method.lower(), whole)
    fractions = [event["progress"] for event in progress]
    assert fractions == sorted(fractions) and all(0 <= fraction <= 1 for fraction in fractions)
    assert streamed["model"] == "tiny" and streamed["precision"]["computed"] == "float32"


def test_a_circuit_is_streamed_while_it_is_found(server: Server) -> None:
    server.services.answers.answers.entries.clear()
    (circuit,) = [question for question in QUESTIONS if question.name == "circuit"]
    *before, answer = events_of(ask(server, circuit, stream=True))
    rows = [event["row"] for event in before if "row" in event]
    assert rows and rows[-1]["n_edges"] >= len(answer["edges"])
    assert all(set(row) == {"nodes", "n_edges", "edges"} for row in rows)


@every_question
def test_first_model_is_the_default(server: Server, question: Question) -> None:
    assert ask(server, question, model="").json()["model"] == "tiny"


def test_other_families_are_listed_with_their_groups_of_heads(families: Server) -> None:
    listed = httpx.get(f"{families.url}/v1/models").json()["data"]
    found = [(each["id"], each["model_type"], each["n_head"], each["n_kv_head"]) for each in listed]
    assert found == [("llama", "llama", 4, 2), ("qwen3", "qwen3", 4, 2)]


@every_question
@pytest.mark.parametrize("name", ["llama", *also_slow("qwen3")])
def test_other_families_are_answered(families: Server, document: Document, question: Question, name: str) -> None:
    answer = ask(families, question, model=name)
    if (question.name, name) == ("composition", "qwen3"):
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, "model") and NORMALISED in error["message"]
    else:
        assert answer.status_code == 200 and answer.json()["model"] == name
        document.check_answer(question.path, question.method.lower(), answer)


@every_question
@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        ({"model": "nobody"}, 404, "model", "model_not_found"),
        ({"model": "broken"}, 404, "model", "model_not_found"),
        ({"colour": "red"}, 400, "colour", "unsupported_option"),
        ({"stream": "maybe"}, 400, "stream", "invalid_value"),
    ],
)
def test_bad_fields_are_refused_by_name(
    server: Server, question: Question, body: dict[str, Any], status: int, param: str, code: str
) -> None:
    answer = ask(server, question, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (status, param, code)


@every_text_question
@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"prompt": "a", "tokens": [1, 2]}, "prompt", "invalid_value"),
        ({"prompt": None}, "prompt", "invalid_value"),
        ({"prompt": ""}, "prompt", "empty_prompt"),
        ({"prompt": "a" * (CONTEXT + 1)}, "prompt", "context_length_exceeded"),
        ({"prompt": "a" * (Limits.max_prompt_characters + 1)}, "prompt", "invalid_value"),
        ({"prompt": "é"}, "prompt", "unknown_characters"),
        ({"tokens": [96]}, "prompt", "unknown_token"),
        ({"head_mask": [[1.0]]}, "head_mask", "invalid_value"),
    ],
)
def test_text_that_cannot_be_tokenized_is_refused(
    server: Server, question: Question, body: dict[str, Any], param: str, code: str
) -> None:
    answer = ask(server, question, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code)


@every_text_question
def test_tokens_may_replace_the_prompt(server: Server, question: Question) -> None:
    ids = server.served.models["tiny"].tokenizer.encode("so it is")
    assert ask(server, question, tokens=ids).json() == ask(server, question).json()


@every_text_question
def test_openapi_document_is_as_strict_as_the_server(server: Server, document: Document, question: Question) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        few(the_document_is_as_strict_as_the_server(client, document, question.path[1:], BODIES[question.name]))


@pytest.mark.slow
def test_questions_about_a_training_snapshot(launch: Any, tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "trained", n_layer=3, n_head=4)
    other = save_tiny(tmp_path / "early", seed=5, n_layer=3, n_head=4)
    (folder / "steps").mkdir()
    (other / "model.safetensors").rename(folder / "steps" / "000012.safetensors")
    server = launch(folder)
    for question in QUESTIONS:
        early = ask(server, question, model="trained@000012")
        assert early.status_code == 200 and early.json()["model"] == "trained@12"
        assert ask(server, question, model="trained@12").json() == early.json()
        assert ask(server, question, model="trained").json() != early.json() | {"model": "trained"}
        assert ask(server, question, model="trained@13").json()["error"]["param"] == "step"
        assert ask(server, question, model="trained@x").json()["error"]["code"] == "model_not_found"


MASK = [[1, 0.5, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0]]
IDS = {"tokens": [84, 80, 1, 74, 85]}
COPIED = [(question.name, NEEDED.get(question.name, {})) for question in QUESTIONS if question.name != "knockout"] + [
    ("knockout", {"per_token": True, "method": "resample", "reference": ["so he was 1"], "head_mask": MASK, **IDS}),
    ("knockout", {"per_token": True}),
    ("attribution", {"position": 3, "against": "likeliest", "token": None}),
    (
        "patch",
        {"corrupted_tokens": [84, 80, 1, 74, 1], "heads": [[0, 1], [2, 3]], "head_mask": MASK, **IDS},
    ),
    ("patch", NEEDED["patch"] | {"heads": [[1, 0]], "grid": False}),
    ("patch", NEEDED["patch"] | {"site": "v", "method": "both"}),
    ("patch", NEEDED["patch"] | {"site": "mlp_post", "method": "attribution", "positions": "all"}),
    ("paths", NEEDED["paths"] | NEEDED["patch"] | {"direction": "noise"}),
    ("patch-paths", NEEDED["patch-paths"] | {"receivers": [[2, 1], [1, 3]]}),
    ("difference", {"other_tokens": [84, 80, 1, 74, 85, 1], "other_model": "tiny", "head_mask": MASK}),
    ("token-circuit", NEEDED["token-circuit"] | {"earlier_layer": 0, "earlier_head": 3, "circuit": "qk", "side": "k"}),
    ("composition", {"centred": "true"}),
    ("knockout/prompts", {"prompts": PAIRS, "method": "resample", "head_mask": MASK}),
    ("removal/prompts", {"prompts": ['so it "is"', "'\n"], "heads": [[0, 1]]}),
    ("patch/prompts", {"prompts": PAIRS, "heads": [[0, 1]]}),
    ("circuit", {"prompts": [PAIRS[0] | {"prompt": IDS["tokens"], "corrupted": [84, 80, 1, 74, 1]}], "mlps": True}),
]


def is_composed(name: str, given: dict[str, Any]) -> bool:
    """Whether it needs one head's queries and keys as a product of the weights of two heads."""
    return name == "composition" or "earlier_layer" in given


WRITE_CALLS = """
import { lensCall } from "./web/js/calls/python.mjs";
process.stdout.write(JSON.stringify(JSON.parse(process.argv[1]).map(lensCall)));
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="Node runs the page's module")
@pytest.mark.parametrize("served", ["tiny", *also_slow("llama", "qwen3")])
def test_copied_python_gives_the_same_numbers(
    request: pytest.FixtureRequest, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue("server" if served == "tiny" else "families")
    monkeypatch.setitem(sys.modules, "headscope", model)
    (tmp_path / "checkpoints").symlink_to(Path(server.served.sources[served]).parent)
    monkeypatch.chdir(tmp_path)
    by_name = {question.name: question for question in QUESTIONS}
    asked, expected = [], []
    copied = [(name, given) for name, given in COPIED if served != "qwen3" or not is_composed(name, given)]
    for name, given in copied:
        body = {"model": served} | given | ({"other_model": served} if "other_model" in given else {})
        if is_about_text(by_name[name]) and "tokens" not in body:
            body["prompt"] = "so it is"
        is_posted = by_name[name].method == "POST"
        sent = body if is_posted else {field: str(value) for field, value in body.items()}
        asked.append({"route": name, "body" if is_posted else "query": sent})
        answer = httpx.request(
            by_name[name].method,
            f"{server.url}/v1/lens/{name}",
            **{"json" if is_posted else "params": sent},  # type: ignore[arg-type]
            timeout=60,
        )
        assert answer.status_code == 200, answer.text
        expected.append(answer.json())
    node = ["node", "--input-type=module", "-e", WRITE_CALLS, json.dumps(asked)]
    written = subprocess.run(node, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert written.returncode == 0, written.stderr
    for call, answer, (name, _) in zip(json.loads(written.stdout), expected, copied, strict=True):
        variables: dict[str, Any] = {}
        exec(call, variables)
        found = json.loads(json.dumps(variables["answer"]))
        for part in {"site", "patched"} - found.keys():  # which have methods of their own
            answer |= answer.pop(part, None) or {}
        assert found, name
        assert_same(found, answer, 1e-5, call)


def test_models_in_other_precisions_are_answered_in_float32(launch: Any, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny", dtype="bfloat16")
    for question in QUESTIONS:
        precision = ask(server, question).json()["precision"]
        assert (precision["computed"], precision["served"]) == ("float32", "bfloat16")
        if is_about_text(question):
            assert 0 < precision["largest_difference"] < 1
    assert server.served.models["tiny"].dtype == torch.bfloat16
    assert server.services.answers.copies.nbytes > 0


# ---- A question that a test can hold up ------------------------------------------------------------------------------


class HeldUp:
    """A stand-in for the computation of ``knockout`` that takes a step each time the test opens its gate."""

    def __init__(self) -> None:
        self.news = News()
        self.gate = Gate(self.news)
        self.began = self.ended = 0

    def compute(self, _service: Any, _inquiry: Any, progress: Any, _rows: Any) -> Any:
        self.began += 1
        self.news.tell()
        try:
            for step in range(4):
                while not self.gate.pass_through(lambda: True):
                    progress(step / 4)  # the point where a cancelled one ends
            return {"method": "zero", "loss": 0.0, "delta": []}
        finally:
            self.ended += 1
            self.news.tell()


@pytest.fixture
def held_up(monkeypatch: pytest.MonkeyPatch) -> HeldUp:
    held_up = HeldUp()
    monkeypatch.setitem(vars(TEXTS[0]), "compute", held_up.compute)  # the row is frozen
    return held_up


@pytest.mark.parametrize("stream", [True, False])
def test_disconnecting_stops_the_computation(launch: Any, checkpoints: Path, held_up: HeldUp, stream: bool) -> None:
    server = launch(checkpoints / "tiny")
    connection = open_post(server, "lens/knockout", prompt="so it is", stream=stream)
    held_up.news.wait_until(lambda: held_up.began)
    connection.close()
    held_up.news.wait_until(lambda: held_up.ended)
    assert not server.services.answers.answers.entries


def test_full_queue_answers_429_with_retry_after(launch: Any, checkpoints: Path, held_up: HeldUp) -> None:
    server = launch(checkpoints / "tiny", limits=Limits(max_questions=1, max_waiting=0))
    connection = open_post(server, "lens/knockout", prompt="so it is")
    held_up.news.wait_until(lambda: held_up.began)
    answer = ask(server, TEXTS[0])
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
    assert answer.json()["error"]["code"] == "queue_full"
    connection.close()
    held_up.news.wait_until(lambda: held_up.ended)


def test_failing_question_is_a_500_and_the_next_is_answered(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError("no more memory")

    body = {"prompt": "not asked before"}
    with monkeypatch.context() as broken:
        broken.setitem(vars(TEXTS[0]), "compute", fail)
        answer = ask(server, TEXTS[0], **body)
        assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error"
        (event,) = [event for event in events_of(ask(server, TEXTS[0], stream=True, **body)) if "error" in event]
        assert event["error"]["type"] == "server_error" and "no more memory" not in answer.text
    assert ask(server, TEXTS[0], **body).status_code == 200


def test_closing_cancels_running_questions(launch: Any, checkpoints: Path, held_up: HeldUp) -> None:
    server = launch(checkpoints / "tiny")
    connection = open_post(server, "lens/knockout", prompt="so it is")
    held_up.news.wait_until(lambda: held_up.began)
    server.services.close()
    held_up.news.wait_until(lambda: held_up.ended)
    assert b" 503 " in connection.recv(100)
    connection.close()
    assert ask(server, TEXTS[0]).status_code == 503


def test_outcomes_are_counted_in_the_metrics(launch: Any, checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny")
    for body in ({}, {}, {"prompt": ""}):
        ask(server, TEXTS[0], **body)
    text = httpx.get(f"{server.url}/metrics").text
    assert 'headscope_requests_total{outcome="ok",route="/v1/lens/knockout"} 2.0' in text
    assert 'headscope_requests_total{outcome="refused",route="/v1/lens/knockout"} 1.0' in text
    assert 'headscope_questions{state="waiting"} 0.0' in text
