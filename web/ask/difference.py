"""The question of how differently each head attends in two texts, models or training steps."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field as Described

from model.lens.alignment import Reading, align_readings, check_same_tokens
from model.lens.difference import attention_difference
from model.lens.progress import Progress

from ..serving.inputs import parse_ids
from .inquiry import Answer, Inquiry
from .prompts import of_many
from .question import (
    HEAD_MASK,
    MODEL,
    PROMPT,
    ModelField,
    NamedToken,
    PerHead,
    Question,
    Subject,
    TextAnswer,
    TextField,
)


class DifferenceAnswer(TextAnswer):
    other_model: str
    other_tokens: list[NamedToken]
    pairs: list[tuple[int, int]] = Described(
        description="The queries that are compared, by position in the text and in the other text. The pair of first "
        "tokens is left out: each has a single key, so they never differ."
    )
    heads: PerHead = Described(
        description="The mean total variation distance of the rows of attention weights, 0 to 1. Equal tokens at "
        "corresponding positions are separate keys; all other tokens of a text are pooled into one key."
    )
    most: list[list[int]] = Described(
        description="`[layer][head]`: the index in `pairs` of the query that differs most."
    )
    largest: list[tuple[int, int]] = Described(description="All heads as `[layer, head]`, the most different first.")


@dataclass(frozen=True)
class OtherText(TextField):
    """A text that the other model reads with its own vocabulary: the prompt, unless another one is given."""

    def parse(self, given: Mapping[str, Any], subject: Subject) -> list[int]:
        loaded, other_model = subject.loaded, subject.models.get("other_model", subject.loaded)
        if own := super().parse(given, replace(subject, models={"model": other_model})):
            return own
        text, ids = given.get(PROMPT.name), given.get(PROMPT.ids)
        check_same_tokens(loaded.tokenizer, other_model.tokenizer, ids or (), PROMPT.name)
        return parse_ids(subject.limits, other_model, text, ids)


def answer_difference(inquiry: Inquiry, progress: Progress) -> Answer:
    other_model, ids = inquiry.models.get("other_model", inquiry.loaded), inquiry.values["other"]
    readings = Reading(inquiry.ids, inquiry.loaded.tokenizer), Reading(ids, other_model.tokenizer)
    pieces = align_readings(*readings).pieces
    difference = attention_difference(inquiry.text, inquiry.text_of(ids, other_model), pieces=pieces, progress=progress)
    tokens: list[dict[str, Any]] = [token._asdict() for token in other_model.text_tokens(ids)]
    return {"other_model": other_model.name, "other_tokens": tokens, **difference.to_arrays()}


DIFFERENCE = Question(
    "difference",
    "How differently each head attends in two texts, two models or two training steps.",
    [
        PROMPT,
        OtherText("other", "Another text; the same one by default.", default=None, ids="other_tokens"),
        MODEL,
        ModelField(
            "other_model",
            "Another model with as many layers and heads, or a training step (NAME@STEP); the same one by default.",
        ),
        HEAD_MASK,
    ],
    "The mean total variation distance of each head's attention weights, and all heads, the most different first.",
    DifferenceAnswer,
    answer_difference,
    less="shorter texts",
)

DIFFERENCE_PROMPTS = of_many(DIFFERENCE, "difference")
