"""The file format of a GPT-2 checkpoint, which transformers, vLLM and other engines open without conversion.

A folder holds ``config.json``, ``model.safetensors`` (GPT-2's tensor names, linear weights stored ``(in, out)``),
``tokenizer.json`` and ``tokenizer_config.json``.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ..config import Activation, GPTConfig
from ..errors import CheckpointError, InvalidValue, Mismatch
from ..tokenizer import END_OF_TEXT, Tokenizer
from .files import checkpoint_errors, read_json, read_text

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
OLDER_WEIGHTS = "pytorch_model.bin"  # written by transformers before it used safetensors
SHARD_INDEX, TOKENIZER_CONFIG = "model.safetensors.index.json", "tokenizer_config.json"
CHAT_TEMPLATE = "chat_template.jinja"
MAX_CONFIG_BYTES = 1_000_000
MAX_TEMPLATE_BYTES = 64_000
SNAPSHOTS = "steps"  # the folder of weights kept during training
TRANSPOSED = re.compile(r"h\.\d+\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight")
MASK_BUFFER = re.compile(r"h\.\d+\.attn\.(masked_)?bias")  # the causal mask, stored by the oldest files; ignored
# The names of activation functions in a ``config.json``; two of them name the same function.
ACTIVATIONS: dict[object, Activation] = {"gelu_new": "gelu_new", "gelu_pytorch_tanh": "gelu_new", "gelu": "gelu"}
SIZES = {
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_embd": "n_embd",
    "vocab_size": "vocab_size",
    "n_positions": "context_length",
}
SWITCHES = (
    "n_inner",
    "layer_norm_epsilon",
    "qkv_bias",
    "tie_word_embeddings",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "embd_pdrop",
    "attn_pdrop",
    "resid_pdrop",
)
# Keys for features that are not supported: only these values, which turn the feature off, are accepted.
NEUTRAL: dict[str, object] = {
    "add_cross_attention": False,
    "quantization_config": None,
    "pruned_heads": {},
    "is_encoder_decoder": False,
}


def config_from_json(content: object) -> tuple[GPTConfig, int | None, int | None]:
    """The config, bos token id and eos token id in a ``config.json``. Raises ``Mismatch`` naming the problem."""
    if not isinstance(content, dict):
        raise Mismatch("no JSON object", "the config of a GPT-2 model")
    if content.get("model_type") != "gpt2":
        raise InvalidValue("model_type", content.get("model_type"), "'gpt2'")
    activation = content.get("activation_function", "gelu_new")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise InvalidValue("activation_function", activation, "'gelu_new' or 'gelu'")
    for name, neutral in NEUTRAL.items():
        if content.get(name, neutral) not in (neutral, None):
            raise InvalidValue(name, content[name], json.dumps(neutral))
    missing = [name for name in SIZES if name not in content]
    if missing:
        raise Mismatch(f"no {' and no '.join(missing)}", f"each of {', '.join(SIZES)}")
    sizes = {field: content[name] for name, field in SIZES.items()}
    switches = {name: content[name] for name in SWITCHES if name in content}
    config = GPTConfig(**sizes, **switches, activation_function=ACTIVATIONS[activation])
    return config, special_token(content, "bos_token_id", config), special_token(content, "eos_token_id", config)


def read_config(folder: Path) -> tuple[GPTConfig, int | None, int | None]:
    """The config, bos token id and eos token id of the checkpoint in ``folder``. Raises ``CheckpointError``."""
    path = folder / CONFIG
    content = read_json(path, MAX_CONFIG_BYTES)
    with checkpoint_errors(path, "the config of a GPT-2 model"):
        return config_from_json(content)


def read_chat_template(folder: Path) -> str:
    """The Jinja template that turns a conversation into a prompt, or "" if the folder has none.

    It is a separate file, or part of ``tokenizer_config.json``, which may contain several named templates. Raises
    ``CheckpointError``.
    """
    path = folder / CHAT_TEMPLATE
    if path.is_file():
        return read_text(path, "a chat template", MAX_TEMPLATE_BYTES)
    path = folder / TOKENIZER_CONFIG
    if not path.is_file():
        return ""
    content = read_json(path, MAX_CONFIG_BYTES)
    template = content.get("chat_template") if isinstance(content, dict) else None
    if isinstance(template, list):
        named = (each for each in template if isinstance(each, dict) and each.get("name") == "default")
        template = next(named, {}).get("template")
    if template is not None and (not isinstance(template, str) or len(template.encode()) > MAX_TEMPLATE_BYTES):
        raise CheckpointError(path, "a chat_template of another kind", f"text of at most {MAX_TEMPLATE_BYTES:,} bytes")
    return template or ""


def special_token(content: Mapping[str, object], name: str, config: GPTConfig) -> int | None:
    """The token id stored as ``name``, or None.

    An id outside the vocabulary counts as None: by default, transformers writes 50256 for any vocabulary.
    """
    token_id = content.get(name)
    if token_id is None:
        return None
    if not isinstance(token_id, int) or isinstance(token_id, bool) or token_id < 0:
        raise InvalidValue(name, token_id, "null or a token id")
    return token_id if token_id < config.vocab_size else None


def config_to_json(config: GPTConfig, bos_token_id: int | None, eos_token_id: int | None) -> dict[str, object]:
    """The content of a ``config.json`` from which transformers builds the same model, computing in float32."""
    sizes = {name: getattr(config, field) for name, field in SIZES.items()}
    switches = {name: getattr(config, name) for name in SWITCHES}
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": config.activation_function,
        "dtype": "float32",
        "bos_token_id": bos_token_id,
        "eos_token_id": eos_token_id,
        **sizes,
        **switches,
    }


def tokenizer_config(tokenizer: Tokenizer, context_length: int, chat_template: str = "") -> dict[str, object]:
    """The content of ``tokenizer_config.json``.

    It has to name the tokenizer class, or transformers would use GPT-2's tokenizer for any GPT-2 folder.
    """
    content: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],  # no token types, which transformers 4 would embed
    }
    if END_OF_TEXT in tokenizer.special_tokens:
        content |= dict.fromkeys(("bos_token", "eos_token", "unk_token"), END_OF_TEXT)
    if chat_template:
        content["chat_template"] = chat_template
    return content


def file_tensors(config: GPTConfig, state: Mapping[str, Tensor], dtype: torch.dtype | None) -> dict[str, Tensor]:
    """The tensors to store in ``model.safetensors`` for a GPT's state dict, converted to ``dtype`` if given."""
    tensors = {}
    for name, tensor in state.items():
        if name == "lm_head.weight":
            if not config.tie_word_embeddings:
                tensors[name] = tensor
            continue
        tensors["transformer." + name] = tensor.t() if TRANSPOSED.fullmatch(name) else tensor
    if not config.qkv_bias:  # GPT-2 in transformers always has this bias
        for layer in range(config.n_layer):
            tensors[f"transformer.h.{layer}.attn.c_attn.bias"] = torch.zeros(3 * config.n_embd)
    return {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in tensors.items()}
