"""The table of options reaches the HTTP schema, the Gradio endpoint and the page's controls unchanged."""

import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from helpers.files import ROOT
from model import InputError
from model.generate import MAX_SEED, REQUEST_OPTIONS
from model.sampling import SAMPLING_OPTIONS
from web.api.errors import first_problem
from web.api.gradio_endpoints import endpoints
from web.api.schema import CompletionRequest
from web.page.controls import CONTROLS, WORDS
from web.services import Services
from web.serving.inputs import OPTIONS, SLIDERS, parse_request
from web.settings import Limits

SCHEMA = CompletionRequest.model_json_schema()["properties"]


def endpoint(services: Services, name: str) -> Callable[..., Any]:
    """The function behind a public endpoint."""
    return next(each for each in endpoints(services) if each.__name__ == name)


# ---- HTTP ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLING_OPTIONS)
def test_the_schema_has_every_sampling_option(name: str) -> None:
    row, described = SAMPLING_OPTIONS[name], SCHEMA[name]
    number, null = described["anyOf"]
    assert null == {"type": "null"} and number["type"] == {int: "integer", float: "number"}[row.kind]
    assert number["exclusiveMinimum" if row.above else "minimum"] == row.least and number["maximum"] == row.most
    assert (described["default"], described["description"]) == (row.default, row.help)


def test_the_schema_bounds_the_seed() -> None:
    number, _ = SCHEMA["seed"]["anyOf"]
    assert (number["minimum"], number["maximum"]) == (REQUEST_OPTIONS["seed"].least, REQUEST_OPTIONS["seed"].most)
    assert number["maximum"] == MAX_SEED


@pytest.mark.parametrize("name", SAMPLING_OPTIONS)
def test_http_and_python_refuse_in_the_same_words(name: str) -> None:
    row = SAMPLING_OPTIONS[name]
    with pytest.raises(ValidationError) as refused:
        CompletionRequest.model_validate({"prompt": "a", name: row.most + 1})
    field, message, code = first_problem(refused.value)
    assert (field, code) == (name, "invalid_value") and message.startswith(f"{name} must be {row.allowed}, found ")
    with pytest.raises(InputError) as in_python:
        row.check(row.most + 1)
    assert str(in_python.value) == message.rstrip(".")


# ---- Gradio and MCP --------------------------------------------------------------------------------------------------


def test_the_endpoint_offers_what_the_page_has_sliders_for(services: Services) -> None:
    parameters = inspect.signature(endpoint(services, "generate")).parameters
    assert set(parameters) == {"request", "prompt", "model", *SLIDERS, "seed"}
    for name in SLIDERS:
        row = OPTIONS[name]
        assert parameters[name].default == row.default
        assert parameters[name].annotation == (row.kind | None if row.default is None else row.kind)
    assert parameters["seed"].default is None


def test_the_endpoint_explains_each_option_in_the_words_of_the_table(services: Services) -> None:
    text = inspect.getdoc(endpoint(services, "generate")) or ""
    said = dict(re.findall(r"^    (\w+): (.+)$", text, re.MULTILINE))
    assert {name: said[name] for name in (*SLIDERS, "seed")} == {
        name: OPTIONS[name].help for name in (*SLIDERS, "seed")
    }


# ---- The page --------------------------------------------------------------------------------------------------------


def test_the_page_has_a_control_for_each_slider() -> None:
    assert [control["name"] for control in CONTROLS] == [*SLIDERS, "seed"] == list(WORDS)
    assert len(set(WORDS.values())) == len(WORDS)
    for control in CONTROLS:
        row = OPTIONS[control["name"]]
        slider = row.slider._asdict() if row.slider else {}
        assert control == {"name": row.name, "word": WORDS[row.name], "help": row.help} | slider


def test_the_controls_in_the_tests_of_the_page_are_these() -> None:
    """``tests/js/look/bar.test.mjs`` makes the page's bar of them."""
    recorded = json.loads((ROOT / "tests" / "fixtures" / "controls.json").read_text(encoding="utf-8"))
    assert recorded == json.loads(json.dumps(CONTROLS)), "write CONTROLS to the file again"


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_stays_within_the_table(name: str) -> None:
    row, slider = OPTIONS[name], SLIDERS[name]
    for value in (slider.least, slider.most, slider.start):
        row.check(row.kind(value))
        steps = (value - slider.least) / slider.step
        assert steps == pytest.approx(round(steps), abs=1e-9)


def test_where_the_controls_start_is_a_request(services: Services) -> None:
    start = {control["name"]: control["start"] for control in CONTROLS if "start" in control}
    values = {"prompt": "ab", "model": "tiny", "seed": 1, "context_shift": False} | start
    loaded, request = parse_request(services.served, values)
    assert loaded.name == "tiny" and request.sampling.temperature == SLIDERS["temperature"].start


@pytest.mark.parametrize("name", [*SLIDERS, "seed", "context_shift"])
def test_an_error_names_the_control(services: Services, name: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_request(services.served, {"prompt": "ab", "model": "tiny", name: "odd"})
    assert refused.value.field == name


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"model": "nobody"}, "model", "model_not_found"),
        ({"prompt": 7}, "prompt", "invalid_value"),
        ({"prompt": "a" * (Limits.max_prompt_characters + 1)}, "prompt", "invalid_value"),
        ({"max_new_tokens": 4_097}, "max_new_tokens", "invalid_value"),
    ],
)
def test_limits_of_the_server_name_the_field_too(
    services: Services, fields: dict[str, Any], field: str, code: str
) -> None:
    with pytest.raises(InputError) as refused:
        parse_request(services.served, {"prompt": "ab"} | fields)
    assert (refused.value.field, refused.value.code) == (field, code)


@pytest.mark.parametrize("name", [name for name, row in OPTIONS.items() if row.kind is int])
def test_json_and_sliders_may_send_a_whole_number_as_a_float(services: Services, name: str) -> None:
    _, request = parse_request(services.served, {"prompt": "ab", name: 3.0})
    value = getattr(request if name in REQUEST_OPTIONS else request.sampling, name)
    assert value == 3 and type(value) is int
