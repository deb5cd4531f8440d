"""The question of how one attention weight and its part of a logit are computed, number by number."""

from typing import Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model.errors import InvalidValue
from model.lens.ledger import ledger
from model.lens.progress import Progress

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .prediction import TOKEN
from .question import HEAD, HEAD_MASK, LAYER, MODEL, PROMPT, Field, NamedToken, Question, TextAnswer


class LedgerErrors(BaseModel):
    weights: float = Described(description="In the row of attention weights, compared with the model's own.")
    context: float = Described(description="In the context vector, compared with the model's own.")
    logit: float = Described(
        description="In the sum of the head's part and the rest, compared with the model's own logit."
    )


class LedgerStage(BaseModel):
    before: Literal["normalised", "rotated"]
    query: list[float]
    key: list[float]


class LedgerAnswer(TextAnswer):
    """Vectors have ``head_dim`` numbers; rows have one number for each key up to the query."""

    layer: int
    head: int
    position: tuple[int, int] = Described(description="The positions of the query and the key.")
    token: NamedToken
    stages: list[LedgerStage] = Described(
        description="The query and key before they are normalised or rotated; empty if they are used as projected."
    )
    frequencies: list[float] | None = Described(
        description="The angle in radians by which one position rotates numbers i and i + n of the query and the key."
    )
    query: list[float]
    key: list[float]
    products: list[float]
    score: float
    scale: float
    n_masked: int = Described(description="The number of later tokens, whose scores are minus infinity.")
    scaled: list[float] = Described(description="The row of scores, scaled.")
    largest: float
    exponentials: list[float]
    denominator: float
    weights: list[float]
    mask: float = Described(description="The head mask's factor; 1 without one.")
    value: list[float]
    weighted: list[float]
    context: list[float]
    reading: list[float] = Described(
        description="What a 1 in each component of the context vector would add to the logit."
    )
    terms: list[float]
    part: float = Described(description="What this key adds to the logit.")
    parts: list[float] = Described(description="What each key adds to the logit.")
    head_part: float
    rest: float = Described(description="What everything but this head adds to the logit.")
    logit: float
    probability: float
    errors: LedgerErrors


def check_ledger(inquiry: Inquiry, _limits: Limits) -> None:
    query, key = inquiry.values["query"], inquiry.values["key"]
    if query is not None and key is not None and key > query:
        raise InvalidValue("key", key, f"an integer from 0 to {query}, the position of the query")


def answer_ledger(inquiry: Inquiry, _progress: Progress) -> Answer:
    answer = ledger(inquiry.text, **inquiry.values).with_texts(inquiry.loaded.tokenizer)
    return answer.to_arrays() | {name: inquiry.values[name] for name in ("layer", "head")}


LEDGER = Question(
    "ledger",
    "Every number between one query, one key of a head and the logit of the next token.",
    [
        PROMPT,
        MODEL,
        LAYER,
        HEAD,
        Field(
            "query",
            "The position of the query, counted from 0; the last by default.",
            int,
            default=None,
            below="n_tokens",
        ),
        Field(
            "key",
            "The position of the key; by default the one with the largest attention weight.",
            int,
            default=None,
            below="n_tokens",
        ),
        TOKEN,
        HEAD_MASK,
    ],
    "The vectors, products, sums, the softmax and the parts of the logit, and how far they are from the model's own.",
    LedgerAnswer,
    answer_ledger,
    check_ledger,
)
