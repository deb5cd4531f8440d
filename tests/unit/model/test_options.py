"""``SamplingSettings``, ``GenerationRequest`` and ``LoadedModel`` check and offer exactly the table of options."""

import dataclasses
import inspect
from typing import Any

import pytest

from helpers.models import tiny_model
from model import GenerationRequest, InputError, LoadedModel, SamplingSettings
from model.generate import REQUEST_OPTIONS
from model.sampling import SAMPLING_OPTIONS, GenerationOption

OPTIONS = REQUEST_OPTIONS | SAMPLING_OPTIONS
DRAWN = "seed"  # drawn where none is given, so its default is another


def make(name: str, value: Any) -> object:
    """What an option is given to."""
    if name in SAMPLING_OPTIONS:
        return SamplingSettings(**{name: value})
    return GenerationRequest(prompt=(1,), **{name: value})


def next_to(row: GenerationOption, edge: float, step: int) -> float:
    """A value just below or above an edge."""
    return edge + step if row.kind is int else edge + step * 1e-9


def test_every_number_of_a_request_is_in_the_table() -> None:
    numbers = {field.name for field in dataclasses.fields(SamplingSettings)} - {"logit_bias"}
    assert list(SAMPLING_OPTIONS) == [f.name for f in dataclasses.fields(SamplingSettings) if f.name in numbers]
    assert set(REQUEST_OPTIONS) == {"max_new_tokens", "seed"}
    for name, row in OPTIONS.items():
        assert row.name == name and row.help.endswith(".") and row.least < row.most


@pytest.mark.parametrize("name", OPTIONS)
def test_both_sides_of_each_edge(name: str) -> None:
    row = OPTIONS[name]
    make(name, row.most)
    make(name, next_to(row, row.least, 1) if row.above else row.least)
    outside = [row.least if row.above else next_to(row, row.least, -1), next_to(row, row.most, 1)]
    for value in [*outside, "1", True, float("nan"), [1]]:
        with pytest.raises(InputError) as refused:
            make(name, value)
        assert (refused.value.field, refused.value.code) == (name, "invalid_value")
        assert str(refused.value).startswith(f"{name} must be {row.allowed}, found ")
    if row.default is None:
        make(name, None)
    else:
        with pytest.raises(InputError):
            make(name, None)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_whole_number_is_an_int_in_python(name: str) -> None:
    row = OPTIONS[name]
    if row.kind is float:
        make(name, 1)
    else:
        with pytest.raises(InputError):
            make(name, 1.0)


def test_defaults_are_those_of_the_table() -> None:
    for name, row in OPTIONS.items():
        holder = SamplingSettings() if name in SAMPLING_OPTIONS else GenerationRequest(prompt=(1,))
        assert getattr(holder, name) == row.default and type(getattr(holder, name)) is type(row.default)


def test_generate_offers_the_whole_table() -> None:
    parameters = inspect.signature(LoadedModel.generate).parameters
    for name, row in OPTIONS.items():
        assert parameters[name].default == (None if name == DRAWN else row.default), name
        expected = row.kind | None if row.default is None or name == DRAWN else row.kind
        assert parameters[name].annotation == expected, name
    others = {"self", "prompt", "logit_bias", "stop", "head_mask", "hooks", "record"}
    assert set(parameters) == others | set(OPTIONS)


def test_request_takes_what_is_not_sampling() -> None:
    parameters = inspect.signature(LoadedModel.request).parameters
    fields = {field.name: field for field in dataclasses.fields(GenerationRequest)}
    assert set(parameters) - {"self"} == set(fields) - {"never_drawn"}  # which the model says
    for name, field in fields.items():
        if name not in ("prompt", "sampling", DRAWN, "never_drawn"):
            assert parameters[name].default == field.default, name
    assert parameters[DRAWN].default is None is parameters["sampling"].default


def test_what_generate_is_given_reaches_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny_model()
    seen: list[GenerationRequest] = []
    begin = LoadedModel.begin
    monkeypatch.setattr(LoadedModel, "begin", lambda self, request: seen.append(request) or begin(self, request))
    given = {name: row.least if row.kind is int else (row.least + row.most) / 2 for name, row in OPTIONS.items()}
    loaded.generate("ab", **given, logit_bias={3: 1.5}, stop=["x", "yz"], record=True)
    (request,) = seen
    for name, value in given.items():
        assert getattr(request if name in REQUEST_OPTIONS else request.sampling, name) == value
    assert (request.sampling.logit_bias, request.stop, request.record) == ({3: 1.5}, ("x", "yz"), True)
