"""A vocabulary of single characters."""

from collections.abc import Mapping

from ..errors import Mismatch, UnknownCharacters
from .base import Spec, Tokenizer, check_distinct, check_id, check_post_processor, part_type


class CharTokenizer(Tokenizer):
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
        self.special_tokens = {}
        self.spec = character_spec(self.ids)

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


def check_fused(spec: Spec) -> None:
    """Raise ``Mismatch`` unless decoding joins the characters and puts nothing around or between them."""
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "Fuse":
        raise Mismatch(f"the decoder {part_type(spec.get('decoder'))!r}", "'Fuse'")
