"""The question of what each layer of a model would have predicted."""

from pydantic import Field as Described

from model.errors import InvalidValue
from model.lens.logit_lens import logit_lens
from model.lens.progress import Progress

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .question import HEAD_MASK, MODEL, PROMPT, Field, ProbableToken, Question, TextAnswer

MAX_TOP = 20


class LayerPrediction(ProbableToken):
    kl: float = Described(description="KL(the model's prediction || this one), in nats.")
    answer: float = Described(description="The probability that it gives to the model's most probable token.")
    top: list[ProbableToken]


class LogitLensAnswer(TextAnswer):
    layers: list[list[LayerPrediction]] = Described(
        description="`[n_layer + 1][position]`: after the embeddings, then after each layer."
    )
    decided: list[int] = Described(
        description="`[position]`: the earliest entry of `layers` from which the most probable token stays the same."
    )


def n_top(inquiry: Inquiry) -> int:
    return int(min(inquiry.values["top"], inquiry.loaded.config.vocab_size))


def check_logit_lens(inquiry: Inquiry, limits: Limits) -> None:
    top = n_top(inquiry)
    n_tokens = (inquiry.loaded.config.n_layer + 1) * len(inquiry.ids) * top
    if n_tokens > limits.max_json_weights:
        sent = f"there would be {n_tokens:,} tokens, and at most {limits.max_json_weights:,} are sent"
        raise InvalidValue("top", top, f"smaller for this text: {sent}")


def answer_logit_lens(inquiry: Inquiry, progress: Progress) -> Answer:
    answer = logit_lens(inquiry.text, k=n_top(inquiry), progress=progress)
    return answer.with_texts(inquiry.loaded.tokenizer).to_arrays()


LOGIT_LENS = Question(
    "logit-lens",
    "What each layer of a model would have predicted at each position if it had been the last.",
    [
        PROMPT,
        MODEL,
        Field("top", "How many of the most probable tokens to name.", int, default=5, least=1, most=MAX_TOP),
        HEAD_MASK,
    ],
    "After the embeddings and after each layer, for each position: the most probable tokens, and the KL divergence of "
    "the model's prediction from this one, in nats.",
    LogitLensAnswer,
    answer_logit_lens,
    check_logit_lens,
)
