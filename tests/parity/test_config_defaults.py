"""A ``config.json`` without a field means what it means to transformers: the default of the model's family."""

from copy import deepcopy
from typing import Any

import pytest
from transformers import AutoConfig

from helpers.oracles.families import DYNAMIC, LLAMA3, YARN
from model.checkpoint.folder_format import ModelConfig, config_from_json
from model.errors import InvalidValue, Mismatch

SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size")
# Every field has another value than the default, and the number of heads fits each family's default of key heads.
COMMON: dict[str, Any] = dict(zip(SIZES, (2, 32, 256, 48, 65), strict=True)) | {
    "max_position_embeddings": 64,
    "attention_dropout": 0.1,
    "attention_bias": True,
    "tie_word_embeddings": True,
    "bos_token_id": 3,
    "eos_token_id": [4, 5],
}
ROTATED = COMMON | {"num_key_value_heads": 4, "head_dim": 6, "hidden_act": "silu", "rms_norm_eps": 1e-2}
WINDOW = {"sliding_window": 16}
QWEN_WINDOW = {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}
NEOX = {"hidden_act": "gelu_new", "layer_norm_eps": 1e-2, "hidden_dropout": 0.1, "use_parallel_residual": False}
NEO_SIZES = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}
NEO = {"attention_types": [[["local", "global"], 1]], "window_size": 16, "activation_function": "gelu"}
NEO |= {
    "tie_word_embeddings": False,
    "layer_norm_epsilon": 1e-2,
    "embed_dropout": 0.2,
    "resid_dropout": 0.3,
    "attention_layers": ["local", "global"],
}
OPT = {"activation_function": "gelu", "dropout": 0.2, "enable_bias": False, "word_embed_proj_dim": 256}
OPT |= {"tie_word_embeddings": False, "ffn_dim": 48}
REQUIRED = {
    "gpt_neo": ("num_layers", "num_heads", "hidden_size", "vocab_size"),
    "opt": tuple("ffn_dim" if name == "intermediate_size" else name for name in SIZES),
}
GEMMA = {name: value for name, value in ROTATED.items() if name != "hidden_act"} | {
    "hidden_activation": "gelu",
    "query_pre_attn_scalar": 7,
    "tie_word_embeddings": False,
    "sliding_window": 16,
    "layer_types": ["full_attention", "sliding_attention"],
    "rope_local_base_freq": 20.0,
}
FIELDS: dict[str, dict[str, Any]] = {
    "llama": ROTATED | {"mlp_bias": True},
    "mistral": ROTATED | WINDOW,
    "qwen2": ROTATED | QWEN_WINDOW,
    "qwen3": ROTATED | QWEN_WINDOW,
    "gpt_neo": {NEO_SIZES.get(name, name): value for name, value in COMMON.items() if name != "attention_bias"} | NEO,
    "opt": {name: value for name, value in COMMON.items() if name not in ("attention_bias", "intermediate_size")} | OPT,
    "gemma3_text": GEMMA,
    "olmo2": {name: value for name, value in ROTATED.items() if name != "head_dim"},
    "gpt_neox": COMMON | NEOX | {"attention_bias": False, "rotary_pct": 1.0, "rotary_emb_base": 50.0},
}
# As transformers 4 writes the rotation, and as transformers 5 does.
ROPES: list[dict[str, Any]] = [
    {"rope_theta": 50.0},
    {"rope_theta": 50.0, "rope_scaling": {name: value for name, value in LLAMA3.items() if name != "rope_theta"}},
    {"rope_parameters": LLAMA3},
    {"rope_parameters": {name: value for name, value in LLAMA3.items() if "original" not in name}},
    {"rope_parameters": {"rope_type": "default"}},
    {"rope_parameters": DYNAMIC},
    {"rope_parameters": YARN | {"mscale": 2.0, "mscale_all_dim": 0.5, "beta_fast": None}},
]
# Gemma's, one for each kind of layer.
GEMMA_ROPES: list[dict[str, Any]] = [
    ROPES[0],
    {"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "rope_theta": 50.0},
    {"rope_parameters": {"full_attention": DYNAMIC, "sliding_attention": {"rope_type": "default", "rope_theta": 30.0}}},
    {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}}},
    {"rope_parameters": {"sliding_attention": {"rope_type": "default"}, "full_attention": None}},
]
OTHER_ROPES: dict[str, list[dict[str, Any]]] = {"gpt_neo": [{}], "opt": [{}], "gemma3_text": GEMMA_ROPES}


def outcome(content: dict[str, Any]) -> ModelConfig | str:
    try:
        return config_from_json(content)
    except (InvalidValue, Mismatch) as error:
        return str(error)


@pytest.mark.parametrize(
    ("model_type", "rope"), [(each, rope) for each in FIELDS for rope in OTHER_ROPES.get(each, ROPES)]
)
def test_each_absent_field_has_the_default_of_transformers(model_type: str, rope: dict[str, Any]) -> None:
    whole = {"model_type": model_type, **FIELDS[model_type], **rope}
    required = REQUIRED.get(model_type, SIZES)
    assert isinstance(outcome(whole), ModelConfig)
    for absent in (None, *FIELDS[model_type], *rope):
        content = {name: value for name, value in whole.items() if name != absent}
        if absent in required:  # no published file lacks one, and another number of heads would fit the same weights
            assert f"no {absent}, expected" in str(outcome(content))
            continue
        complete = AutoConfig.for_model(**deepcopy(content)).to_dict()
        assert outcome(content) == outcome(complete), absent


@pytest.mark.parametrize("model_type", FIELDS)
def test_sizes_alone_are_enough(model_type: str) -> None:
    content = {"model_type": model_type, **{name: FIELDS[model_type][name] for name in REQUIRED.get(model_type, SIZES)}}
    content |= {"num_layers": 24} if model_type == "gpt_neo" else {}  # as many as its default pattern has
    found = outcome(content)
    assert isinstance(found, ModelConfig)
    assert found == outcome(AutoConfig.for_model(**content).to_dict())
