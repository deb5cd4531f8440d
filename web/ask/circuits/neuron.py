"""The question of what excites an MLP neuron in a text, and what the neuron writes."""

from pydantic import BaseModel
from pydantic import Field as Described

from model.lens import neurons
from model.lens.passages import read_long_text
from model.lens.progress import Progress

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..passages import LONG_TEXT
from ..question import LAYER, MODEL, Field, LongTextField, ModelAnswer, NamedToken, Question

MAX_PLACES = 100


class ExcitedAt(BaseModel):
    """A place in the text. All positions are positions in the whole text."""

    position: int
    activation: float
    start: int = Described(description="The position of the first of `tokens`.")
    tokens: list[NamedToken]
    activations: list[float] = Described(description="The activation at each of `tokens`.")


class WrittenToken(NamedToken):
    logit: float = Described(description="Per unit of activation, before the final norm's division.")


class NeuronAnswer(ModelAnswer):
    layer: int
    neuron: int
    n_tokens: int
    highest: list[ExcitedAt] = Described(description="The highest first; at most one within 32 consecutive tokens.")
    lowest: list[ExcitedAt] = Described(description="The lowest first.")
    mean: float = Described(description="The mean activation over all tokens of the text.")
    positive: float = Described(description="The share of tokens with an activation above 0.")
    promotes: list[WrittenToken] = Described(description="The tokens whose logits the neuron's output raises most.")
    suppresses: list[WrittenToken]
    norm: float = Described(description="The norm of the neuron's output direction.")


def check_neuron(inquiry: Inquiry, _limits: Limits) -> None:
    neurons.check_neuron(inquiry.loaded.config, inquiry.values["layer"], inquiry.values["neuron"])


def answer_neuron(inquiry: Inquiry, progress: Progress) -> Answer:
    loaded, values = inquiry.loaded, inquiry.values
    place = {"layer": values["layer"], "neuron": values["neuron"]}
    ids = read_long_text(loaded.tokenizer, values["text"])
    answer = neurons.neuron(inquiry.gpt, ids, **place, k=values["top"], progress=progress)
    return place | answer.with_texts(loaded.tokenizer).to_dict()


NEURON = Question(
    "neuron",
    "What most excites an MLP neuron in a long text, and which tokens it promotes and suppresses.",
    [
        LongTextField("text", "The text to read, of up to a megabyte; the model must know all of its characters."),
        MODEL,
        LAYER,
        Field("neuron", "The MLP neuron, counted from 0.", int, least=0),
        Field("top", "How many places and tokens to return.", int, default=20, least=1, most=MAX_PLACES),
    ],
    "The places in the text with the highest and lowest activations, each with its context, and the tokens whose "
    "logits the neuron's output direction raises and lowers most.",
    NeuronAnswer,
    answer_neuron,
    check_neuron,
    body_limit=LONG_TEXT,
)
