"""A browser's request for a rung: a sentence, the numbers of its words, and limits that several rungs share."""

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, FailFast, Field
from typing_extensions import TypeAliasType

from model import InputError

from ..body_types import Unicode
from ..serving.inputs import check_length

MAX_SENTENCE_CHARACTERS = 4_000
MAX_TRAINING_TEXT_CHARACTERS = 40_000  # of a text from which a word list, merges or a bigram model is made
MAX_BIGRAM_STEPS = 10_000
SHOWN_WORDS = 10  # with more, the numbers in a picture would be too small to read
MAX_VALUE = 10  # largest absolute value of a number that the visitor may change

# The text that a tokenizer or a bigram model learns from; older clients call it "lesson".
TrainingText = Annotated[Unicode, Field(validation_alias=AliasChoices("training_text", "lesson"))]
Value = Annotated[float, Field(ge=-MAX_VALUE, le=MAX_VALUE, allow_inf_nan=False)]
Row = Annotated[list[Value], FailFast(), Field(max_length=16)]
Matrix = TypeAliasType("Matrix", Annotated[list[Row], FailFast(), Field(max_length=16)])
LayerAndHead = tuple[Annotated[int, Field(ge=0, le=10_000)], Annotated[int, Field(ge=0, le=10_000)]]


class StrictRequest(BaseModel):
    """A request with no fields but its own."""

    model_config = ConfigDict(extra="forbid")


class LessonRequest(StrictRequest):
    """What the page sends to every rung with a sentence. Each rung adds the settings of its controls."""

    sentence: Unicode = ""
    model: Unicode | None = None
    vectors: Literal["auto", "book", "trained", "random"] = "auto"
    x: Matrix | None = None  # numbers of the words that the visitor has changed


class TwoHeadsRequest(LessonRequest):
    """A request for a rung that compares two heads of a model."""

    pair: tuple[LayerAndHead, LayerAndHead] | None = None


class BigramRequest(StrictRequest):
    """A request to train a bigram model."""

    sentence: Unicode = ""
    training_text: TrainingText = ""  # if empty, a model writes it
    model: Unicode | None = None
    steps: int = Field(2_000, ge=1, le=MAX_BIGRAM_STEPS)
    learning_rate: float = Field(0.01, ge=0.001, le=0.01)
    seed: int = Field(1337, ge=0, le=10**9)


def check_sentence(text: str) -> None:
    """Raise ``InputError`` if the sentence is empty or too long."""
    if not text.strip():
        raise InputError("sentence", "The sentence is empty. Type at least one word.")
    check_length("sentence", "sentence", text, MAX_SENTENCE_CHARACTERS)


def check_training_text(text: str) -> None:
    """Raise ``InputError`` if the text to learn from is too long."""
    check_length("training_text", "text to learn from", text, MAX_TRAINING_TEXT_CHARACTERS)
