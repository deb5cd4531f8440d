"""What questions about the prediction of a next token have in common."""

from typing import Any

from pydantic import Field as Described

from model.lens.attribution import logits_at

from .inquiry import Inquiry
from .question import Field, NamedToken, TextAnswer, TokenField

ALTERNATIVES = 6  # the number of most probable tokens in an answer, which a client may ask about next


POSITION = Field(
    "position",
    "The token after which the next one is predicted, counted from 0; the last by default.",
    int,
    default=None,
    below="n_tokens",
)
TOKEN = TokenField("token", "The next token, as text or as an id; the most probable one by default.", default=None)


class PredictionAnswer(TextAnswer):
    position: int
    token: NamedToken = Described(description="The next token whose logit is explained.")
    logit: float = Described(description="The token's logit, as the model computes it.")
    probability: float = Described(description="The token's probability, as the model computes it.")


def most_probable(inquiry: Inquiry, position: int) -> list[dict[str, Any]]:
    """The most probable next tokens, in descending order."""
    top = logits_at(inquiry.text, position).softmax(-1).topk(min(ALTERNATIVES, inquiry.loaded.config.vocab_size))
    tokens = inquiry.loaded.tokens(top.indices.tolist())
    return [{**token._asdict(), "probability": p} for token, p in zip(tokens, top.values.tolist(), strict=True)]
