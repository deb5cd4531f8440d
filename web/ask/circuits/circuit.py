"""The question of which heads and edges carry the difference between pairs of prompts."""

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.interventions.circuit import MAX_HEADS, MAX_LOST, HeadMethod, circuit_of
from model.lens.interventions.patching import check_prompts
from model.lens.progress import Progress
from model.lens.prompts import in_row
from model.lens.text_pass import TextPass

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..prompts import BODY_LIMIT, FIELDS, PromptsField
from ..question import HEAD_MASK, MODEL, Field, ModelAnswer, NamedToken, Question

MAX_PAIRS = 100
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


CIRCUIT = Question(
    "circuit",
    "Which heads, and which edges between them, carry the difference between clean and corrupted prompts: a circuit "
    f"that loses at most {MAX_LOST:.0%} of the effect, found by patching heads and paths and pruning.",
    [
        PromptsField(
            "prompts",
            f"Up to {MAX_PAIRS} pairs: objects with `prompt`, `corrupted` (with as many tokens) and, optionally, the "
            "tokens `answer` and `wrong` that they lead to.",
            columns=FIELDS,
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
    check_circuit,
    less="fewer or shorter prompts",
    body_limit=BODY_LIMIT,
)
