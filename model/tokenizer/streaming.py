"""Text from tokens that arrive one at a time."""

import codecs

from .tokenizer import Tokenizer


class TextStream:
    """Decodes tokens as they arrive and never emits part of a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The characters that this token completes."""
        return self.decoder.decode(self.tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """What remains at the end: U+FFFD for an unfinished character."""
        return self.decoder.decode(b"", final=True)
