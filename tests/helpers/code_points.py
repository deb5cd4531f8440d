"""Whether ``tokenizers`` and ``model.tokenizer`` put a character into the same class."""

import json
from collections.abc import Iterable

from tokenizers import Tokenizer as Library

from model.tokenizer import from_spec
from model.tokenizer.byte_pair import byte_to_character

from .models import tiny_bpe


def check_code_points(points: Iterable[int]) -> None:
    """Letter, number, space or other: merges that join each byte to what follows it show where the text was cut."""
    stand_in = byte_to_character()
    vocabulary = {character: byte for byte, character in stand_in.items()}
    merges = []
    for byte in range(256):
        for follower in "a1! ":
            merges.append([stand_in[byte], stand_in[ord(follower)]])
            vocabulary["".join(merges[-1])] = len(vocabulary)
    spec = tiny_bpe(257).spec | {"added_tokens": []}
    ours = from_spec(spec | {"model": spec["model"] | {"vocab": vocabulary, "merges": merges}})
    theirs = Library.from_str(json.dumps(ours.spec))
    characters = [point for point in points if not 0xD800 <= point <= 0xDFFF]
    for start in range(0, len(characters), 256):
        text = "|".join(f"{c}a{c}1{c}!{c} a" for c in map(chr, characters[start : start + 256]))
        assert ours.encode(text) == theirs.encode(text).ids, f"from U+{characters[start]:04X}"
