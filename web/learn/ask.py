"""What a visitor asks of a rung, checked: the sentence as words and vectors, and the settings of the controls."""

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from model.ladder import JOURNEY
from model.ladder_shown import EmbeddedWords, embed_words
from model.ladder_text import split_words

from ..settings import MAX_BIGRAM_STEPS, MAX_LESSON_CHARACTERS, MAX_SENTENCE_CHARACTERS
from ..validate import BadInput

BOOK = " ".join(JOURNEY)
SHOWN_WORDS = 10  # more would not fit into a picture whose numbers can be read


class Ask(BaseModel):
    """The settings of all rungs; each takes its own."""

    sentence: str = BOOK
    lesson: str = ""  # the text that is learned from; the page's own where it is empty
    model: str | None = None
    merges: int = Field(60, ge=0, le=200)
    context_length: int = Field(4, ge=1, le=SHOWN_WORDS)
    stride: int = Field(1, ge=1, le=SHOWN_WORDS)
    lecture: bool = True
    factor: float = Field(1.0, ge=1, le=1000)
    linear: bool = False
    head_dim: int = Field(16, ge=1, le=1024)
    sharpness: float = Field(1.0, ge=1, le=16)
    dropout: float = Field(0.5, ge=0, le=0.9)
    seed: int = Field(1, ge=0, le=10**9)
    n_head: int = Field(8, ge=1, le=64)
    n_tokens: int = Field(64, ge=1, le=512)
    layer: int | None = Field(None, ge=0, le=10_000)
    head: int | None = Field(None, ge=0, le=10_000)
    query: int = Field(0, ge=0, le=10**6)
    key: int = Field(0, ge=0, le=10**6)


class BigramAsk(BaseModel):
    """What to train a bigram model on, and how long."""

    sentence: str = BOOK
    lesson: str = ""  # written by the model where it is empty
    model: str | None = None
    steps: int = Field(2_000, ge=1, le=MAX_BIGRAM_STEPS)
    learning_rate: Literal[0.001, 0.01] = 0.01
    seed: int = Field(1, ge=0, le=10**9)


@dataclass(frozen=True)
class Sentence:
    """The first words of a sentence with three numbers each: those of the book, or untrained embeddings."""

    words: list[str]
    n_words: int  # of the whole sentence
    x: Tensor  # (T, 3)
    is_book: bool
    embedded: EmbeddedWords

    @property
    def note(self) -> str:
        """What a visitor should know about what is shown; nothing where it is all there."""
        if self.n_words <= len(self.words):
            return ""
        return f"Your sentence has {self.n_words} words; the pictures show the first {len(self.words)}."


def read_sentence(text: str) -> Sentence:
    """Raises ``BadInput`` for a sentence without a word, or a very long one."""
    check_sentence(text)
    every = split_words(text)
    words = every[:SHOWN_WORDS]
    embedded = embed_words(words)
    is_book = every == list(JOURNEY)
    return Sentence(
        words, len(every), torch.tensor(list(JOURNEY.values())) if is_book else embedded.x, is_book, embedded
    )


def check_sentence(text: str) -> None:
    if not text.strip():
        raise BadInput("sentence", "The sentence is empty. Type at least one word.")
    if len(text) > MAX_SENTENCE_CHARACTERS:
        message = f"The sentence has {len(text):,} characters, at most {MAX_SENTENCE_CHARACTERS:,} are taken."
        raise BadInput("sentence", message)


def check_lesson(text: str) -> None:
    if len(text) > MAX_LESSON_CHARACTERS:
        message = f"The text to learn from has {len(text):,} characters, at most {MAX_LESSON_CHARACTERS:,} are taken."
        raise BadInput("lesson", message)
