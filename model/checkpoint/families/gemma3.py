"""Gemma 3's language models (Gemma Team 2025): norms before and after, and a window in most layers.

Layers with a window have a rotation of their own. A gain is stored as its difference from 1.
"""

import re
from collections.abc import Iterator

from torch import Tensor

from ...config import GPTConfig, RotaryConfig, check_int
from . import llama
from .family import GELU, Json, Stored, rotary, rotation, unsupported
from .llama import FULL, LLAMA, SLIDING, sliding_layers, with_windows

ROPE = "rope_parameters"
FIELDS = llama.FIELDS._replace(activation="hidden_activation", activations=GELU)
DEFAULTS = {name: value for name, value in LLAMA.defaults.items() if name != "hidden_act"} | {
    "num_key_value_heads": 4,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 131_072,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4_096,
    "sliding_window_pattern": 6,
    "layer_types": None,
    "use_bidirectional_attention": False,
    "tie_word_embeddings": True,
    "bos_token_id": 2,
    "eos_token_id": 1,
}


def config_from(content: Json) -> GPTConfig:
    if content["use_bidirectional_attention"]:
        raise unsupported("use_bidirectional_attention", content["use_bidirectional_attention"], "false")
    config = llama.config_from(
        content | {ROPE: {}, "rope_scaling": None},
        FIELDS,
        mlp_bias=False,
        norm_place="both",
        qk_norm=True,
        scale_embeddings=True,
        query_pre_attn_scalar=content["query_pre_attn_scalar"],
    )
    full, local = rotations(content, config.head_dim)
    kinds, every = content["layer_types"], content["sliding_window_pattern"]
    if kinds is None:
        check_int("sliding_window_pattern", every, 10**9)
        kinds = [SLIDING if (layer + 1) % every else FULL for layer in range(config.n_layer)]
    sliding = sliding_layers(kinds, config.n_layer)
    rotaries = tuple(local if layer in sliding else full for layer in range(config.n_layer))
    return with_windows(content, config, sliding, rotary=full, rotaries=rotaries)


def rotations(content: Json, head_dim: int) -> tuple[RotaryConfig, RotaryConfig]:
    """Those of layers without and with a window, as transformers 4 or 5 writes them. Raises ``InvalidValue``."""
    stored = content.get(ROPE) or {}
    if not isinstance(stored, dict) or not stored.keys() <= {FULL, SLIDING}:
        raise unsupported(ROPE, stored, f"'{FULL}' and '{SLIDING}'")
    of_full, of_local = (stored.get(kind) or {} for kind in (FULL, SLIDING))
    scaling = content.get("rope_scaling") or {}
    if isinstance(of_full, dict) and isinstance(scaling, dict):
        of_full, scaling = of_full | scaling, {}
    full = rotary(content | {ROPE: of_full, "rope_scaling": scaling}, head_dim)
    local = rotary(content | {ROPE: of_local, "rope_scaling": None}, head_dim, "rope_local_base_freq")
    if local.scaling is not None:
        raise unsupported(f"{ROPE}.{SLIDING}", of_local, "rope_type 'default'")
    return full, local


def config_to(config: GPTConfig) -> Json:
    rope = rotation(config)
    layers = range(config.n_layer)
    is_local = [bool(config.window(layer)) or config.rotation(layer) != rope for layer in layers]
    found = next((config.rotation(layer) for layer in layers if is_local[layer]), None)
    return llama.config_to(config, FIELDS) | {
        "rope_local_base_freq": DEFAULTS["rope_local_base_freq"] if found is None else found.theta,
        "query_pre_attn_scalar": config.query_pre_attn_scalar,
        "sliding_window": next(filter(None, config.windows), config.context_length),
        "layer_types": [SLIDING if local else FULL for local in is_local],
    }


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    for name, stored in LLAMA.tensors(config):
        is_gain = name.endswith("norm.weight")
        yield name, stored._replace(to_file=less_one, from_file=plus_one) if is_gain else stored


def less_one(gain: Tensor) -> Tensor:
    return gain - 1


def plus_one(stored: Tensor) -> Tensor:
    return stored.float() + 1  # in half precision the sum would lose most of what is stored


GEMMA3 = LLAMA._replace(
    model_type="gemma3_text",
    architecture="Gemma3ForCausalLM",
    defaults=DEFAULTS,
    ignored=re.compile(r"(layers\.\d+\.self_attn\.)?rotary_emb(_local)?\.\w*inv_freq|embed_tokens\.embed_scale"),
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
)
