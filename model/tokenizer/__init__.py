"""Text to token ids and back: single characters, GPT-2's byte-level BPE run by tiktoken, or other BPE.

All are stored as a ``tokenizer.json``, from which the ``tokenizers`` library produces the same ids. Tokenizing never
downloads anything.
"""

from ..errors import Mismatch
from .base import END_OF_TEXT, Token, Tokenizer, check_longest, part_type, text_tokens, token_text
from .byte_pair import GPT2_PATTERN, BPETokenizer
from .character import CharTokenizer, check_fused
from .pipeline import PipelineTokenizer, is_plain
from .streaming import TextStream

__all__ = [
    "END_OF_TEXT",
    "GPT2_PATTERN",
    "BPETokenizer",
    "CharTokenizer",
    "PipelineTokenizer",
    "TextStream",
    "Token",
    "Tokenizer",
    "from_spec",
    "text_tokens",
    "token_text",
]


def from_spec(spec: object) -> CharTokenizer | BPETokenizer | PipelineTokenizer:
    """The tokenizer that a ``tokenizer.json`` describes. Raises ``Mismatch`` naming any unsupported part."""
    tokenizer = described(spec)
    check_longest(tokenizer)
    return tokenizer


def described(spec: object) -> CharTokenizer | BPETokenizer | PipelineTokenizer:
    if not isinstance(spec, dict) or not isinstance(spec.get("model"), dict):
        raise Mismatch("no tokenizer", "an object with a 'model'")
    model = spec["model"]
    if model.get("type", "BPE") not in ("BPE", "WordLevel"):
        raise Mismatch(f"a model of type {model.get('type')!r}", "'BPE', or 'WordLevel' with characters for words")
    if not isinstance(model.get("vocab"), dict) or not model["vocab"]:
        raise Mismatch("no vocabulary", "a model.vocab that maps tokens to ids")
    if model.get("type") == "WordLevel":
        if spec.get("normalizer") is not None:
            raise Mismatch(f"a normalizer of type {part_type(spec['normalizer'])!r}", "none")
        return CharTokenizer.from_word_level(spec)
    if model.get("dropout"):
        raise Mismatch(f"merge dropout {model['dropout']!r}", "none")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            raise Mismatch(f"{name} {model[name]!r}", "none")
    is_unsplit = spec.get("normalizer") is None and spec.get("pre_tokenizer") is None
    if is_unsplit and not model.get("merges") and not spec.get("added_tokens"):
        check_fused(spec)
        return CharTokenizer(model["vocab"])
    return BPETokenizer(spec) if is_plain(spec) else PipelineTokenizer(spec)
