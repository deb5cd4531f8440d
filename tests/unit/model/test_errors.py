"""For every invalid request, the error names the field and has a short code for the reason."""

import math
from typing import Any

import pytest

import model
from helpers.models import tiny_bpe, tiny_model
from model import CheckpointError, InputError, LoadedModel
from model.errors import MAX_SHOWN, InvalidValue, Mismatch, shorten
from model.sampling import SamplingSettings
from model.tokenizer import from_spec


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model()


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"prompt": ""}, "prompt", "empty_prompt"),
        ({"prompt": []}, "prompt", "empty_prompt"),
        ({"prompt": "caf\u00e9"}, "prompt", "unknown_characters"),
        ({"prompt": [65]}, "prompt", "unknown_token"),
        ({"prompt": [1] * 33}, "prompt", "context_length_exceeded"),
        ({"max_new_tokens": 0}, "max_new_tokens", "invalid_value"),
        ({"seed": 1.5}, "seed", "invalid_value"),
        ({"stop": [""]}, "stop", "invalid_value"),
        ({"stop": 5}, "stop", "invalid_value"),
        ({"head_mask": [[1.0]]}, "head_mask", "invalid_value"),
        ({"head_mask": "ones"}, "head_mask", "invalid_value"),
        ({"head_mask": [[math.nan] * 2] * 2}, "head_mask", "invalid_value"),
        ({"logit_bias": {65: 1.0}}, "logit_bias", "invalid_value"),
        ({"logit_bias": {0: 101}}, "logit_bias", "invalid_value"),
        ({"logit_bias": [1]}, "logit_bias", "invalid_value"),
        ({"temperature": "hot"}, "temperature", "invalid_value"),
        ({"top_k": -1}, "top_k", "invalid_value"),
        ({"top_p": 0}, "top_p", "invalid_value"),
    ],
)
def test_the_field_and_the_reason(tiny: LoadedModel, changes: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        tiny.generate(**({"prompt": "ab"} | changes))
    assert (refused.value.field, refused.value.code) == (field, code)
    assert isinstance(refused.value, ValueError) and str(refused.value)


@pytest.mark.parametrize("name", ["layers", "heads"])
def test_a_trace_names_what_it_lacks(tiny: LoadedModel, name: str) -> None:
    for chosen in ([2], [], [0, 0], ["0"]):
        with pytest.raises(InputError) as refused:
            tiny.trace("ab", **{name: chosen})
        assert refused.value.field == name


def test_all_that_is_wrong_with_a_prompt_is_a_prompt_error() -> None:
    kinds = [model.EmptyPrompt, model.UnknownCharacters, model.UnknownTokens, model.ContextLengthExceeded]
    assert all(issubclass(kind, model.PromptError) and issubclass(kind, InputError) for kind in kinds)
    assert len({kind.code for kind in kinds}) == len(kinds)


def test_a_long_value_is_cut() -> None:
    message = str(InvalidValue("name", "x" * 10_000, "short"))
    assert message.startswith("name must be short, found 'xxx") and message.endswith(" ...")
    assert len(shorten("x" * 10_000)) == MAX_SHOWN + len(" ...")
    assert shorten("x") == "'x'"


def test_both_ends_of_a_long_value_in_a_file_are_shown() -> None:
    error = CheckpointError("file", "begin " + "x" * 10_000 + " end", "another")
    assert error.found.startswith("begin xxx") and error.found.endswith("xxx end") and len(error.found) < 600


def test_what_is_wrong_with_a_long_token_is_shown() -> None:
    long = "a" * 5_000
    spec = tiny_bpe(260).spec
    for added in ({"content": long, "id": -1}, {"content": long, "id": 300, "lstrip": True}, {"id": 300, "content": 5}):
        with pytest.raises(Mismatch) as caught:
            from_spec(spec | {"added_tokens": [added]})
        found = CheckpointError("file", caught.value.found, caught.value.expected).found
        assert ("-1" in found) or ("lstrip" in found) or ("'content': 5" in found), found


def test_a_single_stop_string_is_one_of_them(tiny: LoadedModel) -> None:
    assert tiny.request("ab", stop="end").stop == ("end",)
    assert tiny.request("ab", stop=(text for text in ("a", "b"))).stop == ("a", "b")
    assert tiny.request("ab", sampling=SamplingSettings()).stop == ()
