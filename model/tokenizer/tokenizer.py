"""What every tokenizer offers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Literal

from .spec import Spec

END_OF_TEXT = "<|endoftext|>"


class Tokenizer(ABC):
    """Text to token ids and back, by way of bytes."""

    kind: Literal["char", "bpe"]
    spec: Spec  # the content of tokenizer.json
    special_tokens: dict[str, int]

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """One more than the largest token id."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``. A character vocabulary may raise ``UnknownCharacters``."""

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one token, possibly part of a character; empty for an id without a token."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; bytes that are not valid UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")


def token_text(tokenizer: Tokenizer, token_id: int) -> str:
    """The display text of a token: its text, or its bytes as ``<0xE2>`` if they are not whole characters."""
    raw = tokenizer.token_bytes(token_id)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in raw)
