"""The files of a checkpoint folder, which transformers, vLLM and other engines open without conversion.

A folder holds ``config.json``, ``model.safetensors`` (with the tensor names of the model's family), ``tokenizer.json``
and ``tokenizer_config.json``.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..config import GPTConfig
from ..errors import MAX_FOUND, CheckpointError, InvalidValue, Mismatch, shorten
from ..tokenizer import END_OF_TEXT, Tokenizer
from .families.family import MAX_ROTARY_CONTEXT, Family
from .families.gemma3 import GEMMA3
from .families.gpt2 import GPT2
from .families.gpt_neo import GPT_NEO
from .families.gpt_neox import GPT_NEOX
from .families.llama import LLAMA, MISTRAL, OLMO2, QWEN2, QWEN3
from .families.opt import OPT
from .files import checkpoint_errors, read_json

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
OLDER_WEIGHTS = "pytorch_model.bin"  # written by transformers before it used safetensors
SHARDS = ".index.json"  # ends the name of a list of files that hold the weights together
SHARD_INDEX, OLDER_SHARD_INDEX = WEIGHTS + SHARDS, OLDER_WEIGHTS + SHARDS
WEIGHT_FILES = (WEIGHTS, SHARD_INDEX, OLDER_WEIGHTS, OLDER_SHARD_INDEX)  # the first of them that a folder has is used
ADAPTER, TOKENIZER_CONFIG = "adapter_config.json", "tokenizer_config.json"
CHAT_TEMPLATE, GENERATION_CONFIG = "chat_template.jinja", "generation_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"  # written by transformers before tokenizer_config.json had these names
MAX_CONFIG_BYTES = 1_000_000
SNAPSHOTS = "steps"  # the folder of weights kept during training
# The special tokens that transformers has by name in every tokenizer; a tokenizer may have others of its own.
STANDARD_TOKENS = tuple(f"{kind}_token" for kind in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
OPENED = (GPT2, GPT_NEO, OPT, GPT_NEOX, LLAMA, MISTRAL, QWEN2, QWEN3, OLMO2, GEMMA3)
FAMILIES = {family.model_type: family for family in OPENED}


class ModelConfig(NamedTuple):
    """What a ``config.json`` says. A text ends at any of ``end_ids``.

    ``declared_context`` is the context length in the file, of which at most ``MAX_ROTARY_CONTEXT`` tokens are used.
    """

    config: GPTConfig
    bos_token_id: int | None
    end_ids: tuple[int, ...]
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
    bos, ends = content.get("bos_token_id"), content.get("eos_token_id")
    if isinstance(bos, list):
        raise InvalidValue("bos_token_id", bos, "null or a token id")
    begins = special_tokens("bos_token_id", bos, config.vocab_size)
    ends = special_tokens("eos_token_id", ends, config.vocab_size)
    return ModelConfig(config, begins[0] if begins else None, tuple(ends), family.model_type, declared_context)


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
    if not os.path.isfile(path):
        check_not_adapter(folder)
    content = read_json(path, MAX_CONFIG_BYTES)
    with checkpoint_errors(path, "the config of a model"):
        return config_from_json(content)


def check_not_adapter(folder: Path) -> None:
    """Raise ``CheckpointError`` if a folder that lacks a part of a model has an adapter, as PEFT writes it."""
    path = folder / ADAPTER
    if os.path.isfile(path):
        content = read_json(path, MAX_CONFIG_BYTES)
        base = content.get("base_model_name_or_path") if isinstance(content, dict) else None
        raise CheckpointError(
            path,
            f"an adapter (such as LoRA's) without the model that it changes, {shorten(base, MAX_FOUND)}",
            "a whole model: load both with PEFT, call merge_and_unload(), and save the result",
        )


def special_tokens(name: str, stored: object, vocab_size: int) -> list[int]:
    """The token ids stored as ``name``: one, a list, or null.

    An id outside the vocabulary is left out: by default, transformers writes 50256 for any vocabulary.
    """
    ids: list[int] = []
    for token_id in stored if isinstance(stored, list) else [stored]:
        if token_id is None:
            continue
        if not isinstance(token_id, int) or isinstance(token_id, bool) or token_id < 0:
            raise InvalidValue(name, token_id, "null or a token id")
        if token_id < vocab_size:
            ids.append(token_id)
    return ids


def config_to_json(config: GPTConfig, bos_token_id: int | None, end_ids: Sequence[int] = ()) -> dict[str, object]:
    """The content of a ``config.json`` from which transformers builds the same model, computing in float32."""
    family = family_of(config)
    return {
        "model_type": family.model_type,
        "architectures": [family.architecture],
        "dtype": "float32",
        "bos_token_id": bos_token_id,
        "eos_token_id": list(end_ids) if len(end_ids) > 1 else next(iter(end_ids), None),
        **family.config_to(config),
    }


def tokenizer_config(named_tokens: Mapping[str, str], context_length: int, chat_template: str) -> dict[str, object]:
    """The content of ``tokenizer_config.json``, with the tokenizer's special tokens by name.

    It has to name the tokenizer class, or transformers would use that of the family's first model.
    """
    content: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],  # no token types, which transformers 4 would embed
    }
    content |= {name: text for name, text in named_tokens.items() if name in STANDARD_TOKENS}
    if own := {name: text for name, text in named_tokens.items() if name not in STANDARD_TOKENS}:
        content["extra_special_tokens"] = own
    if chat_template:
        content["chat_template"] = chat_template
    return content


def tokens_by_name(tokenizer: Tokenizer, bos_token_id: int | None, eos_token_id: int | None) -> dict[str, str]:
    """The special tokens by name of a tokenizer that no file describes yet."""
    texts = {token_id: text for text, token_id in tokenizer.special_tokens.items()}
    ids = {"bos_token": bos_token_id, "eos_token": eos_token_id, "unk_token": tokenizer.special_tokens.get(END_OF_TEXT)}
    return {name: texts[token_id] for name, token_id in ids.items() if token_id in texts}


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
