"""How texts and conversations of a checkpoint are written, as the files next to its weights and vocabulary say."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import CheckpointError, InvalidValue
from ..sampling import SAMPLING_OPTIONS
from ..tokenizer import END_OF_TEXT, Tokenizer
from .families.gemma3 import GEMMA3
from .families.gpt2 import GPT2
from .families.gpt_neo import GPT_NEO
from .families.gpt_neox import GPT_NEOX
from .families.llama import LLAMA, MISTRAL, QWEN2, QWEN3
from .families.opt import OPT
from .files import checkpoint_errors, read_json, read_text
from .folder_format import (
    CHAT_TEMPLATE,
    GENERATION_CONFIG,
    MAX_CONFIG_BYTES,
    SPECIAL_TOKENS,
    STANDARD_TOKENS,
    TOKENIZER_CONFIG,
    special_tokens,
)

log = logging.getLogger(__name__)

MAX_TEMPLATE_BYTES = 64_000
MAX_TOKENIZER_CONFIG_BYTES = 8_000_000  # it may list every added token
# The special tokens that transformers' tokenizers have unless a file says otherwise, by class.
END_ALONE = dict.fromkeys(("bos_token", "eos_token", "unk_token"), END_OF_TEXT)
CLASS_TOKENS: dict[str, dict[str, str]] = {
    "GemmaTokenizer": {f"{kind}_token": f"<{kind}>" for kind in ("bos", "eos", "pad", "unk", "mask")},
    "GPT2Tokenizer": END_ALONE,
    "GPTNeoXTokenizer": END_ALONE | {"pad_token": "<|padding|>"},
    "LlamaTokenizer": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "Qwen2Tokenizer": dict.fromkeys(("eos_token", "unk_token", "pad_token"), END_OF_TEXT),
}
CLASS_OF_FAMILY = {
    GEMMA3.model_type: "GemmaTokenizer",
    GPT2.model_type: "GPT2Tokenizer",
    GPT_NEO.model_type: "GPT2Tokenizer",
    GPT_NEOX.model_type: "GPTNeoXTokenizer",
    LLAMA.model_type: "LlamaTokenizer",
    MISTRAL.model_type: "LlamaTokenizer",
    OPT.model_type: "GPT2Tokenizer",
    QWEN2.model_type: "Qwen2Tokenizer",
    QWEN3.model_type: "Qwen2Tokenizer",
}


def read_object(path: Path, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, object]:
    """The object in a JSON file, empty if there is no file. Raises ``CheckpointError``."""
    content = read_json(path, max_bytes) if os.path.isfile(path) else {}
    if not isinstance(content, dict):
        raise CheckpointError(path, "no JSON object", "one")
    return content


def read_generation_config(folder: Path) -> dict[str, object]:
    """The content of ``generation_config.json``, empty if there is none. Raises ``CheckpointError``.

    A sampling default that cannot be used is left out of ``sampling_defaults``, with a warning.
    """
    content = read_object(folder / GENERATION_CONFIG)
    sampling_defaults(content, folder / GENERATION_CONFIG)
    return content


def sampling_defaults(content: Mapping[str, object], warn_about: Path | None = None) -> dict[str, float]:
    """The sampling settings in a ``generation_config.json``, by their names in ``SamplingSettings``.

    If it turns sampling off, the temperature is 0. Settings that are not allowed are left out; with ``warn_about``, the
    path of the file, a warning says which.
    """
    found: dict[str, float] = {}
    for name, row in SAMPLING_OPTIONS.items():
        value = content.get(name)
        if value is None:
            continue
        try:
            row.check(value)
            found[name] = value  # type: ignore[assignment]
        except InvalidValue as error:
            if warn_about:
                log.warning("%s: %s is not used", warn_about, str(error).rstrip("."))
    if content.get("do_sample") is False:
        kept = {name: value for name, value in found.items() if name.endswith("_penalty")}
        return {"temperature": 0.0} | kept
    return found


def read_named_tokens(folder: Path, tokenizer: Tokenizer, model_type: str) -> dict[str, str]:
    """The tokenizer's special tokens by name, such as ``bos_token``, as transformers reads them.

    They are in ``tokenizer_config.json``, or in older folders in ``special_tokens_map.json``; where neither says
    anything about a name, its class decides, unless the vocabulary lacks that token. Raises ``CheckpointError``.
    """
    path, older = folder / TOKENIZER_CONFIG, folder / SPECIAL_TOKENS
    content = read_object(path, MAX_TOKENIZER_CONFIG_BYTES)
    kind = content.get("tokenizer_class") or CLASS_OF_FAMILY.get(model_type)
    if "added_tokens_decoder" not in content:
        content = content | read_object(older)
    defaults = CLASS_TOKENS.get(str(kind).removesuffix("Fast"), {})
    found = {name: text for name, text in defaults.items() if name not in content and has_token(tokenizer, text)}
    own = content.get("extra_special_tokens")
    named = {name: value for name, value in content.items() if name.endswith("_token")} | (
        own if isinstance(own, dict) else {}
    )
    with checkpoint_errors(path, "special tokens by name"):
        for name, value in named.items():
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                found[name] = text
            elif name in STANDARD_TOKENS and text is not None:
                raise InvalidValue(name, value, "null, a text, or an object with a 'content'")
    return found


def id_of(tokenizer: Tokenizer, text: str) -> int | None:
    """The id of the token that a vocabulary writes as ``text``, or None."""
    added = {token["content"]: token["id"] for token in tokenizer.spec.get("added_tokens") or []}
    token_id: int | None = added.get(text, tokenizer.spec["model"]["vocab"].get(text))
    return token_id


def has_token(tokenizer: Tokenizer, text: str) -> bool:
    return id_of(tokenizer, text) is not None


def read_end_ids(
    folder: Path, generation: Mapping[str, object], named: Mapping[str, str], tokenizer: Tokenizer, vocab_size: int
) -> list[int]:
    """The tokens at which the generation config and the tokenizer end a text. Raises ``CheckpointError``."""
    with checkpoint_errors(folder / GENERATION_CONFIG, "token ids"):
        ids = special_tokens("eos_token_id", generation.get("eos_token_id"), vocab_size)
    own = id_of(tokenizer, named.get("eos_token", ""))
    return [*ids, *special_tokens("eos_token", own, vocab_size)]


def read_chat_template(folder: Path) -> str:
    """The Jinja template that turns a conversation into a prompt, or "" if the folder has none.

    It is a separate file, or part of ``tokenizer_config.json``, which may contain several named templates. Raises
    ``CheckpointError``.
    """
    path = folder / CHAT_TEMPLATE
    if os.path.isfile(path):
        return read_text(path, "a chat template", MAX_TEMPLATE_BYTES)
    path = folder / TOKENIZER_CONFIG
    template = read_object(path, MAX_TOKENIZER_CONFIG_BYTES).get("chat_template")
    if isinstance(template, list):
        template = {str(each.get("name")): each.get("template") for each in template if isinstance(each, dict)}
    if isinstance(template, dict):
        template = template.get("default")
    if template is not None and (not isinstance(template, str) or len(template.encode()) > MAX_TEMPLATE_BYTES):
        raise CheckpointError(path, "a chat_template of another kind", f"text of at most {MAX_TEMPLATE_BYTES:,} bytes")
    return template or ""
