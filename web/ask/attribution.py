"""The question of what each part of a model adds to a logit."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field as Described

from model.lens.attribution import LIKELIEST, attribution
from model.lens.progress import Progress

from .inquiry import Answer, Inquiry
from .prediction import POSITION, TOKEN, PredictionAnswer, most_probable
from .prompts import of_many
from .question import HEAD_MASK, MODEL, PROMPT, NamedToken, ProbableToken, Question, Subject, TokenField


class AttributionAnswer(PredictionAnswer):
    against: NamedToken | None
    alternatives: list[ProbableToken] = Described(description="The most probable next tokens at this position.")
    heads: list[list[float]] = Described(description="`[layer][head]`, including the value biases.")
    mlps: list[float] = Described(description="`[layer]`, including the output biases.")
    embedding: float = Described(
        description="The part of the token's embedding and, unless positions are rotary, of the position's."
    )
    biases: float = Described(
        description="The part of the biases of attention's output projections and the final norm."
    )
    sum: float = Described(description="The sum of all parts; equals `logit` up to rounding.")
    difference: float = Described(description="The absolute difference between `sum` and `logit`.")


class AgainstField(TokenField):
    """A token, or the word that stands for the most probable one other than the one in question."""

    def parse(self, given: Mapping[str, Any], subject: Subject) -> Any:
        return LIKELIEST if given.get(self.name) == LIKELIEST else super().parse(given, subject)


def answer_attribution(inquiry: Inquiry, _progress: Progress) -> Answer:
    answer = attribution(inquiry.text, **inquiry.values).with_texts(inquiry.loaded.tokenizer)
    return answer.to_arrays() | {"alternatives": most_probable(inquiry, answer.position)}


ATTRIBUTION = Question(
    "attribution",
    "What each head and MLP, the embedding and the biases of a model add to the logit of a next token, with the scale "
    "of the final norm held fixed.",
    [
        PROMPT,
        MODEL,
        POSITION,
        TOKEN,
        AgainstField(
            "against",
            "Another token, as text or as an id, or `likeliest` for the most probable other token: the parts are then "
            "those of the difference between the two logits.",
            default=None,
        ),
        HEAD_MASK,
    ],
    "The logit and the parts that add up to it.",
    AttributionAnswer,
    answer_attribution,
)

ATTRIBUTION_PROMPTS = of_many(ATTRIBUTION, "attribution")
