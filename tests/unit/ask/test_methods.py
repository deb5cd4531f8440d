"""The questions of Ask as methods of a loaded model: the numbers that ``/v1/lens`` sends, and drawings of them."""

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import orjson
import pytest
import torch

from helpers.models import tiny_model
from model import InputError, LoadedModel
from model.lens.answer import Answer
from model.lens.progress import ignore
from web.ask.inquiry import Ask
from web.ask.table import QUESTIONS
from web.prometheus import Metrics
from web.settings import Limits

TEXT, OTHER, LONG = "so it is", "so he is", "Tom ran. Hi! said a big dog.\n" * 9
HEAD = {"layer": 1, "head": 1}
PAIR = {"corrupted": OTHER, "answer": "a", "wrong": "b"}
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
            {"prompts": [{"prompt": TEXT, **PAIR}]},
            lambda loaded: loaded.circuit([(TEXT, OTHER, "a", "b")]),
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
    inquiry = question.parse(Ask(Limits(), Metrics()), Limits(), {"model": loaded}, body)
    with torch.inference_mode():
        return json.loads(orjson.dumps(question.compute(inquiry, ignore), option=orjson.OPT_SERIALIZE_NUMPY))


def numbers_in(value: Any) -> list[float]:
    """All numbers in nested data, in order."""
    if isinstance(value, dict | list):
        each = value.values() if isinstance(value, dict) else value
        return [number for part in each for number in numbers_in(part)]
    return [float(value)] if isinstance(value, int | float) else []


def rearranged(name: str, found: dict[str, Any], expected: dict[str, Any]) -> tuple[Any, Any]:
    """The parts of both answers that belong together, where the route sends them per token or per head."""
    if name == "head":
        keys = [{measure: each[measure] for measure in MEASURES} for each in expected.pop("keys")]
        return [found.pop(each) for each in MEASURES], [[each[measure] for each in keys] for measure in MEASURES]
    if name == "logit-lens":
        layers = expected.pop("layers")
        tops = [[[token["id"] for token in each["top"]] for each in row] for row in layers]
        rest = [[[each[one] for each in row] for row in layers] for one in ("kl", "answer")]
        probabilities = [[[token["probability"] for token in each["top"]] for each in row] for row in layers]
        return [found.pop(each) for each in ("ids", "probabilities", "kl", "answer")], [tops, probabilities, *rest]
    if name == "passages":
        heads = [head for row in expected.pop("heads") for head in row]
        histograms = [[head[one]["histogram"] for head in heads] for one in ("weight", "norm")]
        rest = [[head[one] for head in heads] for one in ("everywhere", "metrics")]
        expected["map"].pop("features")
        return (
            [found["strongest"][one]["histogram"] for one in ("weight", "norm")]
            + [found.pop(one) for one in ("everywhere", "metrics")],
            histograms + rest,
        )
    if name == "roles":
        heads = expected.pop("heads")
        return (
            [found["scores"]["induction"], found["errors"]["self"], found["copying"]],
            [
                [[head[kind][one] for head in row] for row in heads]
                for kind, one in (("scores", "induction"), ("errors", "self"), ("scores", "copying"))
            ],
        )
    if name == "circuit":
        expected["pairs"][0].pop("row")
        return (
            [[[head.pop("promoted") for head in found["heads"]], [found["pairs"][0].pop(one) for one in ANSWERS]]],
            [
                [[token["id"] for token in head.pop("promoted")] for head in expected["heads"] if head.pop("reads")],
                [expected["pairs"][0].pop(one)["id"] for one in ANSWERS],
            ],
        )
    if name == "neuron":
        written = [[token["id"] for token in expected.pop(which)] for which in ("promotes", "suppresses")]
        for place in [*expected["highest"], *expected["lowest"]]:
            place.pop("tokens")
        return [found["writes"][which] for which in ("promoted", "suppressed")], written
    if name == "token-circuit":
        pairs = expected.pop("pairs")
        ids = [[pair[one]["id"] for pair in pairs] for one in ("source", "target")]
        return [found.pop(one) for one in ("source", "target", "value")], [*ids, [pair["value"] for pair in pairs]]
    return [], []


ANSWERS = ("answer", "wrong")
MEASURES = ("weight", "norm", "attribution", "loss_change")


@ASKED
def test_methods_give_the_numbers_of_the_routes(
    loaded: LoadedModel, name: str, given: dict[str, Any], ask: Callable[[LoadedModel], Answer]
) -> None:
    found, expected = ask(loaded).to_dict(), answered(loaded, name, given)
    assert json.loads(json.dumps(found)) == found
    found, expected = found | (found.pop("site", {})), expected | (expected.pop("site", None) or {})
    expected |= expected.pop("patched", None) or {}
    ours, theirs = rearranged(name, found, expected)
    assert numbers_in(ours) == pytest.approx(numbers_in(theirs), abs=1e-6)
    expected = {
        each: value["id"] if isinstance(value, dict) and "id" in value else value for each, value in expected.items()
    }
    shared = found.keys() & expected.keys()
    assert shared or name == "roles"
    for each in shared:
        assert numbers_in(found[each]) == pytest.approx(numbers_in(expected[each]), abs=1e-6), each


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


def test_every_question_about_one_text_is_a_method() -> None:
    names = {question.name.replace("-", "_") for question in QUESTIONS if "/" not in question.name}
    assert not {name for name in names if not callable(getattr(LoadedModel, name, None))}


def test_a_trace_brings_its_text_and_head_mask(loaded: LoadedModel) -> None:
    mask = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    found = loaded.attribution(loaded.trace(TEXT, head_mask=mask))
    assert found.heads[0, 1] == 0
    assert found.logit == pytest.approx(float(loaded.trace(TEXT, head_mask=mask).logits[-1].max()), abs=1e-5)
    assert torch.equal(loaded.knockout(loaded.tokenizer.encode(TEXT)).delta, loaded.knockout(TEXT).delta)


def test_computed_in_float32_whatever_the_model_is_in() -> None:
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
        (lambda _: tiny_model(context_length=3).role_paths(1, 0), "model"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    loaded: LoadedModel, ask: Callable[[LoadedModel], object], field: str
) -> None:
    with pytest.raises(InputError) as refused:
        ask(loaded)
    assert refused.value.field == field
