"""Reading a vocabulary: from ``tokenizer.json``, GPT-2's pair of files, or an alphabet."""

import os
from pathlib import Path

from ..config import MAX_VOCAB_SIZE
from ..errors import CheckpointError
from ..tokenizer import CharTokenizer, Tokenizer, from_spec
from ..tokenizer.base import Spec
from ..tokenizer.byte_pair import byte_to_character
from .files import checkpoint_errors, read_json, read_text
from .folder_format import TOKENIZER

MAX_TOKENIZER_BYTES = 64_000_000
# In vocabulary and merges together. GPT-2's tokens take 30 bytes each, or 70 if the file is indented.
MAX_BYTES_PER_TOKEN = 256
BASE_BYTES = 1_000_000  # allowed for any vocabulary
# The names under which GPT-2's vocabulary and its merges are published: on the Hub, and by OpenAI.
FILE_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
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
    """The content of a ``tokenizer.json`` that equals GPT-2's two files. Raises ``CheckpointError``."""
    vocabulary = read_json(vocabulary_file, max_bytes)
    if not isinstance(vocabulary, dict):
        raise CheckpointError(vocabulary_file, "no map", "tokens and their ids")
    lines = read_text(merges_file, "one merge per line", max_bytes).splitlines()
    merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
    made = {"".join(merge) for merge in merges} | set(byte_to_character().values())
    special = [(token, token_id) for token, token_id in vocabulary.items() if token not in made]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": token, **flags, "special": True} for token, i in special],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }


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
