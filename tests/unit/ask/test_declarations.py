"""Everything made from the declaration of a question: its body, its endpoint, and the page's types."""

import inspect
from typing import Any, cast

import pytest
from gradio.utils import get_function_description, get_function_params

from helpers.page_types.lens import FILE, lens_types
from model.lens.question import REQUIRED
from web.api.lens import BODIES, make_endpoint
from web.ask.fields import fields_of
from web.ask.question import Question
from web.ask.table import QUESTIONS

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
        "logit_lens": "prompt model top",
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


def test_the_types_of_the_page_are_those_of_the_questions() -> None:
    assert FILE.read_text(encoding="utf-8") == lens_types(), (
        "write them: PYTHONPATH=.:tests python -m helpers.page_types.lens"
    )
