"""Streaming: text from tokens that arrive one at a time, and tokens from a text that arrives in pieces."""

import codecs
import unicodedata
from itertools import pairwise

from .base import Tokenizer

MAX_HELD = 256  # maximum number of characters held back until their word ends


class TextStream:
    """Decodes tokens as they arrive and never emits part of a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The characters that this token completes."""
        return self.decoder.decode(self.tokenizer.token_bytes(token_id))

    def flush(self) -> str:
        """The remaining text at the end: U+FFFD for an unfinished character."""
        return self.decoder.decode(b"", final=True)


class StringSearch:
    """Searches a text that arrives in pieces for ``string``, in linear time (Knuth, Morris & Pratt 1977)."""

    def __init__(self, string: str) -> None:
        """``string`` is not empty."""
        self.string = string
        self.n_matched = 0  # characters at the end of the text that begin ``string``, as many as possible
        # For each beginning of ``string`` matched so far, how much of it is still matched if the next character fails.
        self.fallbacks = [0]

    def push(self, text: str) -> int | None:
        """Where in ``text`` the string begins, negative in an earlier piece; None until it is complete."""
        string, n, i = self.string, self.n_matched, 0
        while i < len(text):
            if n == 0:
                i = text.find(string[0], i)
                if i < 0:
                    break
            elif text[i] != string[n]:
                n = self.fallbacks[n - 1]
                continue
            i, n = i + 1, n + 1
            if n == len(string):
                self.n_matched = n
                return i - n
            if n > len(self.fallbacks):
                self.fallbacks.append(self.next_fallback())
        self.n_matched = n
        return None

    def next_fallback(self) -> int:
        """The fallback of the shortest beginning that has none yet."""
        character, k = self.string[len(self.fallbacks)], self.fallbacks[-1]
        while k and self.string[k] != character:
            k = self.fallbacks[k - 1]
        return k + (self.string[k] == character)


class TokenStream:
    """Encodes a text as it arrives. The ids of all calls together equal those of the whole text.

    Each piece of the pre-tokenizer, mostly a word, is held back until the next one begins, because its tokens may
    change until then. Only a piece of more than ``MAX_HELD`` characters is split at an arbitrary place. A text that the
    tokenizer does not split into pieces is held back until it ends.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.held = ""

    def push(self, text: str) -> list[int]:
        """The ids that later text cannot change. A character vocabulary may raise ``UnknownCharacters``."""
        self.held += text
        ends = [len(self.held) - self.begun()] if self.tokenizer.kind == "char" else self.settled_pieces()
        # One character at a time: a run of spaces before a word is split, but without the word it would be one piece.
        ids = [token for start, end in pairwise([0, *ends]) for token in self.tokenizer.encode(self.held[start:end])]
        self.held = self.held[ends[-1] :]
        return ids

    def flush(self) -> list[int]:
        """The ids of the remaining text at the end."""
        rest, self.held = self.held, ""
        return self.tokenizer.encode(rest)

    def begun(self, start: int = 0) -> int:
        """How many characters at the end of the held text, from ``start`` on, could begin a special token."""
        return max((overlap(self.held[start:], token) for token in self.tokenizer.special_tokens), default=0)

    def settled_pieces(self) -> list[int]:
        """The ends of the pieces of the held text that later text cannot change."""
        import regex

        pattern, form = self.tokenizer.pattern, self.tokenizer.normalization
        if not pattern or (form and not unicodedata.is_normalized(form, self.held)):
            return [0]
        special = self.tokenizer.special_tokens
        start = max((self.held.rfind(token) + len(token) for token in special if token in self.held), default=0)
        # Later text may complete a special token, before which the text is split as if it ended there.
        end = len(self.held) - self.begun(start)
        pieces = [match.end() for match in regex.finditer(pattern, self.held, pos=start, endpos=end)]
        ends = [start, *pieces[:-1]]
        if len(ends) > 1 and self.held[ends[-2] : ends[-1]] == "'":  # may still become the 'll of "we'll"
            ends.pop()
        return [*ends, end] if end - ends[-1] > MAX_HELD else ends


def overlap(text: str, string: str) -> int:
    """The length of the longest suffix of ``text`` that is a proper prefix of ``string``."""
    return next((n for n in range(min(len(text), len(string) - 1), 0, -1) if text.endswith(string[:n])), 0)
