"""The question of how strongly each head's weights read from the output of each earlier head."""

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.composition import composition
from model.lens.progress import Progress

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..question import MODEL, Field, ModelAnswer, Question

PerPair = list[list[list[list[float]]]]  # [later layer][later head][earlier layer][earlier head]


class Deviations(BaseModel):
    """By how many standard deviations each squared score exceeds those of the same two heads, rotated at random."""

    q: PerPair
    k: PerPair
    v: PerPair


class CompositionAnswer(ModelAnswer):
    """`[later layer][later head][earlier layer][earlier head]`, with the gain of the norms folded in."""

    q: PerPair
    k: PerPair
    v: PerPair
    deviations: Deviations
    chance: float = Described(
        description="The root mean square of the score of two heads with the same singular values, rotated at random: "
        "1 / sqrt(n_embd)."
    )
    centred: bool
    distance: int


def check_composition(inquiry: Inquiry, limits: Limits) -> None:
    n_layer, n_head = inquiry.loaded.config.n_layer, inquiry.loaded.config.n_head
    n_numbers = 6 * n_head**2 * n_layer * (n_layer - 1) // 2
    if n_numbers > limits.max_json_weights:
        most = f"at most {limits.max_json_weights:,} are sent"
        raise InputError("model", f"The answer would have {n_numbers:,} numbers; {most}.")


def answer_composition(inquiry: Inquiry, progress: Progress) -> Answer:
    return inquiry.values | composition(inquiry.gpt, **inquiry.values, progress=progress).to_dict()


COMPOSITION = Question(
    "composition",
    "How strongly each head's weights read from the output of each earlier head.",
    [
        MODEL,
        Field("centred", "Also fold a LayerNorm's subtraction of the mean into the weights.", bool, default=False),
        Field(
            "distance",
            "How many positions the query comes after the key; it matters only for rotary positions.",
            int,
            default=0,
            below="context_length",
        ),
    ],
    "Q-, K- and V-composition scores by later layer and head, then earlier layer and head, and how far each "
    "is above that of the same two heads rotated at random.",
    CompositionAnswer,
    answer_composition,
    check_composition,
    less="a smaller model",
)
