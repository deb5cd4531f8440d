"""Small random models of transformers in every family that opens, and their folders."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from helpers import also_slow
from helpers.files import write_json
from helpers.models import char_spec, wide_alphabet
from helpers.oracles import gpt2_shapes
from helpers.oracles.gpt2_shapes import transformers_keys

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BASE: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "hidden_size": 32,
    "intermediate_size": 48,
    "vocab_size": 65,
    "max_position_embeddings": 32,
}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 50.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3["original_max_position_embeddings"] = 16
YARN = {"rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0, "original_max_position_embeddings": 8}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 50.0, "factor": 4.0}
# The model type, and what differs from ``BASE``.
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, grouped, tied": ("llama", {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "llama, odd heads, one key head": (
        "llama",
        {"num_attention_heads": 3, "num_key_value_heads": 1, "hidden_size": 24, "num_hidden_layers": 3},
    ),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 2}),
    "llama, wide heads": ("llama", {"head_dim": 12, "num_key_value_heads": 1, "rms_norm_eps": 1e-2}),
    "llama 3": ("llama", {"rope_parameters": LLAMA3, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    "llama, yarn": ("llama", {"rope_parameters": YARN, "num_key_value_heads": 2, "head_dim": 12}),
    "llama, yarn, as given": (
        "llama",
        {
            "rope_parameters": YARN | {"attention_factor": 0.9, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False},
            "head_dim": 10,
        },
    ),
    "llama, linear": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 50.0, "factor": 3.0}}),
    "qwen2, dynamic": ("qwen2", {"rope_parameters": DYNAMIC, "num_key_value_heads": 2}),
    "mistral": ("mistral", {"num_key_value_heads": 2, "head_dim": 10, "sliding_window": None}),
    "mistral, a window as long as the context": ("mistral", {"num_key_value_heads": 2, "sliding_window": 32}),
    "mistral, a window": ("mistral", {"num_key_value_heads": 2, "head_dim": 6, "sliding_window": 5}),
    "qwen2": ("qwen2", {"num_key_value_heads": 2}),
    "qwen2, a window in some layers": (
        "qwen2",
        {
            "num_hidden_layers": 3,
            "num_key_value_heads": 1,
            "use_sliding_window": True,
            "sliding_window": 3,
            "max_window_layers": 1,
        },
    ),
    "qwen3, a window of two tokens": (
        "qwen3",
        {
            "num_key_value_heads": 2,
            "head_dim": 6,
            "use_sliding_window": True,
            "sliding_window": 2,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "qwen2, tied, 9 heads": (
        "qwen2",
        {
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "hidden_size": 36,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        },
    ),
    "qwen3": ("qwen3", {"num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": True}),
    "qwen3, untied, biases": ("qwen3", {"num_key_value_heads": 1, "head_dim": 6, "attention_bias": True}),
    "pythia": ("gpt_neox", {}),
    "pythia, all rotated": ("gpt_neox", {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}}),
    "gpt_neox, one after the other": (
        "gpt_neox",
        {"use_parallel_residual": False, "tie_word_embeddings": True, "hidden_act": "gelu_new"},
    ),
    "gemma3": (
        "gemma3_text",
        {
            "num_key_value_heads": 2,
            "head_dim": 6,
            "query_pre_attn_scalar": 5,
            "sliding_window": 5,
            "sliding_window_pattern": 2,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 50.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 20.0},
            },
        },
    ),
    "gemma3, biases, a window as long as the context": (
        "gemma3_text",
        {
            "num_key_value_heads": 1,
            "head_dim": 10,
            "sliding_window": 32,
            "layer_types": ["full_attention", "sliding_attention"],
            "attention_bias": True,
            "tie_word_embeddings": False,
            "rms_norm_eps": 1e-2,
        },
    ),
    "olmo2": ("olmo2", {"num_key_value_heads": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
    "olmo2, odd heads, biases, tied": (
        "olmo2",
        {
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "hidden_size": 24,
            "num_hidden_layers": 3,
            "attention_bias": True,
            "tie_word_embeddings": True,
        },
    ),
    "gpt_neo": ("gpt_neo", {"num_hidden_layers": 3, "window_size": 5}),
    "gpt_neo, odd heads, every layer global": (
        "gpt_neo",
        {
            "num_attention_heads": 3,
            "hidden_size": 15,
            "intermediate_size": 7,
            "attention_types": [[["global"], 2]],
            "activation_function": "gelu",
            "tie_word_embeddings": False,
        },
    ),
    "gpt_neo, a window as long as the context": ("gpt_neo", {"window_size": 32, "layer_norm_epsilon": 1e-2}),
    "opt": ("opt", {"num_hidden_layers": 3}),
    "opt, odd heads, no biases, untied": (
        "opt",
        {
            "num_attention_heads": 3,
            "hidden_size": 15,
            "ffn_dim": 7,
            "enable_bias": False,
            "activation_function": "gelu",
            "tie_word_embeddings": False,
        },
    ),
    "gpt_neox, no attention bias": (
        "gpt_neox",
        {"attention_bias": False, "num_attention_heads": 1, "hidden_size": 16, "layer_norm_eps": 1e-2},
    ),
}
SHAPES |= {f"gpt2, {name}": ("gpt2", transformers_keys(name)) for name in gpt2_shapes.SHAPES}
ONE_OF_EACH = [
    "llama, grouped, tied",
    "llama 3",
    "llama, yarn",
    "mistral",
    "mistral, a window",
    "qwen2",
    "qwen3",
    "pythia",
    "gpt_neo",
    "gemma3",
    "olmo2",
    "opt",
]
# One of each kind: absolute positions, groups of heads, windows, normalised queries and keys, attention and MLP side by
# side.
KINDS = [
    "gpt2, plain",
    "llama, grouped, tied",
    "mistral, a window",
    "qwen3",
    "pythia",
    "gpt_neo",
    "gemma3",
    "olmo2",
    "opt",
]


def one_of_each_kind(names: Iterable[str]) -> list[Any]:
    """Values of a parameter: the shapes of ``KINDS``, and the others among the slow tests."""
    return [each for name in names for each in ([name] if name in KINDS else also_slow(name))]


def reference(name: str, seed: int = 0, **changes: Any) -> "PreTrainedModel":
    """A random model of transformers, with explicit attention."""
    from transformers import AutoConfig, AutoModelForCausalLM

    model_type, shape = SHAPES[name]
    if model_type == "gpt2":
        return gpt2_shapes.reference(seed, **shape | changes)
    keys = BASE | {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None} | shape | changes
    if model_type == "gpt_neo":
        n_layer = keys["num_layers"] = keys.pop("num_hidden_layers")
        keys = {"attention_types": [[["local", "global", "local"][:n_layer], 1]]} | keys
    if model_type == "opt":
        keys = {"ffn_dim": keys.pop("intermediate_size")} | keys
    config = AutoConfig.for_model(model_type, **keys)
    gpt = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter_name, parameter in gpt.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator) * 0.25
            is_gain = ("norm" in parameter_name or "ln_" in parameter_name) and parameter_name.endswith("weight")
            parameter.copy_(noise + 1 if is_gain and model_type != "gemma3_text" else noise)
    return gpt.eval()


def write(gpt: "PreTrainedModel", folder: Path, **options: Any) -> Path:
    """Save it with transformers' own function, with a character vocabulary of at most 65 tokens."""
    gpt.save_pretrained(folder, **options)
    write_json(folder / "tokenizer.json", char_spec(wide_alphabet(min(gpt.config.vocab_size, 65))))
    return folder
