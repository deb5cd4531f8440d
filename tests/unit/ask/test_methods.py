"""The questions of Ask as methods of a loaded model: the numbers that ``/v1/lens`` sends, and drawings of them."""

import inspect
import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from helpers.api import assert_same
from helpers.models import tiny_model
from model import InputError, LoadedModel
from model.lens.answer import Answer
from model.lens.lens import Method
from model.lens.progress import ignore
from model.lens.prompts import OVER_PROMPTS
from web.ask.inquiry import to_json
from web.ask.service import AnswerService
from web.ask.table import QUESTIONS
from web.prometheus import Metrics
from web.settings import Limits

TEXT, OTHER, LONG = "so it is", "so he is", "Tom ran. Hi! said a big dog.\n" * 9
HEAD = {"layer": 1, "head": 1}
PAIR = {"corrupted": OTHER, "answer": "a", "wrong": "b"}
ROWS = [
    {"prompt": TEXT, **PAIR},
    {"prompt": "as it was", "corrupted": "as he was", "answer": "c", "wrong": 7},
    {"prompt": "as it is", "corrupted": "as is it", "answer": "d", "wrong": "d"},
]
ASKED = pytest.mark.parametrize(
    ("name", "given", "ask"),
    [
        ("knockout", {"per_token": True}, lambda loaded: loaded.knockout(TEXT)),
        (
            "knockout",
            {"per_token": True, "method": "mean", "reference": [OTHER, LONG[:20]]},
            lambda loaded: loaded.knockout(TEXT, method="mean", reference=[OTHER, LONG[:20]]),
        ),
        (
            "removal",
            {"heads": [[0, 1], [1, 0]], "method": "resample", "reference": [OTHER]},
            lambda loaded: loaded.removal(TEXT, [(0, 1), (1, 0)], method="resample", reference=[OTHER]),
        ),
        (
            "removal",
            {"heads": [[0, 1]], "method": "mean"},
            lambda loaded: loaded.removal(TEXT, [(0, 1)], method="mean"),
        ),
        ("attribution", {"against": "likeliest"}, lambda loaded: loaded.attribution(TEXT, against="likeliest")),
        ("attribution", {"position": 3, "token": 9}, lambda loaded: loaded.attribution(TEXT, position=3, token=9)),
        ("head", HEAD, lambda loaded: loaded.head(TEXT, 1, 1)),
        ("ledger", HEAD, lambda loaded: loaded.ledger(TEXT, 1, 1)),
        (
            "ledger",
            HEAD | {"query": 4, "key": 2, "token": 9},
            lambda loaded: loaded.ledger(TEXT, 1, 1, query=4, key=2, token=9),
        ),
        ("logit-lens", {"top": 3}, lambda loaded: loaded.logit_lens(TEXT, top=3)),
        ("logit-lens", {"token": 9}, lambda loaded: loaded.logit_lens(TEXT, token=9)),
        ("text-roles", {}, lambda loaded: loaded.text_roles(TEXT)),
        ("paths", HEAD, lambda loaded: loaded.paths(TEXT, 1, 1)),
        ("passages", {"text": LONG}, lambda loaded: loaded.passages(LONG)),
        ("difference", {"other": OTHER}, lambda loaded: loaded.difference(TEXT, OTHER)),
        ("patch", {"corrupted": OTHER}, lambda loaded: loaded.patch(TEXT, OTHER)),
        (
            "patch",
            PAIR | {"heads": [[0, 1]], "direction": "noise"},
            lambda loaded: loaded.patch(TEXT, **PAIR, heads=[(0, 1)], direction="noise"),
        ),
        (
            "patch",
            PAIR | {"site": "z", "method": "both"},
            lambda loaded: loaded.patch_site(TEXT, **PAIR, site="z", estimate=True),
        ),
        ("paths", HEAD | PAIR, lambda loaded: loaded.patch_paths(TEXT, **PAIR, **HEAD)),
        ("roles", {}, lambda loaded: loaded.roles()),
        ("role-paths", HEAD, lambda loaded: loaded.role_paths(1, 1)),
        (
            "circuit",
            {"prompts": [ROWS[0]]},
            lambda loaded: loaded.circuit([ROWS[0]]),
        ),
        ("neuron", {"text": LONG, "layer": 1, "neuron": 3}, lambda loaded: loaded.neuron(LONG, 1, 3)),
        ("token-circuit", HEAD, lambda loaded: loaded.token_circuit(1, 1)),
        (
            "token-circuit",
            HEAD | {"circuit": "qk", "earlier_layer": 0, "earlier_head": 1, "side": "k", "token": 9, "top": 5},
            lambda loaded: loaded.token_circuit(1, 1, "qk", earlier=(0, 1), side="k", token=9, top=5),
        ),
        ("composition", {"centred": True}, lambda loaded: loaded.composition(centred=True)),
    ],
)


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return tiny_model()


def answered(loaded: LoadedModel, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What ``/v1/lens/NAME`` adds to the model, the tokens and the precision."""
    question = next(each for each in QUESTIONS if each.name == name)
    body = {"prompt": TEXT} | given
    service, inquiry = AnswerService(Limits(), Metrics()), question.parse(Limits(), {"model": loaded}, body)
    with torch.inference_mode():
        return json.loads(to_json(question.compute(service, inquiry, ignore, [])))


def numbers_in(value: Any) -> list[float]:
    """All numbers in nested data, in order."""
    if isinstance(value, dict | list):
        each = value.values() if isinstance(value, dict) else value
        return [number for part in each for number in numbers_in(part)]
    return [float(value)] if isinstance(value, int | float) else []


@ASKED
def test_methods_give_the_numbers_of_the_routes(
    loaded: LoadedModel, name: str, given: dict[str, Any], ask: Callable[[LoadedModel], Answer]
) -> None:
    found, expected = ask(loaded).to_dict(), answered(loaded, name, given)
    assert json.loads(json.dumps(found)) == found
    for part in {"site", "patched"} - found.keys():  # which have methods of their own
        expected |= expected.pop(part, None) or {}
    assert found
    assert_same(found, expected)


@ASKED
def test_answers_are_dataclasses_that_draw_themselves(
    loaded: LoadedModel, name: str, given: dict[str, Any], ask: Callable[[LoadedModel], Answer]
) -> None:
    found = ask(loaded)
    assert fields(found)  # type: ignore[arg-type]
    drawn = found._repr_html_()
    assert type(found).__name__ in drawn and "<script" not in drawn
    if name == "knockout":
        first = found.delta[0, 0].item()  # type: ignore[attr-defined]
        assert f"title='{first!r}'" in drawn and "<th>H1</th>" in drawn and "<th>L1</th>" in drawn
    with pytest.raises(RuntimeError, match="notebook"):
        found.show()


@ASKED
def test_a_quantity_has_one_name_and_one_scale(
    loaded: LoadedModel, name: str, given: dict[str, Any], ask: Callable[[LoadedModel], Answer]
) -> None:
    """What ``to_dict`` calls by the name of an attribute is that attribute."""
    found = ask(loaded)
    for key, sent in found.to_arrays().items():
        ours = getattr(found, key, None)
        if isinstance(ours, torch.Tensor) and isinstance(sent, np.ndarray):
            assert np.array_equal(ours.numpy(), sent), key
        elif isinstance(ours, float):
            assert ours == sent, key


def test_a_method_knows_its_arguments_and_their_help(loaded: LoadedModel) -> None:
    assert list(inspect.signature(loaded.knockout).parameters) == ["text", "method", "reference", "progress"]
    assert list(inspect.signature(loaded.composition).parameters) == ["centred", "distance", "progress"]
    assert loaded.head.__name__ == "head" and "position: The token after which" in (loaded.head.__doc__ or "")
    with pytest.raises(TypeError, match="methd"):
        loaded.knockout(TEXT, methd="mean")  # type: ignore[call-arg]
    assert not hasattr(LoadedModel, "__getattr__")


def test_every_question_about_one_text_is_a_method() -> None:
    names = {question.name.replace("-", "_") for question in QUESTIONS if "/" not in question.name}
    assert not {name for name in names if not callable(getattr(LoadedModel, name, None))}


def test_every_method_has_the_name_of_its_function() -> None:
    methods = {name: each for name, each in vars(LoadedModel).items() if isinstance(each, Method)}
    assert "token_circuit" in methods
    assert {name: each.question.__name__ for name, each in methods.items()} == {name: name for name in methods}


@pytest.mark.parametrize(
    ("route", "body", "method", "options"),
    [
        ("knockout", {"method": "mean"}, "knockout", {"method": "mean"}),
        ("knockout", {"method": "resample"}, "knockout", {"method": "resample"}),
        ("removal", {"heads": [[0, 1], [1, 0]]}, "removal", {"heads": [(0, 1), (1, 0)]}),
        ("attribution", {}, "attribution", {}),
        ("head", HEAD, "head", HEAD),
        ("logit-lens", {}, "logit_lens", {}),
        ("patch", {}, "patch_site", {"site": "z"}),
        ("patch", {"site": "v", "method": "both"}, "patch_site", {"site": "v", "estimate": True}),
        ("patch", {"heads": [[0, 1], [1, 0]]}, "patch", {"heads": [(0, 1), (1, 0)]}),
        ("paths", HEAD | {"direction": "noise"}, "patch_paths", HEAD | {"direction": "noise"}),
        ("text-roles", {}, "text_roles", {}),
        ("difference", {}, "difference", {}),
    ],
)
def test_many_prompts_give_the_numbers_of_the_routes(
    loaded: LoadedModel, route: str, body: dict[str, Any], method: Any, options: dict[str, Any]
) -> None:
    found = loaded.over_prompts(method, ROWS, **options).to_dict()
    expected = answered(loaded, f"{route}/prompts", body | {"prompts": ROWS})
    assert found["n"] == expected["n"] == (2 if route in ("patch", "paths") else 3)
    assert found["rows"][0].keys() == found["mean"].keys() | {"row"}
    for name in found["mean"]:
        for part in ("mean", "standard_error"):
            assert numbers_in(found[part][name]) == pytest.approx(numbers_in(expected[part][name]), abs=1e-6)
        rows = zip(found["rows"], expected["rows"], strict=True)
        for one, other in rows:
            assert numbers_in(one.get(name)) == pytest.approx(numbers_in(other.get(name)), abs=1e-6)
            assert one.get("error") == other.get("error")
    assert found["mean"].keys() == expected["mean"].keys() or method == "patch"  # the route also patches a site


def test_rows_are_resampled_from_their_corrupted_prompts(loaded: LoadedModel) -> None:
    found = loaded.over_prompts("removal", ROWS, heads=[(0, 1)], method="resample")
    for row, numbers in zip(ROWS, found.rows, strict=True):
        alone = loaded.removal(row["prompt"], [(0, 1)], method="resample", reference=[row["corrupted"]])  # type: ignore[arg-type, list-item]
        assert numbers["delta"] == pytest.approx(alone.delta, abs=1e-6)
    given = loaded.over_prompts("removal", ROWS, heads=[(0, 1)], method="resample", reference=["so they were here"])
    assert given.rows[0]["delta"] != found.rows[0]["delta"]
    with pytest.raises(InputError, match="a single text, for the method 'resample'"):
        loaded.over_prompts("removal", [TEXT], heads=[(0, 1)], method="resample")


def test_every_question_about_many_prompts_is_one_of_a_loaded_model(loaded: LoadedModel) -> None:
    names = {question.name.split("/")[0].replace("-", "_") for question in QUESTIONS if "/" in question.name}
    assert names | {"patch_paths"} == OVER_PROMPTS.keys() - {"patch_site"} | {"paths"}


def test_many_prompts_may_be_texts_ids_or_traces(loaded: LoadedModel) -> None:
    mask = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    found = loaded.over_prompts(
        "attribution", [TEXT, loaded.tokenizer.encode(TEXT), {"prompt": loaded.trace(TEXT, head_mask=mask)}]
    )
    assert found.rows[0]["logit"] == found.rows[1]["logit"] and found.rows[2]["heads"][0, 1] == 0
    drawn = found._repr_html_()
    assert "mean heads" in drawn and "<th>H1</th>" in drawn


@pytest.mark.parametrize(
    ("ask", "field", "message"),
    [
        (lambda loaded: loaded.over_prompts("ledger", [TEXT]), "question", "one of knockout, removal"),
        (lambda loaded: loaded.over_prompts("knockout", []), "prompts", "No row could be answered"),
        (lambda loaded: loaded.over_prompts("knockout", ["a"]), "prompts", "at least two tokens"),
        (lambda loaded: loaded.over_prompts("knockout", [TEXT, ""]), "prompts[1].prompt", "empty"),
        (lambda loaded: loaded.over_prompts("knockout", [{"text": TEXT}]), "prompts[0].text", "no column 'text'"),
        (lambda loaded: loaded.over_prompts("patch_site", [TEXT], site="z"), "prompts[0].corrupted", "needed"),
        (lambda loaded: loaded.over_prompts("difference", [ROWS[0] | {"corrupted": "é"}]), "prompts[0].corrupted", "é"),
        (lambda loaded: loaded.over_prompts("head", [ROWS[0] | {"answer": "ab"}]), "prompts[0].answer", "single token"),
        (lambda loaded: loaded.circuit([TEXT]), "prompts[0].corrupted", "needed"),
    ],
)
def test_rows_that_cannot_be_read_are_refused_by_name(
    loaded: LoadedModel, ask: Callable[[LoadedModel], object], field: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        ask(loaded)
    assert refused.value.field == field


def test_a_trace_brings_its_text_and_head_mask(loaded: LoadedModel) -> None:
    mask = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    found = loaded.attribution(loaded.trace(TEXT, head_mask=mask))
    assert found.heads[0, 1] == 0
    assert found.logit == pytest.approx(float(loaded.trace(TEXT, head_mask=mask).logits[-1].max()), abs=1e-5)
    assert torch.equal(loaded.knockout(loaded.tokenizer.encode(TEXT)).delta, loaded.knockout(TEXT).delta)


def test_computed_in_float32_for_any_precision_of_the_model() -> None:
    exact, rounded = tiny_model(), tiny_model()
    rounded.gpt.bfloat16()
    exact.gpt.load_state_dict(rounded.gpt.state_dict())
    assert torch.equal(rounded.knockout(TEXT).delta, exact.knockout(TEXT).delta)
    assert rounded.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda loaded: loaded.knockout("a"), "prompt"),
        (lambda loaded: loaded.knockout(TEXT, method="median"), "method"),
        (lambda loaded: loaded.knockout(TEXT, reference=[OTHER]), "reference"),
        (lambda loaded: loaded.knockout(TEXT, method="resample"), "reference"),
        (lambda loaded: loaded.knockout(TEXT, method="mean", reference=[]), "reference"),
        (lambda loaded: loaded.removal(TEXT, [(0, 5)]), "heads"),
        (lambda loaded: loaded.attribution(TEXT, position=8), "position"),
        (lambda loaded: loaded.attribution(TEXT, token=65), "token"),
        (lambda loaded: loaded.attribution(TEXT, against=-1), "against"),
        (lambda loaded: loaded.attribution(TEXT, token="ab"), "token"),
        (lambda loaded: loaded.head(TEXT, 2, 0), "layer"),
        (lambda loaded: loaded.ledger(TEXT, 0, 2), "head"),
        (lambda loaded: loaded.ledger(TEXT, 0, 0, query=2, key=3), "key"),
        (lambda loaded: loaded.paths(TEXT, 0, 9), "head"),
        (lambda loaded: loaded.patch(TEXT, "so"), "corrupted"),
        (lambda loaded: loaded.patch(TEXT, OTHER, answer="é"), "answer"),
        (lambda loaded: loaded.patch_site(TEXT, OTHER, "nowhere"), "site"),
        (lambda loaded: loaded.passages(""), "text"),
        (lambda loaded: loaded.neuron(LONG, 0, 64), "neuron"),
        (lambda loaded: loaded.neuron(LONG, 0, 3, top=0), "top"),
        (lambda loaded: loaded.token_circuit(1, 2), "head"),
        (lambda loaded: loaded.token_circuit(1, 1, top=0), "top"),
        (lambda loaded: loaded.logit_lens(TEXT, top=0), "top"),
        (lambda loaded: loaded.logit_lens(TEXT, token=65), "token"),
        (lambda _: tiny_model(context_length=3).role_paths(1, 0), "model"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    loaded: LoadedModel, ask: Callable[[LoadedModel], object], field: str
) -> None:
    with pytest.raises(InputError) as refused:
        ask(loaded)
    assert refused.value.field == field
