"""The question of what one head takes from each token for one prediction."""

from pydantic import BaseModel
from pydantic import Field as Described

from model.lens.one_head import head_measures
from model.lens.progress import Progress

from .inquiry import Answer, Inquiry
from .prediction import POSITION, TOKEN, PredictionAnswer
from .prompts import of_many
from .question import HEAD, HEAD_MASK, LAYER, MODEL, PROMPT, NamedToken, Question


class KeyMeasures(NamedToken):
    position: int
    weight: float = Described(description="The attention weight.")
    norm: float = Described(description="The norm of weight * value * W_O (Kobayashi et al. 2020).")
    attribution: float = Described(description="What that vector adds to the logit.")
    loss_change: float = Described(description="In nats, when this weight is set to 0 and the others are unchanged.")


class HeadSums(BaseModel):
    weight: float
    norm: float = Described(description="The norm of the sum of the vectors, which may cancel.")
    attribution: float = Described(description="What the head adds to the logit.")
    loss_change: float = Described(description="The sum over all edges, each cut on its own.")


class Correlation(BaseModel):
    measures: tuple[str, str]
    spearman: float | None = Described(description="The rank correlation over the keys; null where it is undefined.")


class WithoutHead(BaseModel):
    loss_change: float = Described(
        description="The change for this token in nats, with the head removed at all positions."
    )
    text_loss_change: float | None = Described(description="The change for the text, in nats per predicted token.")


class HeadAnswer(PredictionAnswer):
    layer: int
    head: int
    keys: list[KeyMeasures]
    sums: HeadSums
    correlations: list[Correlation] = Described(
        description="For all pairs of measures. When compared with a weight or a norm, a signed measure is replaced "
        "with its magnitude."
    )
    without_head: WithoutHead


def answer_head(inquiry: Inquiry, progress: Progress) -> Answer:
    answer = head_measures(inquiry.text, **inquiry.values, progress=progress).with_texts(inquiry.loaded.tokenizer)
    return answer.to_dict() | {name: inquiry.values[name] for name in ("layer", "head")}


ONE_HEAD = Question(
    "head",
    "What one head takes from each token for one prediction, in four measures.",
    [PROMPT, MODEL, LAYER, HEAD, POSITION, TOKEN, HEAD_MASK],
    "For each key its attention weight, value-weighted norm, part of the logit, and the change of the loss when that "
    "edge is cut; the sums and rank correlations of these measures; and the change of the loss without the head.",
    HeadAnswer,
    answer_head,
    endpoint_name="head_lenses",
)

ONE_HEAD_PROMPTS = of_many(ONE_HEAD, "head")
