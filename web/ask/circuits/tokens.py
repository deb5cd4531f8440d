"""The question of what a head's weights, or those of two composed heads, do to the vocabulary."""

from typing import Any, Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.progress import Progress, part
from model.lens.token_circuits import check_circuit, token_circuit

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..question import HEAD, LAYER, MODEL, Field, ModelAnswer, NamedToken, Question

FACTORS_PART = 0.2  # of the work, roughly; the rest is the search for the largest pairs
MAX_PAIRS = 1_000


class TokenPair(BaseModel):
    source: NamedToken
    target: NamedToken
    value: float


class TokenCircuitAnswer(ModelAnswer):
    """A matrix over pairs of tokens, `[source][target]`, in its largest entries and its eigenvalues."""

    circuit: str
    layer: int
    head: int
    earlier_layer: int | None
    earlier_head: int | None
    side: str | None
    distance: int
    pairs: list[TokenPair] = Described(
        description="The largest entries, in descending order. OV: what attention to `source` adds to the logit of "
        "`target`, before the final norm's division. QK: the attention score of the query of `source` with the key of "
        "`target`."
    )
    eigenvalues: list[tuple[float, float]] = Described(
        description="Real and imaginary parts of those that are not zero by construction, the largest magnitude first."
    )
    eigenvalue_score: float = Described(
        description="The sum of the eigenvalues divided by the sum of their magnitudes, from -1 to 1: near 1, tokens "
        "promote themselves (OV: the head copies) or prefer themselves (QK)."
    )


def lens_arguments(inquiry: Inquiry) -> dict[str, Any]:
    """The arguments of ``token_circuit``. Raises ``InputError`` if only the layer or only the head of the earlier head
    is given."""
    given = dict(inquiry.values)
    earlier = given.pop("earlier_layer"), given.pop("earlier_head")
    if (earlier[0] is None) != (earlier[1] is None):
        raise InputError("earlier_head", "An earlier head needs both earlier_layer and earlier_head.")
    return {name: given[name] for name in ("circuit", "layer", "head", "side", "distance")} | {
        "earlier": None if earlier[0] is None else earlier
    }


def check_token_circuit(inquiry: Inquiry, _limits: Limits) -> None:
    check_circuit(inquiry.loaded.config, **lens_arguments(inquiry))


def answer_token_circuit(inquiry: Inquiry, progress: Progress) -> Answer:
    values = inquiry.values
    circuit = token_circuit(inquiry.gpt, **lens_arguments(inquiry), progress=part(progress, 0, FACTORS_PART))
    answer = circuit.summary(values["top"], values["token"], part(progress, FACTORS_PART, 1))
    asked = {name: each for name, each in values.items() if name not in ("token", "top")}
    return asked | answer.with_texts(inquiry.loaded.tokenizer).to_arrays()


TOKEN_CIRCUIT = Question(
    "token-circuit",
    "What a head's weights do to the vocabulary: the tokens that attention to a token promotes (its OV circuit), or "
    "the pairs of query and key tokens that it prefers (its QK circuit).",
    [
        MODEL,
        LAYER,
        HEAD,
        Field("circuit", "`ov` or `qk`.", Literal["ov", "qk"], default="ov"),
        Field(
            "earlier_layer",
            "With `earlier_head`, the circuit of two composed heads: the head reads what this earlier head writes.",
            int,
            default=None,
            below="n_layer",
        ),
        Field("earlier_head", "See `earlier_layer`.", int, default=None, below="n_head"),
        Field(
            "side",
            "For the QK circuit of two composed heads: whether the queries (`q`) or the keys (`k`) read what the "
            "earlier head writes.",
            Literal["q", "k"],
            default=None,
        ),
        Field(
            "distance",
            "For a QK circuit with rotary positions: how many positions the query comes after the key.",
            int,
            default=0,
            below="context_length",
        ),
        Field(
            "token",
            "The id of a source or query token: pairs are then those of this token alone.",
            int,
            default=None,
            below="vocab_size",
        ),
        Field("top", "The number of pairs.", int, default=20, least=1, most=MAX_PAIRS),
    ],
    "The pairs of tokens with the largest entries, and the eigenvalues with their sum divided by the sum of their "
    "magnitudes. A token is represented by its embedding, plus the first MLP's output for it in heads after the first "
    "layer, as the norm before the head passes it on.",
    TokenCircuitAnswer,
    answer_token_circuit,
    check_token_circuit,
    less="a single token",
)
