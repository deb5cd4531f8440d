"""Text to token ids and back: single characters, or byte-level BPE run by tiktoken.

Both kinds are stored as a ``tokenizer.json``, which the ``tokenizers`` library reads with the same result. Nothing is
ever downloaded to tokenize.
"""

from .byte_pair import GPT2_PATTERN, BPETokenizer
from .character import CharTokenizer
from .read import from_spec
from .streaming import TextStream
from .tokenizer import END_OF_TEXT, Tokenizer, token_text

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
