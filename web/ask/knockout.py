"""Questions about a text read without some heads: one at a time, or several at once."""

from pydantic import Field as Described

from model.errors import InvalidValue
from model.lens.interventions.knockout import check_two_tokens, knockout, removal
from model.lens.progress import Progress

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .prompts import of_many
from .question import HEAD_MASK, MODEL, PROMPT, Field, HeadsField, Question, TextAnswer
from .reference import METHOD, REFERENCE, ReferenceSet, check_reference, reference_of


class KnockoutAnswer(TextAnswer):
    method: str
    reference: ReferenceSet | None
    loss: float = Described(description="Nats per predicted token.")
    delta: list[list[float]] = Described(description="`[layer][head]`: the loss without the head, minus `loss`.")
    token_loss: list[float] | None = Described(None, description="For each token from the second to the last, in nats.")
    token_delta: list[list[list[float]]] | None = Described(
        None, description="`[layer][head][token]`, from the second token to the last."
    )


def check_knockout(inquiry: Inquiry, limits: Limits) -> None:
    check_two_tokens(inquiry.ids)
    check_reference(inquiry)
    config = inquiry.loaded.config
    n_numbers = config.n_layer * config.n_head * (len(inquiry.ids) - 1)
    if inquiry.values["per_token"] and n_numbers > limits.max_json_weights:
        sent = f"there would be {n_numbers:,} numbers, and at most {limits.max_json_weights:,} are sent"
        raise InvalidValue("per_token", True, f"false for this text: {sent}")


def answer_knockout(inquiry: Inquiry, progress: Progress) -> Answer:
    method = inquiry.values["method"]
    reference, said = reference_of(inquiry)
    answer = knockout(inquiry.text, method=method, reference=reference, progress=progress)
    numbers = answer.to_arrays()
    kept = numbers if inquiry.values["per_token"] else {name: numbers[name] for name in ("loss", "delta")}
    return {"method": method, "reference": said, **kept}


KNOCKOUT = Question(
    "knockout",
    "How much worse a model predicts a text without each of its heads.",
    [
        PROMPT,
        MODEL,
        METHOD,
        Field("per_token", "Also return the change for every token.", bool, default=False),
        HEAD_MASK,
        REFERENCE,
    ],
    "The loss of the text in nats per token, and for each layer and head how much the loss rises without it.",
    KnockoutAnswer,
    answer_knockout,
    check_knockout,
)


class RemovalAnswer(TextAnswer):
    method: str
    reference: ReferenceSet | None
    heads: list[list[int]]
    loss: float = Described(description="Nats per predicted token.")
    delta: float = Described(description="The loss without these heads, minus `loss`.")
    token_loss: list[float] = Described(description="For each token from the second to the last, in nats.")
    token_delta: list[float] = Described(description="The change for each token in `token_loss`.")


def check_removal(inquiry: Inquiry, _limits: Limits) -> None:
    check_two_tokens(inquiry.ids)
    check_reference(inquiry)


def answer_removal(inquiry: Inquiry, progress: Progress) -> Answer:
    method, heads = inquiry.values["method"], inquiry.values["heads"]
    reference, said = reference_of(inquiry)
    answer = removal(inquiry.text, heads, method=method, reference=reference)
    progress(1)
    return {"method": method, "reference": said, "heads": heads, **answer.to_arrays()}


REMOVAL = Question(
    "removal",
    "How much worse a model predicts a text without several of its heads at once.",
    [
        HeadsField("heads", "The heads to remove together, each as `[layer, head]`."),
        PROMPT,
        MODEL,
        METHOD,
        HEAD_MASK,
        REFERENCE,
    ],
    "The loss of the text in nats per token, how much it rises without these heads, and both for each token.",
    RemovalAnswer,
    answer_removal,
    check_removal,
)

KNOCKOUT_PROMPTS = of_many(KNOCKOUT, "knockout")
REMOVAL_PROMPTS = of_many(REMOVAL, "removal")
