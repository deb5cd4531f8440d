"""Llama (Touvron et al. 2023) and families that differ from it in a few choices: Mistral, Qwen 2 and 3, and OLMo 2."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ...config import MAX_N_EMBD, GPTConfig, check_int
from .family import (
    SILU,
    Family,
    Fields,
    Json,
    Stored,
    layer,
    parts_of_rows,
    rope_scaling,
    rotary,
    rotation,
    unsupported,
)

SIZES = {
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "context_length",
}
OPTIONS = {
    "rms_norm_eps": "layer_norm_epsilon",
    "attention_dropout": "attn_pdrop",
    "num_key_value_heads": "n_kv_head",
    "attention_bias": "qkv_bias",
    "mlp_bias": "mlp_bias",
    "tie_word_embeddings": "tie_word_embeddings",
}
FIELDS = Fields(SIZES, OPTIONS, "hidden_act", SILU)
DEFAULTS: Json = {
    "num_key_value_heads": None,
    "head_dim": None,
    "hidden_act": "silu",
    "max_position_embeddings": 2_048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
AFTER = {"post_attention_layernorm": "ln_1_post", "post_feedforward_layernorm": "ln_2_post"}
NORMS = {
    "before": {"input_layernorm": "ln_1", "post_attention_layernorm": "ln_2"},
    "after": AFTER,
    "both": {"input_layernorm": "ln_1", "pre_feedforward_layernorm": "ln_2"} | AFTER,
}
FULL, SLIDING = "full_attention", "sliding_attention"
WINDOW: Json = {"use_sliding_window": False, "sliding_window": 4_096, "max_window_layers": 28, "layer_types": None}
QWEN_DEFAULTS = DEFAULTS | WINDOW | {"num_key_value_heads": 32, "max_position_embeddings": 32_768}
QWEN_DEFAULTS |= {"bos_token_id": None, "eos_token_id": None}


def config_from(content: Json, fields: Fields = FIELDS, **choices: Any) -> GPTConfig:
    """``choices`` are those of ``GPTConfig`` in which a family differs, whatever the file says."""

    def others(sizes: Json) -> Json:
        head_dim, n_kv_head = content["head_dim"], content["num_key_value_heads"]
        if n_kv_head is not None:
            check_int("num_key_value_heads", n_kv_head, sizes["n_head"])
        if head_dim is not None:
            check_int("head_dim", head_dim, MAX_N_EMBD)
        own = {
            "n_kv_head": n_kv_head or 0,
            "head_dim": head_dim or 0,
            "rotary": rotary(content, head_dim or sizes["n_embd"] // sizes["n_head"]),
            "norm": "RMSNorm",
            "gated_mlp": True,
            "attn_proj_bias": content["attention_bias"],
        }
        return own | choices

    return fields.read(content, others)


def mistral_from(content: Json) -> GPTConfig:
    config = config_from(content, qkv_bias=False, attn_proj_bias=False, mlp_bias=False)
    return with_windows(content, config, range(config.n_layer))


def qwen_from(content: Json, **choices: Any) -> GPTConfig:
    """Layers from ``max_window_layers`` on have the window, or those of which ``layer_types`` says so."""
    config = config_from(content, mlp_bias=False, **choices)
    kinds, first = content["layer_types"], content["max_window_layers"]
    check_int("max_window_layers", first, 10**9, least=0)
    if not content["use_sliding_window"]:
        return config
    if kinds is None:
        return with_windows(content, config, range(first, config.n_layer))
    return with_windows(content, config, sliding_layers(kinds, config.n_layer))


def sliding_layers(kinds: object, n_layer: int) -> list[int]:
    """The layers that have a window, according to ``layer_types``. Raises ``InvalidValue``."""
    if not isinstance(kinds, list) or len(kinds) != n_layer or any(kind not in (FULL, SLIDING) for kind in kinds):
        raise unsupported("layer_types", kinds, f"'{FULL}' or '{SLIDING}' for each of the {n_layer} layers")
    return [layer for layer, kind in enumerate(kinds) if kind == SLIDING]


def with_windows(content: Json, config: GPTConfig, layers: Iterable[int], **choices: Any) -> GPTConfig:
    """``config`` with the file's window in these ``layers``, and other ``choices``. Raises ``InvalidValue``."""
    windows = dict.fromkeys(layers, content["sliding_window"])
    return replace(config, windows=tuple(windows.get(layer) for layer in range(config.n_layer)), **choices)


def config_to(config: GPTConfig, fields: Fields = FIELDS) -> Json:
    rope = rotation(config)
    return fields.write(config) | {
        "intermediate_size": config.inner_dim,
        "head_dim": config.head_dim,
        "rope_theta": rope.theta,
        "rope_scaling": rope_scaling(rope),
    }


def mistral_to(config: GPTConfig) -> Json:
    return config_to(config) | {"sliding_window": config.window(0)}


def qwen_to(config: GPTConfig) -> Json:
    if not config.windows:
        return config_to(config)
    layers = [layer for layer, window in enumerate(config.windows) if window]
    return config_to(config) | {
        "use_sliding_window": True,
        "sliding_window": config.windows[layers[0]],
        "max_window_layers": layers[0],
        "layer_types": [SLIDING if window else FULL for window in config.windows],
    }


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    yield "embed_tokens.weight", Stored("wte.weight")
    yield "norm.weight", Stored("ln_f.weight")
    yield "lm_head.weight", Stored("lm_head.weight")
    m = config.inner_dim
    for i in range(config.n_layer):
        theirs, ours = f"layers.{i}", f"h.{i}"
        for their_norm, our_norm in NORMS[config.norm_place].items():
            yield f"{theirs}.{their_norm}.weight", Stored(f"{ours}.{our_norm}.weight")
        for part, place in parts_of_rows(config).items():
            yield from layer(f"{theirs}.self_attn.{part}_proj", f"{ours}.attn.c_attn", config.qkv_bias, **place)
        for part in "qk" if config.qk_norm else "":
            yield f"{theirs}.self_attn.{part}_norm.weight", Stored(f"{ours}.attn.{part}_norm.weight")
        yield from layer(f"{theirs}.self_attn.o_proj", f"{ours}.attn.c_proj", config.attn_proj_bias)
        yield from layer(f"{theirs}.mlp.gate_proj", f"{ours}.mlp.c_fc", config.mlp_bias, start=0, stop=m)
        yield from layer(f"{theirs}.mlp.up_proj", f"{ours}.mlp.c_fc", config.mlp_bias, start=m, stop=2 * m)
        yield from layer(f"{theirs}.mlp.down_proj", f"{ours}.mlp.c_proj", config.mlp_bias)


LLAMA = Family(
    model_type="llama",
    architecture="LlamaForCausalLM",
    prefix="model.",
    defaults=DEFAULTS,
    ignored=re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq"),
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
)
MISTRAL = LLAMA._replace(
    model_type="mistral",
    architecture="MistralForCausalLM",
    defaults=DEFAULTS
    | {"num_key_value_heads": 8, "max_position_embeddings": 131_072, "sliding_window": WINDOW["sliding_window"]},
    config_from=mistral_from,
    config_to=mistral_to,
)
QWEN2 = LLAMA._replace(
    model_type="qwen2",
    architecture="Qwen2ForCausalLM",
    defaults=QWEN_DEFAULTS,
    config_from=partial(qwen_from, qkv_bias=True, attn_proj_bias=False),
    config_to=qwen_to,
)
QWEN3 = LLAMA._replace(
    model_type="qwen3",
    architecture="Qwen3ForCausalLM",
    defaults=QWEN_DEFAULTS | {"head_dim": 128},
    config_from=partial(qwen_from, qk_norm=True),
    config_to=qwen_to,
)
OLMO2 = LLAMA._replace(
    model_type="olmo2",
    architecture="Olmo2ForCausalLM",
    defaults=DEFAULTS | {"rms_norm_eps": 1e-5, "bos_token_id": None, "eos_token_id": 50_279},
    config_from=partial(config_from, mlp_bias=False, norm_place="after", qk_norm=True, joint_qk_norm=True),
)
