"""The question of which heads and edges carry the difference between pairs of prompts."""

import math

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.composition import WAYS
from model.lens.interventions.ablated_graph import CHOICES_AT_ONCE
from model.lens.interventions.circuit import MAX_HEADS, MAX_LOST, HeadMethod, circuit_of
from model.lens.interventions.patching import check_prompts
from model.lens.interventions.sites import SITES
from model.lens.progress import Progress
from model.lens.prompts import in_row
from model.lens.text_pass import TextPass

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..patching import attribution_work, effects_work
from ..prompts import BODY_LIMIT, PromptsField
from ..question import HEAD_MASK, MODEL, Field, ModelAnswer, NamedToken, Question
from ..timing.work import Work, layers

MAX_PAIRS = 100
# Nobody knows before how many heads are left, after how many tries to remove heads and then edges, nor how many edges.
TYPICAL_HEADS, TYPICAL_TRIES, TYPICAL_LEFT = 16, 50, 0.25
MAX_STREAM_BYTES = 256_000_000  # of all pairs together
STREAM_COPIES = 4  # of the stream, roughly, that are kept for each token: of both prompts, and of ablated heads


class HeadInCircuit(BaseModel):
    layer: int
    head: int
    lost: float = Described(description="The share of the effect that is lost if this head alone is ablated.")
    position: int = Described(
        description="The position at which its output matters most, in the clean prompt of the first of `pairs`."
    )
    lost_there: float = Described(description="The share that is lost if it is ablated at this position only.")
    reads: NamedToken = Described(description="The token with the largest attention weight there.")
    key: int = Described(description="The position of that token.")
    weight: float
    promoted: list[NamedToken] = Described(
        description="The tokens whose logits its output at that position directly raises most, the largest first."
    )


class EdgeInCircuit(BaseModel):
    sender: tuple[int, int] = Described(description="`[layer, head]`.")
    receiver: tuple[int, int] | None = Described(description="`[layer, head]`, or null for the logits.")
    way: str | None = Described(description="What the receiver computes from it: its queries, keys or values.")
    lost: float = Described(description="The share of the effect that is lost if this edge alone is cut.")


class PairInCircuit(BaseModel):
    row: int = Described(description="The index of the pair in `prompts`.")
    answer: NamedToken
    wrong: NamedToken
    clean: float = Described(description="The logit of the answer minus that of the wrong token, in the clean run.")
    corrupted: float = Described(description="The same in the corrupted run.")
    kept: float


class LeftOut(BaseModel):
    row: int
    error: str


class CircuitAnswer(ModelAnswer):
    """A circuit; shares are those of the mean logit difference: 1 is the clean prompts, 0 the corrupted ones."""

    kept: float = Described(description="Faithfulness: the share of the effect left with everything else ablated.")
    without_heads: float = Described(description="The share left with all heads ablated.")
    heads: list[HeadInCircuit]
    edges: list[EdgeInCircuit]
    pairs: list[PairInCircuit]
    left_out: list[LeftOut] = Described(description="The pairs that have no effect to explain, and why.")


def check_circuit(inquiry: Inquiry, _limits: Limits) -> None:
    prompts, config = inquiry.values["prompts"], inquiry.loaded.config
    if len(prompts) > MAX_PAIRS:
        raise InputError("prompts", f"There are {len(prompts):,} pairs; at most {MAX_PAIRS} are read together.")
    for index, row in enumerate(prompts):
        try:
            check_prompts(row["prompt"], row["corrupted"])
        except InputError as error:
            raise in_row(index, error) from None
    n_tokens = sum(len(row["prompt"]) for row in prompts)
    most = MAX_STREAM_BYTES // (4 * STREAM_COPIES * config.n_embd * (config.n_layer + 1))
    if n_tokens > most:
        raise InputError("prompts", f"The prompts have {n_tokens:,} tokens; at most {most:,} are read in this model.")


def answer_circuit(inquiry: Inquiry, progress: Progress) -> Answer:
    def read(ids: list[int]) -> TextPass:
        return TextPass(inquiry.gpt, ids, inquiry.head_mask)

    circuit = circuit_of(inquiry.values["prompts"], read, method=inquiry.values["method"], progress=progress)
    return circuit.with_texts(inquiry.loaded.tokenizer).to_dict()


def circuit_work(inquiry: Inquiry) -> Work:
    lengths = [len(row["prompt"]) for row in inquiry.values["prompts"]]
    described = layers(TYPICAL_HEADS * inquiry.loaded.config.n_layer / 2, lengths[0], lengths[0])
    return sum((pair_work(inquiry, length) for length in lengths), described)


def pair_work(inquiry: Inquiry, length: int) -> Work:
    """The work in ``find_circuit`` that is due to one pair of prompts, if about ``TYPICAL_HEADS`` are left."""
    config = inquiry.loaded.config
    n_layer, n_heads = config.n_layer, min(TYPICAL_HEADS, config.n_layer * config.n_head)
    work = layers(4 * n_layer, length)
    if inquiry.values["method"] == "exact":
        work += effects_work(config, length, SITES["z"], config.n_head)
    else:
        work += attribution_work(config, length)
        work += effects_work(config, length, SITES["z"], math.ceil(MAX_HEADS / n_layer))
    n_edges = len(WAYS) * n_heads * (n_heads - 1) / 2
    work += layers(n_layer * TYPICAL_TRIES, length)
    work += layers(n_edges / n_heads * n_layer / 3, length, n_heads) + Work(weights=n_edges * length**2)
    # What reaches each head's queries, keys and values is computed through half of the layers: to cut edges, then once
    # more without each edge that is left.
    streams = len(WAYS) * n_heads * n_layer / 2
    left = layers(streams, length, round(n_edges * TYPICAL_LEFT), CHOICES_AT_ONCE)
    return work + layers(streams * TYPICAL_TRIES, length) + left


CIRCUIT = Question(
    "circuit",
    "Which heads, and which edges between them, carry the difference between clean and corrupted prompts: a circuit "
    f"that loses at most {MAX_LOST:.0%} of the effect, found by patching heads and paths and pruning.",
    [
        PromptsField(
            "prompts",
            f"Up to {MAX_PAIRS} pairs: objects with `prompt`, `corrupted` (with as many tokens) and, optionally, the "
            "tokens `answer` and `wrong` that they lead to.",
            columns=("corrupted", "answer", "wrong"),
            required=("corrupted",),
        ),
        MODEL,
        Field(
            "method",
            "Patch every head (`exact`), or estimate all of them by attribution patching first and patch only the "
            f"{MAX_HEADS} that matter most (`attribution`), which is faster in a model with many heads.",
            HeadMethod,
            default="exact",
        ),
        HEAD_MASK,
    ],
    "Faithfulness first: how much of the effect is left with everything else ablated. Then the heads with the tokens "
    f"they read and promote, and the edges with what is lost without each. At most {MAX_HEADS} heads are considered.",
    CircuitAnswer,
    answer_circuit,
    circuit_work,
    check_circuit,
    less="fewer or shorter prompts",
    body_limit=BODY_LIMIT,
)
