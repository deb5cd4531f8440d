"""A browser's request for a rung: a sentence, and the settings of the rung's controls."""

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, FailFast, Field
from typing_extensions import TypeAliasType

from model import InputError

from ..serving.body_types import Unicode
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
Place = tuple[Annotated[int, Field(ge=0, le=10_000)], Annotated[int, Field(ge=0, le=10_000)]]
Projection = Literal["query", "key", "value"]


class LessonRequest(BaseModel):
    """The settings of all rungs; each rung uses its own."""

    sentence: Unicode = ""
    training_text: TrainingText = ""  # if empty, the page's own
    model: Unicode | None = None
    vectors: Literal["auto", "book", "trained", "random"] = "auto"
    x: Matrix | None = None  # numbers of the words that the visitor has changed
    merges: int = Field(60, ge=0, le=200)
    context_length: int = Field(4, ge=1, le=SHOWN_WORDS)
    stride: int = Field(1, ge=1, le=SHOWN_WORDS)
    batch_size: int = Field(2, ge=1, le=8)
    shuffle: bool = False
    drop_last: bool = True
    lecture: bool = True
    toy: Literal["ones", "tril", "normalised"] = "normalised"
    factor: float = Field(1.0, ge=-1000, le=1000)
    kind: Literal["parameters", "linear", "reader", "reader_linear"] = "parameters"
    matrices: dict[Projection, Matrix] | None = None  # replacements for W query, W key and W value
    transfer: dict[Projection, Literal["own", "reshaped", "transposed"]] = Field(default_factory=dict)
    head_dim: int = Field(16, ge=1, le=1024)
    sharpness: float = Field(1.0, ge=1, le=16)
    dropout: float = Field(0.5, ge=0, le=0.9)
    dropped: Literal["weights", "ones"] = "weights"
    seed: int = Field(1, ge=0, le=10**9)
    d_out: Literal[2, 4, 16] = 2
    pair: tuple[Place, Place] | None = None  # layer and head of each of two heads
    n_head: int = Field(8, ge=1, le=64)
    n_tokens: int = Field(64, ge=1, le=512)
    scale: float = Field(1.0, ge=0.1, le=100)  # of the numbers that go into a block
    layer: int | None = Field(None, ge=0, le=10_000)
    head: int | None = Field(None, ge=0, le=10_000)
    query: int | None = Field(None, ge=0, le=10**6)
    key: int = Field(0, ge=0, le=10**6)
    stage: Unicode = Field("", max_length=20)
    index: int = Field(0, ge=0, le=10**7)


class BigramRequest(BaseModel):
    """A request to train a bigram model."""

    sentence: Unicode = ""
    training_text: TrainingText = ""  # if empty, a model writes it
    model: Unicode | None = None
    steps: int = Field(2_000, ge=1, le=MAX_BIGRAM_STEPS)
    learning_rate: float = Field(0.01, ge=0.001, le=0.01)
    seed: int = Field(1, ge=0, le=10**9)


def check_sentence(text: str) -> None:
    """Raise ``InputError`` if the sentence is empty or too long."""
    if not text.strip():
        raise InputError("sentence", "The sentence is empty. Type at least one word.")
    check_length("sentence", "sentence", text, MAX_SENTENCE_CHARACTERS)


def check_training_text(text: str) -> None:
    """Raise ``InputError`` if the text to learn from is too long."""
    check_length("training_text", "text to learn from", text, MAX_TRAINING_TEXT_CHARACTERS)
