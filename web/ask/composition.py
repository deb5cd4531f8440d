"""The question of how strongly each head's weights read from the output of each earlier head."""

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.composition import DRAWS, SEED, WAYS, composition
from model.lens.progress import Progress

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .question import MODEL, Field, ModelAnswer, Question


class BaselineScores(BaseModel):
    mean: float
    spread: float = Described(description="The standard deviation of the scores.")


class CompositionBaseline(BaseModel):
    """The scores of random heads, whose weights are drawn independently from one normal distribution."""

    q: BaselineScores
    k: BaselineScores
    v: BaselineScores
    heads: int = Described(
        description="The number of random heads; half of them are earlier heads, each paired with every later one."
    )
    seed: int


class CompositionAnswer(ModelAnswer):
    """`[later layer][later head][earlier layer][earlier head]`, with the gain of the layer norms folded in."""

    q: list[list[list[list[float]]]]
    k: list[list[list[list[float]]]]
    v: list[list[list[list[float]]]]
    baseline: CompositionBaseline
    centred: bool
    distance: int


def check_composition(inquiry: Inquiry, limits: Limits) -> None:
    n_layer, n_head = inquiry.loaded.config.n_layer, inquiry.loaded.config.n_head
    n_numbers = 3 * n_head**2 * n_layer * (n_layer - 1) // 2
    if n_numbers > limits.max_json_weights:
        most = f"at most {limits.max_json_weights:,} are sent"
        raise InputError("model", f"The answer would have {n_numbers:,} scores; {most}.")


def answer_composition(inquiry: Inquiry, _progress: Progress) -> Answer:
    found = composition(inquiry.gpt, **inquiry.values)
    baseline: Answer = {way: found.baseline[way]._asdict() for way in WAYS}
    scores: Answer = {way: [layer.tolist() for layer in found.scores[way]] for way in WAYS}
    return scores | {"baseline": baseline | {"heads": 2 * DRAWS, "seed": SEED}, **inquiry.values}


COMPOSITION = Question(
    "composition",
    "How strongly each head's weights read from the output of each earlier head.",
    [
        MODEL,
        Field("centred", "Also fold the layer norm's subtraction of the mean into the weights.", bool, default=False),
        Field(
            "distance",
            "How many positions the query is after the key; it matters where positions are rotary.",
            int,
            default=0,
            below="context_length",
        ),
    ],
    "Q-, K- and V-composition scores by later layer and head, then earlier layer and head, and the scores of random "
    "heads of this shape.",
    CompositionAnswer,
    answer_composition,
    check_composition,
)
