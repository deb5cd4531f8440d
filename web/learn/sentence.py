"""The visitor's sentence as words and vectors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.ladder import JOURNEY
from model.ladder.terms import EmbeddedWords, embed_words
from model.ladder.text import split_words

from .ask import SHOWN_WORDS, check_sentence


@dataclass(frozen=True)
class Sentence:
    """The first words of a sentence with three numbers each: untrained embeddings, or those of the book."""

    words: list[str]
    all_words: list[str]
    x: Tensor  # (T, 3)
    is_book: bool
    embedded: EmbeddedWords  # of all words

    @property
    def is_cut(self) -> bool:
        return len(self.all_words) > len(self.words)

    @property
    def counted(self) -> str:
        """How many words there are, and how many of them are punctuation marks."""
        marks = sum(not any(character.isalnum() for character in word) for word in self.all_words)
        if not marks:
            return f"{len(self.all_words)} words"
        return f"{len(self.all_words)} tokens: {len(self.all_words) - marks} words and {marks} punctuation marks"

    @property
    def note(self) -> str:
        """What to tell the visitor if not all words are shown; otherwise empty."""
        if not self.is_cut:
            return ""
        last = self.words[-1]
        return f"Your sentence has {self.counted}; the pictures show the first {len(self.words)}, up to “{last}”."


def read_sentence(text: str) -> Sentence:
    """Split ``text`` into words and embed them. Raises ``InputError`` for a sentence that is empty or too long."""
    check_sentence(text)
    all_words = split_words(text)
    words = all_words[:SHOWN_WORDS]
    embedded = embed_words(all_words)
    is_book = all_words == list(JOURNEY)
    x = torch.tensor(list(JOURNEY.values())) if is_book else embedded.x[: len(words)]
    return Sentence(words, all_words, x, is_book, embedded)
