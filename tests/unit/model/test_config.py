"""Every bad field of a config is refused by name, and nothing is allocated for an absurd one."""

import dataclasses
import math

import pytest

from helpers.models import tiny_config
from model import GPTConfig
from model.config import MAX_CONTEXT_LENGTH, MAX_N_EMBD, MAX_N_HEAD, MAX_N_LAYER, MAX_VOCAB_SIZE, is_number

SIZES = {
    "n_layer": MAX_N_LAYER,
    "n_head": MAX_N_HEAD,
    "n_embd": MAX_N_EMBD,
    "vocab_size": MAX_VOCAB_SIZE,
    "context_length": MAX_CONTEXT_LENGTH,
}
NO_INTEGERS = [0, -1, 2.0, math.nan, math.inf, True, "2", None, [2], 10**400]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", NO_INTEGERS)
def test_bad_sizes_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"{name}.* must be an integer from 1 to {SIZES[name]:,}, found"):
        tiny_config(**{name: value})


@pytest.mark.parametrize("name", SIZES)
def test_sizes_on_both_sides_of_each_limit(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}.*{SIZES[name]:,}, found {SIZES[name] + 1}"):
        tiny_config(**{name: SIZES[name] + 1})
    fitting = {"n_head": {"n_embd": SIZES["n_head"]}, "n_embd": {"n_layer": 1, "n_inner": 1}}.get(name, {})
    assert getattr(tiny_config(**({name: SIZES[name]} | fitting)), name) == SIZES[name]


@pytest.mark.parametrize("value", [value for value in NO_INTEGERS if value is not None])
def test_bad_n_inner_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="n_inner must be an integer from 1"):
        tiny_config(n_inner=value)


def test_inner_dim_defaults_to_four_n_embd() -> None:
    assert tiny_config().inner_dim == 64
    assert tiny_config(n_inner=3).inner_dim == 3


def test_indivisible_width_is_refused() -> None:
    with pytest.raises(ValueError, match="found n_embd 16 with n_head 3, expected n_embd to be a multiple of n_head"):
        tiny_config(n_head=3)
    with pytest.raises(ValueError, match="n_embd 16 with n_head 32"):
        tiny_config(n_head=32)


@pytest.mark.parametrize(
    "name", ["qkv_bias", "tie_word_embeddings", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"]
)
@pytest.mark.parametrize("value", [0, 1, "true", None, 1.0])
def test_bad_switches_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be true or false, found"):
        tiny_config(**{name: value})


@pytest.mark.parametrize("name", ["embd_pdrop", "attn_pdrop", "resid_pdrop"])
@pytest.mark.parametrize("value", [-0.1, 1, 1.0, math.nan, math.inf, True, "0.1", None, 10**400])
def test_bad_dropout_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a number of at least 0 and below 1, found"):
        tiny_config(**{name: value})


@pytest.mark.parametrize("value", [0, -1e-5, 1, math.nan, math.inf, True, "1e-5", None, 10**400, [1e-5]])
def test_bad_epsilon_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="layer_norm_epsilon must be a number between 0 and 1, found"):
        tiny_config(layer_norm_epsilon=value)


def test_absurd_number_of_weights_is_refused() -> None:
    """Each size is within its limit, but together they exceed any machine."""
    with pytest.raises(ValueError, match=r"found sizes that add up to [\d,]+ weights, expected at most 20,000,000,000"):
        tiny_config(n_layer=512, n_head=512, n_embd=65_536)
    with pytest.raises(ValueError, match="weights, expected at most"):
        tiny_config(vocab_size=4_000_000, n_embd=65_536)


def test_config_is_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiny_config().n_layer = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        GPTConfig(2, 2, 16, 65, 32)  # type: ignore[misc]


def test_is_number_excludes_booleans() -> None:
    assert all(is_number(value) for value in (0, -1, 1.5, 10**400))
    assert not any(is_number(value) for value in (True, math.nan, math.inf, -math.inf, "1", None, 1j))
