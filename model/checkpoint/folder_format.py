"""The files of a checkpoint folder, which transformers, vLLM and other engines open without conversion.

A folder holds ``config.json``, ``model.safetensors`` (with the tensor names of the model's family), ``tokenizer.json``
and ``tokenizer_config.json``.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..config import GPTConfig
from ..errors import CheckpointError, InvalidValue, Mismatch
from ..tokenizer import END_OF_TEXT, Tokenizer
from .family import MAX_ROTARY_CONTEXT, Family
from .files import checkpoint_errors, read_json, read_text
from .gpt2 import GPT2
from .gpt_neox import GPT_NEOX
from .llama import LLAMA, MISTRAL, QWEN2, QWEN3

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
OLDER_WEIGHTS = "pytorch_model.bin"  # written by transformers before it used safetensors
SHARD_INDEX, TOKENIZER_CONFIG = "model.safetensors.index.json", "tokenizer_config.json"
CHAT_TEMPLATE = "chat_template.jinja"
MAX_CONFIG_BYTES = 1_000_000
MAX_TEMPLATE_BYTES = 64_000
SNAPSHOTS = "steps"  # the folder of weights kept during training
FAMILIES = {family.model_type: family for family in (GPT2, GPT_NEOX, LLAMA, MISTRAL, QWEN2, QWEN3)}


class ModelConfig(NamedTuple):
    """What a ``config.json`` says. A text ends at the eos token or at any of ``other_end_ids``.

    ``declared_context`` is the context length in the file, of which at most ``MAX_ROTARY_CONTEXT`` tokens are used.
    """

    config: GPTConfig
    bos_token_id: int | None
    eos_token_id: int | None
    other_end_ids: tuple[int, ...]
    model_type: str
    declared_context: int


def config_from_json(content: object) -> ModelConfig:
    """Read a ``config.json``. Raises ``Mismatch`` naming the problem."""
    if not isinstance(content, dict):
        raise Mismatch("no JSON object", "the config of a model")
    model_type = content.get("model_type")
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None:
        raise InvalidValue("model_type", model_type, f"one of {', '.join(map(repr, FAMILIES))}")
    content = family.defaults | content
    config = family.config_from(content)
    declared_context = config.context_length
    if config.rotary is not None and config.context_length > MAX_ROTARY_CONTEXT:
        config = replace(config, context_length=MAX_ROTARY_CONTEXT)
    end = content.get("eos_token_id")
    ends = [special_token("eos_token_id", token_id, config) for token_id in (end if isinstance(end, list) else [end])]
    known = [token_id for token_id in ends if token_id is not None]
    bos = special_token("bos_token_id", content.get("bos_token_id"), config)
    ends_after = tuple(known[1:])
    return ModelConfig(config, bos, known[0] if known else None, ends_after, family.model_type, declared_context)


@lru_cache(maxsize=64)
def family_of(config: GPTConfig) -> Family:
    """The family whose ``config.json`` can describe this model. Raises ``ValueError`` if there is none."""
    # Training alone uses dropout.
    plain = replace(config, n_inner=config.inner_dim, embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)
    for family in FAMILIES.values():
        try:
            if family.config_from(family.defaults | family.config_to(plain)) == plain:
                return family
        except (InvalidValue, Mismatch):
            continue
    raise ValueError(f"no family of models has this combination of choices: {config}")


def read_config(folder: Path) -> ModelConfig:
    """The ``config.json`` of the checkpoint in ``folder``. Raises ``CheckpointError``."""
    path = folder / CONFIG
    content = read_json(path, MAX_CONFIG_BYTES)
    with checkpoint_errors(path, "the config of a model"):
        return config_from_json(content)


def read_chat_template(folder: Path) -> str:
    """The Jinja template that turns a conversation into a prompt, or "" if the folder has none.

    It is a separate file, or part of ``tokenizer_config.json``, which may contain several named templates. Raises
    ``CheckpointError``.
    """
    path = folder / CHAT_TEMPLATE
    if os.path.isfile(path):
        return read_text(path, "a chat template", MAX_TEMPLATE_BYTES)
    path = folder / TOKENIZER_CONFIG
    if not os.path.isfile(path):
        return ""
    content = read_json(path, MAX_CONFIG_BYTES)
    template = content.get("chat_template") if isinstance(content, dict) else None
    if isinstance(template, list):
        named = (each for each in template if isinstance(each, dict) and each.get("name") == "default")
        template = next(named, {}).get("template")
    if template is not None and (not isinstance(template, str) or len(template.encode()) > MAX_TEMPLATE_BYTES):
        raise CheckpointError(path, "a chat_template of another kind", f"text of at most {MAX_TEMPLATE_BYTES:,} bytes")
    return template or ""


def special_token(name: str, token_id: object, config: GPTConfig) -> int | None:
    """The token id stored as ``name``, or None.

    An id outside the vocabulary counts as None: by default, transformers writes 50256 for any vocabulary.
    """
    if token_id is None:
        return None
    if not isinstance(token_id, int) or isinstance(token_id, bool) or token_id < 0:
        raise InvalidValue(name, token_id, "null or a token id")
    return token_id if token_id < config.vocab_size else None


def config_to_json(
    config: GPTConfig, bos_token_id: int | None, eos_token_id: int | None, other_end_ids: tuple[int, ...] = ()
) -> dict[str, object]:
    """The content of a ``config.json`` from which transformers builds the same model, computing in float32."""
    family = family_of(config)
    return {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "dtype": "float32",
        "bos_token_id": bos_token_id,
        "eos_token_id": [eos_token_id, *other_end_ids] if other_end_ids else eos_token_id,
        **family.config_to(config),
    }


def tokenizer_config(
    tokenizer: Tokenizer, context_length: int, bos_token_id: int | None, eos_token_id: int | None, chat_template: str
) -> dict[str, object]:
    """The content of ``tokenizer_config.json``.

    It has to name the tokenizer class, or transformers would use that of the family's first model.
    """
    content: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],  # no token types, which transformers 4 would embed
    }
    names = {token_id: name for name, token_id in tokenizer.special_tokens.items()}
    ids = {"bos_token": bos_token_id, "eos_token": eos_token_id}
    content |= {kind: names[token_id] for kind, token_id in ids.items() if token_id in names}
    if END_OF_TEXT in tokenizer.special_tokens:
        content["unk_token"] = END_OF_TEXT
    if chat_template:
        content["chat_template"] = chat_template
    return content


def file_tensors(config: GPTConfig, state: Mapping[str, Tensor], dtype: torch.dtype | None) -> dict[str, Tensor]:
    """The tensors to store in ``model.safetensors`` for a GPT's state dict, converted to ``dtype`` if given."""
    family, tensors = family_of(config), {}
    for name, stored in family.tensors(config):
        if stored.parameter != "lm_head.weight":
            tensors[family.prefix + name] = stored.to_file(state[stored.parameter][stored.start : stored.stop])
        elif not config.tie_word_embeddings:
            tensors[name] = state[stored.parameter]
    tensors |= {family.prefix + name: torch.zeros(shape) for name, shape in family.zeros(config).items()}
    return {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in tensors.items()}
