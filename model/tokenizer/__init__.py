"""Text to token ids and back: single characters, or byte-level BPE run by tiktoken."""

from .tokenizer import (
    END_OF_TEXT,
    GPT2_PATTERN,
    BPETokenizer,
    CharTokenizer,
    TextStream,
    Tokenizer,
    from_spec,
    token_text,
)

__all__ = [
    "END_OF_TEXT",
    "GPT2_PATTERN",
    "BPETokenizer",
    "CharTokenizer",
    "TextStream",
    "Tokenizer",
    "from_spec",
    "token_text",
]
