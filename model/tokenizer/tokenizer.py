"""Text to token ids and back: single characters, or byte-level BPE run by tiktoken.

Both live in a ``tokenizer.json`` that the ``tokenizers`` library reads with the same result. Nothing is downloaded.
"""

import codecs
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ..errors import Mismatch, UnknownCharacters
from .spec import check_byte_level, check_distinct, check_fused, check_id, merge_ranks, part_type, tokenizer_spec

END_OF_TEXT = "<|endoftext|>"

# GPT-2's pre-tokenizer (Radford et al. 2019): a text is cut into these pieces before any merge.
GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


class Tokenizer(Protocol):
    """What the rest of the house asks of a vocabulary."""

    kind: str  # "char" or "bpe"
    spec: dict[str, Any]  # the content of tokenizer.json
    special_tokens: dict[str, int]

    @property
    def vocab_size(self) -> int:
        """One more than the largest token id."""

    def encode(self, text: str) -> list[int]:
        """Token ids of ``text``. A character vocabulary raises ``UnknownCharacters``."""

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one token, perhaps half a character; empty for an id without a token."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; bytes that are no UTF-8 become U+FFFD."""


class ByteDecoder:
    """Shared by both vocabularies: ids to text by way of bytes."""

    def token_bytes(self, token_id: int) -> bytes:
        raise NotImplementedError

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")


class CharTokenizer(ByteDecoder):
    """One token per character. In ``tokenizer.json`` it is a BPE model without merges."""

    kind = "char"

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        """``vocabulary`` maps single characters to ids; raises ``Mismatch`` for anything else."""
        for token, token_id in vocabulary.items():
            if len(token) != 1:
                raise Mismatch(f"the token {token!r}", "single characters")
            if "\ud800" <= token <= "\udfff":
                raise Mismatch(f"the surrogate {token!r}", "whole characters")
            check_id(token, token_id)
        check_distinct(vocabulary)
        self.ids = dict(vocabulary)
        self.characters = {token_id: token for token, token_id in vocabulary.items()}
        self.special_tokens: dict[str, int] = {}
        model: dict[str, Any] = {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "fuse_unk": False,
            "vocab": self.ids,
            "merges": [],
        }
        self.spec = tokenizer_spec(model, decoder={"type": "Fuse"})

    @classmethod
    def train(cls, text: str) -> "CharTokenizer":
        """The alphabet of ``text``, in code point order."""
        return cls({character: i for i, character in enumerate(sorted(set(text)))})

    @property
    def vocab_size(self) -> int:
        return max(self.characters) + 1

    def encode(self, text: str) -> list[int]:
        try:
            return [self.ids[character] for character in text]
        except KeyError:
            unknown = dict.fromkeys(character for character in text if character not in self.ids)
            raise UnknownCharacters(list(unknown), list(self.ids)) from None

    def token_bytes(self, token_id: int) -> bytes:
        return self.characters.get(token_id, "").encode()


class BPETokenizer(ByteDecoder):
    """Byte-level byte-pair encoding as GPT-2 has it, run by tiktoken.

    tiktoken takes a token's id for its merge rank, so a vocabulary must hold all 256 bytes and its ids must follow the
    order of its merges. Raises ``Mismatch`` where it does not.
    """

    kind = "bpe"

    def __init__(self, spec: dict[str, Any]) -> None:
        """``spec`` is the content of a ``tokenizer.json`` with a byte-level BPE model."""
        import tiktoken

        check_byte_level(spec)
        self.spec = spec
        vocabulary: dict[str, int] = spec["model"]["vocab"]
        self.special_tokens = {token["content"]: token["id"] for token in spec.get("added_tokens") or []}
        for content, token_id in (vocabulary | self.special_tokens).items():
            check_id(content, token_id)
        check_distinct(vocabulary | self.special_tokens)
        ranks = merge_ranks(vocabulary, spec["model"].get("merges") or [], self.special_tokens)
        self.encoding = tiktoken.Encoding(
            "headscope", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=self.special_tokens
        )
        self.bytes_of = {token_id: token for token, token_id in ranks.items()}
        self.bytes_of |= {token_id: token.encode() for token, token_id in self.special_tokens.items()}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "BPETokenizer":
        """Learn ``vocab_size`` tokens from ``texts``: ``<|endoftext|>``, the 256 bytes, and merges."""
        import json

        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        if vocab_size < 257:
            raise ValueError(f"a byte-level vocabulary needs at least 257 tokens, found vocab_size={vocab_size}")
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=[END_OF_TEXT],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),  # tiktoken panics on a byte that is missing
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(json.loads(tokenizer.to_str()))

    @property
    def vocab_size(self) -> int:
        return max(self.bytes_of) + 1

    def encode(self, text: str) -> list[int]:
        return self.encoding.encode(text, allowed_special="all")

    def token_bytes(self, token_id: int) -> bytes:
        return self.bytes_of.get(token_id, b"")


class TextStream:
    """Turns tokens into text as they come, without ever giving out half a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The characters that this token completes."""
        return self.decoder.decode(self.tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """What is left at the end: U+FFFD for an unfinished character."""
        return self.decoder.decode(b"", final=True)


def token_text(tokenizer: Tokenizer, token_id: int) -> str:
    """One token for showing: its text, or its bytes as ``<0xE2>`` where they are no whole character."""
    raw = tokenizer.token_bytes(token_id)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in raw)


def from_spec(spec: Any) -> CharTokenizer | BPETokenizer:
    """The tokenizer that a ``tokenizer.json`` describes. Raises ``Mismatch`` that names what it cannot honour."""
    if not isinstance(spec, dict) or not isinstance(spec.get("model"), dict):
        raise Mismatch("no tokenizer", "an object with a 'model'")
    model = spec["model"]
    if model.get("type", "BPE") != "BPE":
        raise Mismatch(f"a model of type {model.get('type')!r}", "'BPE'")
    if not isinstance(model.get("vocab"), dict) or not model["vocab"]:
        raise Mismatch("no vocabulary", "a model.vocab that maps tokens to ids")
    if spec.get("normalizer") is not None:
        raise Mismatch(f"a normalizer of type {part_type(spec['normalizer'])!r}", "none")
    if model.get("dropout"):
        raise Mismatch(f"merge dropout {model['dropout']!r}", "none")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise Mismatch(f"{name} {model[name]!r}", "none")
    if spec.get("pre_tokenizer") is None and not model.get("merges") and not spec.get("added_tokens"):
        check_fused(spec)
        return CharTokenizer(model["vocab"])
    return BPETokenizer(spec)
