"""What a visitor asks of a rung: the sentence, and the settings of the rung's controls."""

from pydantic import BaseModel, Field

from model import InputError

from ..settings import MAX_BIGRAM_STEPS, MAX_LESSON_CHARACTERS, MAX_SENTENCE_CHARACTERS

SHOWN_WORDS = 10  # more would not fit into a picture whose numbers can be read


class Ask(BaseModel):
    """The settings of all rungs; each takes its own."""

    sentence: str = ""
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

    sentence: str = ""
    lesson: str = ""  # written by the model where it is empty
    model: str | None = None
    steps: int = Field(2_000, ge=1, le=MAX_BIGRAM_STEPS)
    learning_rate: float = Field(0.01, ge=0.001, le=0.01)
    seed: int = Field(1, ge=0, le=10**9)


def check_sentence(text: str) -> None:
    if not text.strip():
        raise InputError("sentence", "The sentence is empty. Type at least one word.")
    if len(text) > MAX_SENTENCE_CHARACTERS:
        message = f"The sentence has {len(text):,} characters, at most {MAX_SENTENCE_CHARACTERS:,} are taken."
        raise InputError("sentence", message)


def check_lesson(text: str) -> None:
    if len(text) > MAX_LESSON_CHARACTERS:
        message = f"The text to learn from has {len(text):,} characters, at most {MAX_LESSON_CHARACTERS:,} are taken."
        raise InputError("lesson", message)
