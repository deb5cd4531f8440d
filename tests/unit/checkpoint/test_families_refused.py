"""Unsupported fields in a ``config.json`` of another family give one sentence that names field and value."""

from pathlib import Path
from typing import Any

import pytest

from helpers.files import refused, write_json
from model.checkpoint.families.family import OPENS
from model.checkpoint.folder_format import FAMILIES, MAX_ROTARY_CONTEXT, config_from_json

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 65,
    "max_position_embeddings": 32,
}
LLAMA3 = {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4}
YARN = {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 8}
OPEN = rf" \({OPENS}\)$"
MIXTURE = rf", expected null \(a mixture of experts does not open; {OPENS}\)$"
KINDS = "'full_attention' or 'sliding_attention' for each of the 2 layers"
NEO = {"model_type": "gpt_neo", "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}
OPT: dict[str, Any] = {"model_type": "opt", "ffn_dim": 48}
NEO_KINDS = "'global' or 'local' for each of the 2 layers"
GEMMA = {"model_type": "gemma3_text", "num_key_value_heads": 4}
MISTRAL: dict[str, Any] = {"model_type": "mistral", "num_key_value_heads": 4}
QWEN: dict[str, Any] = {
    "model_type": "qwen2",
    "num_key_value_heads": 4,
    "use_sliding_window": True,
    "sliding_window": 8,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rope_scaling": {"rope_type": "longrope", "factor": 4}},
            "rope_type 'longrope', expected 'default', 'linear', 'dynamic', 'llama3', 'yarn'" + OPEN,
        ),
        ({"rope_scaling": {"type": ["linear"], "factor": 2}}, r"rope_type \['linear'\], expected .*" + OPEN),
        ({"rope_parameters": {"rope_type": "dynamic"}}, "no factor, expected each of factor"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor 0, expected a number above 0"),
        ({"rope_scaling": {"type": "yarn"}}, "no factor, expected each of factor"),
        ({"rope_scaling": YARN | {"factor": "4"}}, "factor '4', expected a number above 0"),
        ({"rope_scaling": YARN | {"mscale": "1"}}, "mscale '1', expected a number above 0"),
        ({"rope_scaling": YARN | {"mscale": -9}}, "mscale -9, expected a number above 0"),
        ({"rope_scaling": YARN | {"truncate": 1}}, "truncate 1, expected true or false"),
        ({"rope_scaling": YARN | {"beta_fast": -1}}, "beta_fast -1, expected a number above 0"),
        ({"rope_scaling": YARN, "rope_theta": 1}, "rope_theta 1, expected a number above 1 with yarn"),
        (
            {"model_type": "gpt_neox", "rope_scaling": YARN},
            "an attention_factor of yarn with 2 rotated dimensions, expected all 8 rotated, or the factor 1",
        ),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn"}, "sliding_attention": {}}},
            "rope_parameters {'full_attention': .*, expected one rotation for all layers" + OPEN,
        ),
        ({"rope_scaling": 5}, "rope_scaling 5, expected an object"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 8}},
            "no low_freq_factor and no high_freq_factor, expected",
        ),
        (
            {"rope_scaling": LLAMA3 | {"original_max_position_embeddings": 8, "high_freq_factor": 1}},
            "low_freq_factor 1 with high_freq_factor 1, expected",
        ),
        ({"rope_theta": 0}, "rope_theta 0, expected a number above 0"),
        ({"rope_theta": "10000"}, "rope_theta '10000', expected a number above 0"),
        ({"partial_rotary_factor": 2}, "partial_rotary_factor 2, expected a number above 0 and at most 1"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5, expected 1" + OPEN),
        ({"model_type": "gpt_neox", "rotary_pct": 2}, "rotary_pct 2, expected a number above 0 and at most 1"),
        ({"model_type": "gpt_neox", "rotary_pct": 0.4}, "3 rotated dimensions, expected an even number"),
        ({"model_type": "gpt_neox", "rotary_emb_base": 0}, "rotary_emb_base 0, expected a number above 0"),
        (MISTRAL | {"sliding_window": 0}, "sliding_window 0, expected an integer from 1 "),
        (QWEN | {"max_window_layers": -1}, "max_window_layers -1, expected an integer from 0 "),
        (QWEN | {"layer_types": ["full_attention"]}, r"layer_types \['full_attention'\], expected " + KINDS + OPEN),
        (QWEN | {"layer_types": ["full_attention", "chunked_attention"]}, "layer_types .*, expected " + KINDS + OPEN),
        (QWEN | {"layer_types": 2}, "layer_types 2, expected " + KINDS + OPEN),
        (MISTRAL | {"sliding_window": "16"}, "sliding_window '16', expected an integer"),
        (
            {"attn_logit_softcapping": 50.0},
            r"attn_logit_softcapping 50.0, expected null \(a model that caps its attention scores does not open; ",
        ),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping 30.0, expected null .* caps its logits does not"),
        (NEO | {"window_size": 0}, "window_size 0, expected an integer from 1 "),
        (NEO | {"attention_types": [[["global"], 3]]}, "attention_types for 3 layers with num_layers 2, expected one"),
        (NEO | {"attention_types": [[["global"], 10**30]]}, "attention_types for 3 layers with num_layers 2, expected"),
        (NEO | {"attention_types": [[["sparse"], 2]]}, "attention_types .*sparse.*, expected " + NEO_KINDS + OPEN),
        (NEO | {"attention_types": {"global": 2}}, "attention_types .*, expected " + NEO_KINDS + OPEN),
        (NEO | {"attention_layers": "local"}, "attention_layers 'local', expected " + NEO_KINDS + OPEN),
        (NEO | {"num_heads": 3}, "hidden_size 32 with num_heads 3, expected hidden_size to be a multiple of num_heads"),
        (OPT | {"do_layer_norm_before": False}, "do_layer_norm_before false, expected true" + OPEN),
        (OPT | {"word_embed_proj_dim": 16}, "word_embed_proj_dim 16, expected 32" + OPEN),
        (OPT | {"layer_norm_elementwise_affine": False}, "layer_norm_elementwise_affine false, expected true" + OPEN),
        (OPT | {"_remove_final_layer_norm": True}, "_remove_final_layer_norm true, expected false" + OPEN),
        (
            OPT | {"activation_function": "silu"},
            "activation_function 'silu', expected 'relu' or 'gelu_new' or 'gelu'" + OPEN,
        ),
        (OPT | {"enable_bias": 1}, "enable_bias 1, expected true or false"),
        (OPT | {"ffn_dim": 0}, "ffn_dim 0, expected an integer from 1 "),
        (GEMMA | {"hidden_activation": "silu"}, "hidden_activation 'silu', expected 'gelu_new' or 'gelu'" + OPEN),
        (GEMMA | {"query_pre_attn_scalar": 0}, "query_pre_attn_scalar 0, expected a number above 0"),
        (GEMMA | {"query_pre_attn_scalar": "8"}, "query_pre_attn_scalar '8', expected a number above 0"),
        (GEMMA | {"use_bidirectional_attention": True}, "use_bidirectional_attention true, expected false" + OPEN),
        (GEMMA | {"sliding_window_pattern": 0}, "sliding_window_pattern 0, expected an integer from 1 "),
        (GEMMA | {"rope_local_base_freq": 0}, "rope_local_base_freq 0, expected a number above 0"),
        (GEMMA | {"rope_scaling": 5}, "rope_scaling 5, expected an object"),
        (
            GEMMA | {"rope_parameters": {"rope_theta": 9}},
            "rope_parameters {.*}, expected 'full_attention' and ",
        ),
        (GEMMA | {"rope_parameters": {"full_attention": 5}}, "rope_parameters 5, expected an object"),
        (
            GEMMA | {"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2}}},
            "rope_parameters.sliding_attention {.*}, expected rope_type 'default'" + OPEN,
        ),
        (GEMMA | {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping 50.0, expected null"),
        ({"num_experts": 8}, "num_experts 8" + MIXTURE),
        ({"num_local_experts": 8}, "num_local_experts 8" + MIXTURE),
        (
            {"quantization_config": {"quant_method": "gptq"}},
            "quantization_config .*, expected null .* quantised weights",
        ),
        ({"is_encoder_decoder": True}, "is_encoder_decoder true, expected false .*an encoder-decoder model does not"),
        ({"hidden_act": None}, "hidden_act null, expected 'silu'" + OPEN),
        ({"hidden_act": "relu2"}, "hidden_act 'relu2', expected 'silu'" + OPEN),
        ({"model_type": "gpt_neox", "hidden_act": "silu"}, "hidden_act 'silu', expected 'gelu_new' or 'gelu'" + OPEN),
        (
            {"num_key_value_heads": 3},
            "num_attention_heads 4 with num_key_value_heads 3, expected num_attention_heads to be a multiple of",
        ),
        ({"num_key_value_heads": -1}, "num_key_value_heads -1, expected an integer from 1 to 4"),
        ({"num_key_value_heads": 0}, "num_key_value_heads 0, expected an integer from 1 to 4"),
        ({"num_key_value_heads": "2"}, "num_key_value_heads '2', expected"),
        (
            {"hidden_size": 33},
            "hidden_size 33 with num_attention_heads 4, expected hidden_size to be a multiple of num_att",
        ),
        ({"head_dim": 2.5}, "head_dim 2.5, expected an integer"),
        ({"hidden_size": "32"}, "hidden_size '32', expected an integer"),
        ({"num_hidden_layers": 513}, "num_hidden_layers 513, expected an integer from 1 to 512"),
        ({"max_position_embeddings": 10**7}, "max_position_embeddings 10000000, expected an integer"),
        ({"attention_bias": "n_head"}, "attention_bias 'n_head', expected true or false"),
        ({"rms_norm_eps": 0}, "rms_norm_eps 0, expected a number between 0 and 1"),
        ({"attention_dropout": 1}, "attention_dropout 1, expected a number of at least 0 and below 1"),
        ({"model_type": "gpt_neox", "layer_norm_eps": None}, "layer_norm_eps null, expected a number between 0 and 1"),
        ({"model_type": "gpt_neox", "hidden_dropout": 2}, "hidden_dropout 2, expected a number of at least"),
        ({"model_type": "gpt_neox", "use_parallel_residual": 1}, "use_parallel_residual 1, expected true or false"),
        ({"intermediate_size": ..., "vocab_size": ...}, "no intermediate_size and no vocab_size, expected each of "),
        ({"model_type": "mixtral"}, "model_type 'mixtral', expected one of 'gpt2', .*'gemma3_text'$"),
    ],
)
def test_unsupported_configs_are_refused_in_one_sentence(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", {name: v for name, v in (LLAMA | changes).items() if v is not ...})
    refused(tmp_path, "config.json", f"found {message}")


def test_a_longer_context_is_used_up_to_a_limit() -> None:
    long, short = config_from_json(LLAMA | {"max_position_embeddings": 131_072}), config_from_json(LLAMA)
    assert (long.config.context_length, long.declared_context) == (MAX_ROTARY_CONTEXT, 131_072)
    assert MAX_ROTARY_CONTEXT == 8_192 and (short.config.context_length, short.declared_context) == (32, 32)


def test_all_families_are_named() -> None:
    assert all(model_type in OPENS for model_type in FAMILIES)
