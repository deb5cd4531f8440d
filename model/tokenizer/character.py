"""A vocabulary of single characters."""

import re
from collections.abc import Mapping

from ..errors import MAX_FOUND, Mismatch, UnknownCharacters, shorten
from .base import Spec, Tokenizer, added_tokens, check_distinct, check_id, check_post_processor, part_type

# As Oniguruma writes it, where ``m`` is "dot matches line breaks".
ANY_CHARACTER = ("(?m).", "(?m:.)", r"[\s\S]", r"[\S\s]")


class CharTokenizer(Tokenizer):
    """One token per character. In ``tokenizer.json`` it is a BPE model without merges, or one of type WordLevel."""

    kind = "char"

    def __init__(self, vocabulary: Mapping[str, int], special: Mapping[str, int] | None = None) -> None:
        """``vocabulary`` maps single characters to ids, and ``special`` maps strings; raises ``Mismatch`` otherwise."""
        for token, token_id in vocabulary.items():
            if len(token) != 1:
                raise Mismatch(f"the token {token!r}", "single characters")
            if "\ud800" <= token <= "\udfff":
                raise Mismatch(f"the surrogate {token!r}", "whole characters")
            check_id(token, token_id)
        self.ids, self.special_tokens = dict(vocabulary), dict(special or {})
        for token, token_id in self.special_tokens.items():
            check_id(token, token_id)
        check_distinct(self.ids | self.special_tokens)
        self.texts = {token_id: token for token, token_id in (self.ids | self.special_tokens).items()}
        self.spec = character_spec(self.ids)

    @classmethod
    def train(cls, text: str) -> "CharTokenizer":
        """The alphabet of ``text``, in code point order."""
        return cls({character: i for i, character in enumerate(sorted(set(text)))})

    @property
    def vocab_size(self) -> int:
        return max(self.texts) + 1

    @classmethod
    def from_word_level(cls, spec: Spec) -> "CharTokenizer":
        """The tokenizer of a WordLevel model whose words are characters. Raises ``Mismatch`` for other words."""
        check_split_into_characters(spec.get("pre_tokenizer"))
        if spec.get("decoder") is not None:
            check_fused(spec)
        check_post_processor(spec)
        vocabulary, unknown = spec["model"]["vocab"], spec["model"].get("unk_token")
        added = {token["content"]: token["id"] for token in added_tokens(spec)}
        known = {token: token_id for token, token_id in vocabulary.items() if token not in added and token != unknown}
        tokenizer = cls(known, added)
        if isinstance(unknown, str) and unknown not in added and unknown in vocabulary:
            check_id(unknown, vocabulary[unknown])
            check_distinct(tokenizer.ids | added | {unknown: vocabulary[unknown]})
            tokenizer.texts[vocabulary[unknown]] = unknown  # it can be decoded, but no text encodes to it
        tokenizer.spec = spec
        return tokenizer

    def encode(self, text: str) -> list[int]:
        if self.special_tokens:
            longest_first = sorted(self.special_tokens, key=len, reverse=True)
            parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", text)
            return self.checked([each for i, part in enumerate(parts) for each in self.ids_of(part, i % 2 == 1)])
        return self.checked(self.ids_of(text))

    def ids_of(self, text: str, is_special: bool = False) -> list[int]:
        """The ids of a special token, or of characters. Raises ``UnknownCharacters``."""
        if is_special:
            return [self.special_tokens[text]]
        try:
            return [self.ids[character] for character in text]
        except KeyError:
            unknown = dict.fromkeys(character for character in text if character not in self.ids)
            raise UnknownCharacters(list(unknown), list(self.ids)) from None

    def token_bytes(self, token_id: int) -> bytes:
        return self.texts.get(token_id, "").encode()


def character_spec(vocabulary: Mapping[str, int]) -> Spec:
    """The content of a ``tokenizer.json`` that splits a text into the characters of ``vocabulary``."""
    unused = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor")
    model: Spec = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "fuse_unk": False,
        "vocab": vocabulary,
        "merges": [],
    }
    return {
        "version": "1.0",
        "added_tokens": [],
        "decoder": {"type": "Fuse"},
        "model": model,
        **dict.fromkeys(unused),
    }


def check_split_into_characters(part: object) -> None:
    """Raise ``Mismatch`` unless a pre-tokenizer splits any text into single characters."""
    pattern = part.get("pattern") if isinstance(part, dict) and part.get("type") == "Split" else None
    if isinstance(part, dict) and isinstance(pattern, dict) and not part.get("invert"):
        behavior = part.get("behavior")
        if pattern in ({"String": ""}, {"Regex": ""}):
            return
        if pattern.get("Regex") in ANY_CHARACTER and behavior in ("Isolated", "MergedWithPrevious"):
            return
        if (
            pattern == {"Regex": "."} and behavior == "Isolated"
        ):  # this keeps runs of line breaks together, which no WordLevel vocabulary contains
            return
    raise Mismatch(f"the pre-tokenizer {shorten(part, MAX_FOUND)}", "a Split into single characters")


def check_fused(spec: Spec) -> None:
    """Raise ``Mismatch`` unless decoding joins the characters and adds nothing around or between them."""
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "Fuse":
        raise Mismatch(f"the decoder {part_type(spec.get('decoder'))!r}", "'Fuse'")
