"""The question of what each part of a model adds to a logit."""

from typing import Literal

from pydantic import Field as Described

from model.lens.attribution import attribution
from model.lens.progress import Progress

from .inquiry import Answer, Inquiry
from .prediction import POSITION, TOKEN, PredictionAnswer, most_probable, named, position_of, token_of
from .prompts import of_many
from .question import HEAD_MASK, MODEL, PROMPT, Field, NamedToken, ProbableToken, Question

LIKELIEST = "likeliest"  # a value of `against`: the most probable token other than `token`


class AttributionAnswer(PredictionAnswer):
    against: NamedToken | None
    alternatives: list[ProbableToken] = Described(description="The most probable next tokens at this position.")
    heads: list[list[float]] = Described(description="`[layer][head]`, including the value biases.")
    mlps: list[float] = Described(description="`[layer]`, including the output biases.")
    embedding: float = Described(description="The part of the token and position embeddings.")
    biases: float = Described(
        description="The part of the biases of attention's output projections and the final layer norm."
    )
    sum: float = Described(description="The sum of all parts; equals `logit` up to rounding.")
    difference: float = Described(description="The absolute difference between `sum` and `logit`.")


def answer_attribution(inquiry: Inquiry, _progress: Progress) -> Answer:
    position, against = position_of(inquiry), inquiry.values["against"]
    token = token_of(inquiry, position)
    alternatives = most_probable(inquiry, position)
    if against == LIKELIEST:
        against = next((one["id"] for one in alternatives if one["id"] != token), None)
    found = attribution(inquiry.text, position=position, token=token, against=against)
    return {
        "position": position,
        "token": named(inquiry, found.token),
        "against": None if against is None else named(inquiry, against),
        "alternatives": alternatives,
        "logit": found.logit,
        "probability": found.probability,
        "heads": found.heads.numpy(),
        "mlps": found.mlps.numpy(),
        "embedding": found.embedding,
        "biases": found.biases,
        "sum": found.total,
        "difference": found.difference,
    }


ATTRIBUTION = Question(
    "attribution",
    "What each head and MLP, the embedding and the biases of a model add to the logit of a next token, with the scale "
    "of the final layer norm held fixed.",
    [
        PROMPT,
        MODEL,
        POSITION,
        TOKEN,
        Field(
            "against",
            "Another token's id, or `likeliest` for the most probable other token: the parts are then those of the "
            "difference between the two logits.",
            int | Literal["likeliest"],
            default=None,
            below="vocab_size",
        ),
        HEAD_MASK,
    ],
    "The logit and the parts that add up to it.",
    AttributionAnswer,
    answer_attribution,
)

PARTS = ("logit", "probability", "heads", "mlps", "embedding", "biases")
ATTRIBUTION_PROMPTS = of_many(
    ATTRIBUTION,
    lambda answer: {name: answer[name] for name in PARTS},
    columns={"answer": "token", "wrong": "against"},
)
