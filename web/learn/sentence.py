"""The visitor's sentence as words and vectors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.ladder import JOURNEY
from model.ladder.taken_apart import EmbeddedWords, embed_words
from model.ladder.text import split_words

from .ask import SHOWN_WORDS, check_sentence


@dataclass(frozen=True)
class Sentence:
    """The first words of a sentence with three numbers each: those of the book, or untrained embeddings."""

    words: list[str]
    every: list[str]  # all words of the sentence
    x: Tensor  # (T, 3)
    is_book: bool
    embedded: EmbeddedWords  # of all words

    @property
    def is_cut(self) -> bool:
        return len(self.every) > len(self.words)

    @property
    def note(self) -> str:
        """What a visitor should know about what is shown; nothing where it is all there."""
        if not self.is_cut:
            return ""
        last = self.words[-1]
        return (
            f"Your sentence has {len(self.every)} words; the pictures show the first {len(self.words)}, up to “{last}”."
        )


def read_sentence(text: str) -> Sentence:
    """Raises ``InputError`` for a sentence without a word, or a very long one."""
    check_sentence(text)
    every = split_words(text)
    words = every[:SHOWN_WORDS]
    embedded = embed_words(every)
    is_book = every == list(JOURNEY)
    x = torch.tensor(list(JOURNEY.values())) if is_book else embedded.x[: len(words)]
    return Sentence(words, every, x, is_book, embedded)
