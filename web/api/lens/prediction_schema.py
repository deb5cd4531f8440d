"""Bodies and answers of the questions about one predicted token: attribution, one head, logit lens, ledger."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from ...serving.inputs import whole
from ..schema import Count, Indexed
from .schema import AnswerToken, TextAnswer, TextBody

MAX_TOP = 20


class PredictionBody(TextBody):
    """A question about one next token."""

    position: Count = Field(None, description="The token that it follows, counted from 0; the last by default.")
    token: Count = Field(None, description="The id of the next token; the most probable one by default.")


class AttributionBody(PredictionBody):
    against: Annotated[int | Literal["likeliest"] | None, BeforeValidator(whole)] = Field(
        None,
        description="Another token's id, or `likeliest`, the most probable other one: take the difference of the two "
        "logits apart instead of one logit.",
    )


class HeadBody(PredictionBody):
    layer: Indexed = Field(description="Counted from 0.")
    head: Indexed = Field(description="Counted from 0.")


class LogitLensBody(TextBody):
    top: Count = Field(5, ge=1, le=MAX_TOP, description="How many of the most probable tokens to name.")


class LedgerBody(TextBody):
    layer: Indexed = Field(description="Counted from 0.")
    head: Indexed = Field(description="Counted from 0.")
    query: Count = Field(None, description="The token that looks, counted from 0; the last by default.")
    key: Count = Field(None, description="The token it looks at; by default the one with the largest attention weight.")
    token: Count = Field(None, description="The id of the token after the query; the most probable one by default.")


class PredictionAnswer(TextAnswer):
    position: int
    token: AnswerToken = Field(description="The next token that the numbers are about.")
    logit: float = Field(description="The model's own.")
    probability: float = Field(description="The model's own.")


class ProbableToken(AnswerToken):
    probability: float


class AttributionAnswer(PredictionAnswer):
    against: AnswerToken | None
    alternatives: list[ProbableToken] = Field(description="The most probable next tokens there.")
    heads: list[list[float]] = Field(description="`[layer][head]`, with the value biases.")
    mlps: list[float] = Field(description="`[layer]`, with the output biases.")
    embedding: float = Field(description="Of the token and its position.")
    biases: float = Field(description="Of attention's output projections and the final layer norm.")
    sum: float = Field(description="Of all parts; `logit` but for rounding.")
    difference: float = Field(description="How far the sum is from the logit.")


class KeyMeasures(AnswerToken):
    position: int
    weight: float = Field(description="The attention weight.")
    norm: float = Field(description="The length of weight * value * W_O (Kobayashi et al. 2020).")
    attribution: float = Field(description="The part of that vector in the logit.")
    loss_change: float = Field(description="In nats, when the weight is set to 0 and the others stay as they are.")


class HeadSums(BaseModel):
    weight: float
    norm: float = Field(description="The length of the sum of the vectors; they may cancel.")
    attribution: float = Field(description="The head's part in the logit.")
    loss_change: float = Field(description="Of all edges cut one at a time.")


class Correlation(BaseModel):
    measures: tuple[str, str]
    spearman: float | None = Field(description="Over the keys; null where it is not defined.")


class WithoutHead(BaseModel):
    loss_change: float = Field(description="Of the token in nats, with the head removed at all positions.")
    text_loss_change: float | None = Field(description="Of the text in nats per predicted token.")


class HeadAnswer(PredictionAnswer):
    layer: int
    head: int
    keys: list[KeyMeasures]
    sums: HeadSums
    correlations: list[Correlation] = Field(
        description="Of all pairs of measures; beside a weight or a norm, a signed measure is taken by its size."
    )
    without_head: WithoutHead


class Reading(ProbableToken):
    kl: float = Field(description="KL(final answer || this reading), in nats.")
    answer: float = Field(description="The probability of the token that the final answer makes most probable.")
    top: list[ProbableToken]


class LogitLensAnswer(TextAnswer):
    layers: list[list[Reading]] = Field(
        description="`[n_layer + 1][position]`: after the embeddings, then after each layer."
    )
    decided: list[int] = Field(
        description="`[position]`: the first entry of `layers` from which on the most probable token stays the same."
    )


class LedgerErrors(BaseModel):
    weights: float = Field(description="The row of attention weights, against the model's own attention.")
    context: float = Field(description="The context vector, against the model's own attention.")
    logit: float = Field(description="The head's part and the rest, against the model's own logit.")


class LedgerAnswer(TextAnswer):
    """Vectors have ``head_dim`` numbers, rows one for each key up to the query."""

    layer: int
    head: int
    position: tuple[int, int] = Field(description="Of the query and the key.")
    token: AnswerToken
    query: list[float]
    key: list[float]
    products: list[float]
    score: float
    scale: float
    n_masked: int = Field(description="Later tokens, whose scores are minus infinity.")
    scaled: list[float] = Field(description="The row of scores, scaled.")
    largest: float
    exponentials: list[float]
    denominator: float
    weights: list[float]
    mask: float = Field(description="The head mask's factor; 1 without one.")
    value: list[float]
    weighted: list[float]
    context: list[float]
    reading: list[float] = Field(description="What 1 in each place of the context vector adds to the logit.")
    terms: list[float]
    part: float = Field(description="Of this key in the logit.")
    parts: list[float] = Field(description="Of all keys.")
    head_part: float
    rest: float = Field(description="Of everything else.")
    logit: float
    probability: float
    errors: LedgerErrors
