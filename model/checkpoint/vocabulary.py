"""Reading a vocabulary: from ``tokenizer.json``, GPT-2's pair of files, or an alphabet."""

import itertools
import logging
import os
from pathlib import Path
from typing import Any

from ..config import MAX_VOCAB_SIZE
from ..errors import CheckpointError, shorten
from ..tokenizer import END_OF_TEXT, CharTokenizer, Tokenizer, from_spec
from ..tokenizer.base import Spec, check_distinct, check_id
from ..tokenizer.pipeline import QWEN2_PATTERN
from .conventions import CLASS_TOKENS, read_object
from .files import checkpoint_errors, read_json, read_text
from .folder_format import CONFIG, SPECIAL_TOKENS, TOKENIZER, TOKENIZER_CONFIG

log = logging.getLogger(__name__)

MAX_TOKENIZER_BYTES = 64_000_000
# In vocabulary and merges together. GPT-2's tokens take 30 bytes each, or 70 if the file is indented.
MAX_BYTES_PER_TOKEN = 256
BASE_BYTES = 1_000_000  # allowed for any vocabulary
# The names under which GPT-2's vocabulary and its merges are published: on the Hub, and by OpenAI.
FILE_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
# Special tokens that are ``END_OF_TEXT`` if the files of a pair do not name them.
DEFAULT_IS_END = {"bos_token", "eos_token", "unk_token"}
ADDED_TOKENS = "added_tokens.json"
ALPHABET = "a JSON list of characters, or the text that the model was trained on"
PICKLES = (".pkl", ".pickle")  # Python's own, never opened because that can run code
VOCABULARY = "a character or BPE vocabulary"


def has_tokenizer(folder: Path) -> bool:
    """Whether ``read_tokenizer`` finds a vocabulary in ``folder``."""
    return os.path.isfile(folder / TOKENIZER) or file_pair(folder) is not None


def read_tokenizer(path: Path, vocab_size: int = MAX_VOCAB_SIZE) -> Tokenizer:
    """The vocabulary in a ``tokenizer.json``, or in a folder that has one or, failing that, GPT-2's pair of files.

    Files much larger than ``vocab_size`` tokens need are not read. Raises ``CheckpointError``.
    """
    max_bytes = min(MAX_TOKENIZER_BYTES, BASE_BYTES + vocab_size * MAX_BYTES_PER_TOKEN)
    if os.path.isdir(path):
        pair = file_pair(path)
        path = path / TOKENIZER
        if pair and not os.path.isfile(path):
            path, content = pair[0], spec_of_pair(*pair, max_bytes)
            with checkpoint_errors(path, VOCABULARY):
                return from_spec(content)
    with checkpoint_errors(path, VOCABULARY):
        return from_spec(read_json(path, max_bytes))


def file_pair(folder: Path) -> tuple[Path, Path] | None:
    """GPT-2's vocabulary and its merges in ``folder``, if both exist."""
    pairs = ((folder / vocabulary, folder / merges) for vocabulary, merges in FILE_PAIRS)
    return next((pair for pair in pairs if all(map(os.path.isfile, pair))), None)


def spec_of_pair(vocabulary_file: Path, merges_file: Path, max_bytes: int) -> Spec:
    """The content of a ``tokenizer.json`` that equals the two files of GPT-2 or Qwen 2 and the tokens added to them.

    Raises ``CheckpointError``.
    """
    vocabulary = read_json(vocabulary_file, max_bytes)
    if not isinstance(vocabulary, dict):
        raise CheckpointError(vocabulary_file, "no map", "tokens and their ids")
    lines = read_text(merges_file, "one merge per line", max_bytes).splitlines()
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    folder = vocabulary_file.parent
    config = read_object(folder / TOKENIZER_CONFIG, max_bytes)
    added = added_tokens(folder, config, vocabulary, max_bytes)
    named = config | read_object(folder / SPECIAL_TOKENS, max_bytes)
    special = special_texts(named) | (set() if DEFAULT_IS_END <= named.keys() else {END_OF_TEXT})
    special = special & vocabulary.keys() - {token["content"] for token in added}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added += [{"id": vocabulary[text], "content": text, "special": True} for text in sorted(special)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    normalizer, pre_tokenizer = None, byte_level
    kind = config.get("tokenizer_class") or read_object(folder / CONFIG, max_bytes).get("model_type")
    is_qwen = str(kind).startswith(("Qwen2Tokenizer", "qwen"))
    if is_qwen:
        split = {"type": "Split", "pattern": {"Regex": QWEN2_PATTERN}, "behavior": "Isolated", "invert": False}
        normalizer = {"type": "NFC"}
        pre_tokenizer = {"type": "Sequence", "pretokenizers": [split, byte_level | {"use_regex": False}]}
    named = CLASS_TOKENS["Qwen2Tokenizer" if is_qwen else "GPT2Tokenizer"] | named
    if named.get("add_eos_token") and named.get("eos_token"):
        expected = "false, because a text is written after the last token of its prompt"
        raise CheckpointError(folder / TOKENIZER_CONFIG, "add_eos_token true", expected)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [flags | token for token in added],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": first_token(named, added),
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }


def first_token(named: Spec, added: list[Spec]) -> Spec | None:
    """The post-processor that puts the ``bos_token`` before a text if a ``tokenizer_config.json`` says so."""
    first = next(iter(special_texts({"bos_token": named.get("bos_token")})), None)
    ids = [token["id"] for token in added if token["content"] == first]
    if not named.get("add_bos_token") or not ids:
        return None
    text, token = {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": first, "type_id": 0}}
    other = {"Sequence": {"id": "B", "type_id": 1}}
    special = {first: {"id": first, "ids": ids, "tokens": [first]}}
    return {
        "type": "TemplateProcessing",
        "single": [token, text],
        "pair": [token, text, other],
        "special_tokens": special,
    }


def added_tokens(folder: Path, config: Spec, vocabulary: Spec, max_bytes: int) -> list[Spec]:
    """The tokens added to a ``vocabulary``, with the ids that transformers gives them. Raises ``CheckpointError``.

    They are in ``config``, the content of ``tokenizer_config.json``, or, in older folders, in ``added_tokens.json``.
    transformers takes the ids of the vocabulary for them, and otherwise the next ones after it, in the file's order.
    """
    path = folder / TOKENIZER_CONFIG
    stored: list[tuple[Any, Spec]] = []
    if "added_tokens_decoder" in config:
        with checkpoint_errors(path, "a map of ids to added tokens"):
            stored = [(int(token_id), dict(token)) for token_id, token in config["added_tokens_decoder"].items()]
    else:
        special = special_texts(config | read_object(folder / SPECIAL_TOKENS, max_bytes))
        path = folder / ADDED_TOKENS
        for text, token_id in read_object(path, max_bytes).items():
            is_special = text in special
            stored.append((token_id, {"content": text, "special": is_special, "normalized": not is_special}))
    with checkpoint_errors(path, "added tokens with ids"):
        for token_id, token in stored:
            check_id(token["content"], token_id)
        check_distinct({token["content"]: token_id for token_id, token in stored})
        stored.sort(key=lambda each: each[0])
        following = itertools.count(len(vocabulary))
        for token_id, token in stored:
            text = token["content"]
            token["id"] = vocabulary[text] if text in vocabulary else next(following)
            if token["id"] != token_id:
                log.warning("%s: %s has the id %s, as in transformers", path, shorten(text), shorten(token["id"]))
    return [token for _, token in stored]


def special_texts(content: Spec) -> set[str]:
    """The texts of the special tokens that a ``tokenizer_config.json`` or ``special_tokens_map.json`` names."""
    values = [value for name, value in content.items() if name.endswith(("_token", "special_tokens"))]
    tokens = [each for value in values for each in (value if isinstance(value, list) else [value])]
    texts = (token.get("content") if isinstance(token, dict) else token for token in tokens)
    return {text for text in texts if isinstance(text, str)}


def read_alphabet(path: Path) -> CharTokenizer:
    """One token per character: those of a JSON list, in its order, or the distinct ones of a text, sorted.

    Raises ``CheckpointError``. A pickle such as nanoGPT's ``meta.pkl`` is rejected because opening one can run code.
    """
    expected = ALPHABET
    if path.suffix in PICKLES:
        raise CheckpointError(path, "a pickle, which is never opened", expected)
    if path.suffix != ".json":
        text = read_text(path, expected)
        if not text:
            raise CheckpointError(path, "an empty file", expected)
        return CharTokenizer.train(text)
    characters = read_json(path, MAX_TOKENIZER_BYTES)
    if not isinstance(characters, list) or not characters or len(set(map(str, characters))) != len(characters):
        raise CheckpointError(path, "no list of distinct characters", expected)
    with checkpoint_errors(path, expected):
        return CharTokenizer({character: i for i, character in enumerate(characters)})
