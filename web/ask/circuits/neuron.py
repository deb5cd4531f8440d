"""The question of what excites an MLP neuron in a text, and what the neuron writes."""

import torch
from pydantic import BaseModel
from pydantic import Field as Described

from model.errors import InvalidValue
from model.lens.neurons import Context, neuron_activity, neuron_writes
from model.lens.progress import Progress

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..passages import LONG_TEXT, encode
from ..question import LAYER, MODEL, Field, LongTextField, ModelAnswer, NamedToken, Question

MAX_PLACES = 100


class ExcitedAt(BaseModel):
    """A place in the text. All positions are positions in the whole text."""

    position: int
    activation: float
    start: int = Described(description="The position of the first of `tokens`.")
    tokens: list[NamedToken]
    activations: list[float] = Described(description="Of each of `tokens`.")


class WrittenToken(NamedToken):
    logit: float = Described(description="Per unit of activation, up to the final norm's division.")


class NeuronAnswer(ModelAnswer):
    layer: int
    neuron: int
    n_tokens: int
    highest: list[ExcitedAt] = Described(description="The highest first; one within 32 consecutive tokens.")
    lowest: list[ExcitedAt] = Described(description="The lowest first.")
    mean: float = Described(description="The mean activation over all tokens of the text.")
    positive: float = Described(description="The share of tokens with an activation above 0.")
    promotes: list[WrittenToken] = Described(description="The tokens whose logits the neuron's output raises most.")
    suppresses: list[WrittenToken]
    norm: float = Described(description="The norm of the neuron's output direction.")


def check_neuron(inquiry: Inquiry, _limits: Limits) -> None:
    n = inquiry.loaded.config.inner_dim
    if not 0 <= inquiry.values["neuron"] < n:
        raise InvalidValue("neuron", inquiry.values["neuron"], f"an integer from 0 to {n - 1:,}")


def answer_neuron(inquiry: Inquiry, progress: Progress) -> Answer:
    loaded, values = inquiry.loaded, inquiry.values
    place = {"layer": values["layer"], "neuron": values["neuron"]}
    ids = encode(loaded, values["text"])
    found = neuron_activity(inquiry.gpt, torch.tensor(ids), **place, k=values["top"], progress=progress)
    writes = neuron_writes(inquiry.gpt, **place, k=values["top"])

    def shown(context: Context) -> Answer:
        tokens = loaded.tokens(ids[context.start : context.start + len(context.activations)])
        return context._asdict() | {"tokens": [token._asdict() for token in tokens]}

    def written(token_ids: torch.Tensor, logits: torch.Tensor) -> list[Answer]:
        tokens = loaded.tokens(token_ids.tolist())
        return [{**token._asdict(), "logit": logit} for token, logit in zip(tokens, logits.tolist(), strict=True)]

    return place | {
        "n_tokens": len(ids),
        "highest": [shown(each) for each in found.highest],
        "lowest": [shown(each) for each in found.lowest],
        "mean": found.mean,
        "positive": found.positive,
        "promotes": written(writes.top_ids, writes.top),
        "suppresses": written(writes.bottom_ids, writes.bottom),
        "norm": writes.norm,
    }


NEURON = Question(
    "neuron",
    "What most excites an MLP neuron in a long text, and which tokens it promotes and suppresses.",
    [
        LongTextField("text", "The text to read, of up to a megabyte; the model must know all of its characters."),
        MODEL,
        LAYER,
        Field("neuron", "The MLP neuron, counted from 0.", int, least=0),
        Field("top", "The number of places and of tokens.", int, default=20, least=1, most=MAX_PLACES),
    ],
    "The places of the text with the highest and lowest activations, each with its context, and the tokens whose "
    "logits the neuron's output direction raises and lowers most.",
    NeuronAnswer,
    answer_neuron,
    check_neuron,
    max_seconds=lambda limits: limits.max_reading_seconds,
    body_limit=LONG_TEXT,
)
