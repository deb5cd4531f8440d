"""Everything made from the declaration of a question: its body, its endpoint, and the page's types."""

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, cast

import pytest
from gradio.utils import get_function_description, get_function_params
from torch import Tensor

from helpers.models import tiny_model
from helpers.page_types.lens import FILE, lens_types
from model import InputError
from model.lens.answer import Answer, Shape, TokenId, first_paragraph
from model.lens.interventions.circuit import MAX_LOST, MAX_NODES, FoundCircuit, circuit
from model.lens.progress import ignore
from model.lens.question import REQUIRED, Layer
from model.lens.text_pass import TextPass
from web.api.lens import BODIES, make_endpoint
from web.ask.fields import fields_of
from web.ask.question import Question
from web.ask.question import question as declared
from web.ask.service import AnswerService
from web.ask.table import QUESTIONS
from web.prometheus import Metrics
from web.settings import Limits

every_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)


def parameters(question: Question) -> list[tuple[str, bool, Any, Any]]:
    """The parameters as Gradio reads them: name, whether there is a default, the default, and the type."""
    return get_function_params(make_endpoint(cast(Any, None), question))


def test_names_are_used_once() -> None:
    for names in ([each.name for each in QUESTIONS], [each.endpoint for each in QUESTIONS]):
        assert len(set(names)) == len(names)
    for question in QUESTIONS:
        fields = list(BODIES[question.name].model_fields)
        parts = [part.name for option in question.fields for part in fields_of(option)]
        assert sorted(fields) == sorted([*parts, "stream"])


@pytest.mark.parametrize("order", ["prompt model", "prompt model layer head_mask extra", "prompt model lyer head_mask"])
def test_an_order_names_every_field_once(order: str) -> None:
    def ask(text: TextPass, *, layer: Layer = 0) -> FoundCircuit:
        """A question."""
        raise NotImplementedError

    with pytest.raises(
        ValueError, match=r"ordered by .*, but its fields are \['prompt', 'model', 'layer', 'head_mask'\]"
    ):
        declared("ordered", ask, order=order)


@every_question
def test_an_endpoint_takes_the_fields_of_the_body_with_their_help(question: Question) -> None:
    body = BODIES[question.name].model_fields
    found = parameters(question)
    assert {name for name, *_ in found} == set(body) - {"stream"}
    description, helps, returns = get_function_description(make_endpoint(cast(Any, None), question))
    assert description == question.summary and returns == [question.returns]
    for name, has_default, default, _ in found:
        assert helps[name] == body[name].description
        assert default == (None if body[name].is_required() else body[name].default)
        assert has_default or body[name].is_required()
    assert inspect.iscoroutinefunction(make_endpoint(cast(Any, None), question))


def test_endpoints_keep_the_order_of_their_arguments() -> None:
    orders = {question.endpoint: " ".join(name for name, *_ in parameters(question)) for question in QUESTIONS}
    for endpoint, first in {
        "roles": "model",
        "knockout": "prompt model method",
        "removal": "heads prompt model method",
        "attribution": "prompt model position token against",
        "head_lenses": "prompt model layer head position token",
        "logit_lens": "prompt model top token",
        "ledger": "prompt model layer head query key token",
        "patch": "prompt corrupted answer wrong model direction heads",
        "composition": "model centred",
        "paths": "prompt model layer head",
        "difference": "prompt other model other_model",
        "passages": "text model",
    }.items():
        assert orders[endpoint].startswith(first), endpoint


@every_question
def test_a_required_field_has_no_default(question: Question) -> None:
    for option in question.fields:
        for part in fields_of(option):
            assert BODIES[question.name].model_fields[part.name].is_required() == (part.default is REQUIRED)


@dataclass(frozen=True)
class Norms(Answer):
    """The norm of the residual stream at each position."""

    norms: Annotated[Tensor, Shape(("T",)), "`[position]`, before the layer."]
    largest: TokenId


def norms(text: TextPass, layer: Layer, *, exact: bool = True) -> Norms:
    """How long the residual stream is before a layer."""
    found = text.stream[layer][0].norm(dim=-1)
    return Norms(found.cpu() if exact else found.round().cpu(), text.ids[int(found.argmax())])


def test_a_function_and_a_dataclass_are_all_that_a_question_needs() -> None:
    asked, loaded = declared("norms", norms), tiny_model()
    assert (asked.summary, asked.returns) == (norms.__doc__, Norms.__doc__)
    assert [field.name for field in asked.fields] == ["prompt", "model", "layer", "head_mask"]  # without help: Python's
    inquiry = asked.parse(Limits(), {"model": loaded}, {"prompt": "so it is", "layer": 1})
    content = asked.compute(AnswerService(Limits(), Metrics()), inquiry, ignore, [])
    assert len(content["norms"]) == 8 and content["largest"]["text"] in "so it is"
    schema = asked.answer.model_json_schema()["properties"]
    assert schema["norms"]["items"] == {"type": "number"} and schema["norms"]["description"].startswith("`[position]`")
    assert schema["largest"] == {"$ref": "#/$defs/NamedToken"}
    with pytest.raises(InputError, match="layer must be an integer from 0 to 1"):
        asked.parse(Limits(), {"model": loaded}, {"prompt": "so it is", "layer": 2})


def test_the_help_of_circuits_gives_their_limits() -> None:
    assert f"loses at most {MAX_LOST:.0%} of" in first_paragraph(circuit)
    assert f"At most {MAX_NODES} nodes" in first_paragraph(FoundCircuit)


def test_the_types_of_the_page_are_those_of_the_questions() -> None:
    assert FILE.read_text(encoding="utf-8") == lens_types(), (
        "write them: PYTHONPATH=.:tests python -m helpers.page_types.lens"
    )
