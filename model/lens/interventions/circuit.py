"""Finding a circuit: the heads, and the edges between them, that carry the difference between pairs of prompts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar, get_args

import torch

from ...drawing.heat_map import Part
from ...errors import InputError, InvalidValue
from ...modules.head_tensors import Head
from ..answer import Answer, NotSent, TokenId, TokenIds, left_out_in_words, sent
from ..lens import Lens
from ..progress import Progress, ignore, part, parts
from ..prompts import LeftOut, Row, parse_rows
from ..question import Reads
from ..token_circuits import direct_logits
from .ablated_graph import Edge, Pairs, all_of, dangling, edges_between
from .criteria import check_criteria
from .patch_run import PatchRun, patch_run
from .patching import effects
from .reference import mean_by_position
from .sites import SITES

MAX_LOST = 0.1  # of the effect
MAX_HEADS = 32  # among which edges are measured: their number grows with its square
MAX_PAIRS = 100  # that are read together
MAX_TRIES = 100  # to remove heads, and then edges: more than a concentrated effect needs
N_PROMOTED = 5  # tokens named for each head
READING_PART = 0.1  # of the work, roughly

# "exact" ablates every head alone. "attribution" estimates this by attribution patching, and ablates only the
# ``MAX_HEADS`` heads for which the estimates are largest.
HeadMethod = Literal["exact", "attribution"]
# "resample": the context vectors of the pair's corrupted prompt (Chan et al. 2022). "mean": their mean over the
# corrupted prompts of all pairs, position by position, so that what a template has in common stays (Wang et al. 2023).
Ablation = Literal["resample", "mean"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class HeadInCircuit:
    layer: int
    head: int
    lost: Annotated[float, "The share of the effect that is lost if this head alone is ablated."]
    position: Annotated[
        int, "The position at which its output matters most, in the clean prompt of the first of `pairs`."
    ]
    minimality: Annotated[
        float,
        "The largest change of the share, over some subsets of the circuit's heads, if it is ablated besides the "
        "subset (Wang et al. 2023): near 0, the circuit does not need it.",
    ]
    lost_there: Annotated[float, "The share that is lost if it is ablated at this position only."]
    reads: Annotated[TokenId, "The token with the largest attention weight there."]
    key: Annotated[int, "The position of that token."]
    weight: float
    promoted: Annotated[
        TokenIds,
        "The tokens whose logits its output at that position directly raises most, the largest first.",
    ]


@dataclass(frozen=True)
class EdgeInCircuit:
    edge: Annotated[Edge, NotSent()]
    lost: Annotated[float, "The share of the effect that is lost if this edge alone is cut."]

    @property
    @sent
    def sender(self) -> Head:
        """``[layer, head]``."""
        return self.edge.sender

    @property
    @sent
    def receiver(self) -> Head | None:
        """``[layer, head]``, or null for the logits."""
        return self.edge.receiver

    @property
    @sent
    def way(self) -> str | None:
        """What the receiver computes from it: its queries, keys or values."""
        return self.edge.way


@dataclass(frozen=True)
class PairInCircuit:
    row: Annotated[int, "The index of the pair in `prompts`."]
    answer: TokenId
    wrong: TokenId
    clean: Annotated[float, "The logit of the answer minus that of the wrong token, in the clean run."]
    corrupted: Annotated[float, "The same in the corrupted run."]
    kept: float


@dataclass(frozen=True)
class FoundCircuit(Answer):
    """Faithfulness first: how much of the effect is left with everything else ablated. Then the heads with the
    tokens they read and promote, and the edges with what is lost without each. At most 32 heads are considered.
    """

    kept: Annotated[
        float,
        "Faithfulness: the share of the effect, the mean logit difference, that is left with everything else ablated: "
        "1 is the clean prompts, 0 the corrupted ones.",
    ]
    without_heads: Annotated[float, "The share left with all heads ablated."]
    incompleteness: Annotated[
        float,
        "The largest difference, over some subsets of the circuit's heads, between the shares that the circuit's heads "
        "and all heads keep without the subset (Wang et al. 2023): near 0, no head outside does the same.",
    ]
    heads: list[HeadInCircuit]
    edges: list[EdgeInCircuit]
    pairs: list[PairInCircuit]
    left_out: Annotated[list[LeftOut], "The pairs that have no effect to explain, and why."] = field(
        default_factory=list
    )

    def __str__(self) -> str:
        rows = [f"{head_name(each.edge.sender)} -> {receiver_name(each.edge)}: {each.lost:.3f}" for each in self.edges]
        left_out = left_out_in_words(self.left_out, len(self.pairs) + len(self.left_out))
        kept = f"{self.kept:.3f} of the effect kept; lost without each edge:"
        return "\n".join([*([left_out] if left_out else []), kept, *rows])

    @property
    def summary(self) -> str:
        return (
            f"{self.kept:.3f} of the effect is kept with {len(self.heads)} heads and {len(self.edges)} edges, "
            f"{self.without_heads:.3f} without any head."
        )

    def drawn(self) -> Iterator[Part]:
        for each in super().drawn():
            yield each._replace(value=self.edge_rows()) if each.name == "edges" else each

    def edge_rows(self) -> list[dict[str, Any]]:
        edges = [(head_name(each.edge.sender), receiver_name(each.edge), each.lost) for each in self.edges]
        return [{"sender": sender, "receiver": receiver, "lost": lost} for sender, receiver, lost in edges]


def circuit(
    lens: Lens,
    prompts: Annotated[
        Sequence[Row],
        Reads.ROWS,
        f"Up to {MAX_PAIRS} pairs: objects with `prompt`, `corrupted` (with as many tokens) and, optionally, the "
        "tokens `answer` and `wrong` that they lead to.",
    ],
    *,
    max_lost: float = MAX_LOST,
    method: Annotated[
        HeadMethod,
        "Patch every head (`exact`), or estimate all of them by attribution patching first and patch only the "
        f"{MAX_HEADS} that matter most (`attribution`), which is faster in a model with many heads.",
    ] = "exact",
    ablation: Annotated[
        Ablation,
        "What an ablated head's context vectors are replaced with: those of the pair's corrupted prompt (`resample`), "
        "or their mean over the corrupted prompts of all pairs, position by position (`mean`), for which all prompts "
        "must have the same number of tokens.",
    ] = "resample",
    progress: Progress = ignore,
) -> FoundCircuit:
    """Which heads, and which edges between them, carry the difference between clean and corrupted prompts: a
    circuit that loses at most 10% of the effect, found by patching heads and paths and pruning.

    See ``find_circuit``. A row is that of ``over_prompts``, with the column ``corrupted``. Pairs without an effect to
    explain are left out. Raises ``InputError`` if all are.
    """
    pairs = parse_rows(lens, prompts, ("corrupted", "answer", "wrong"), ("corrupted",))
    runs, left_out = dict[int, PatchRun](), list[LeftOut]()
    if ablation not in get_args(Ablation):
        raise InvalidValue("ablation", ablation, "'resample' or 'mean'")
    for index, pair in enumerate(pairs):
        texts = [lens.read(pair[name]) for name in ("prompt", "corrupted")]
        try:
            runs[index] = patch_run(*texts, answer=pair["answer"], wrong=pair["wrong"], direction="noise")
        except InputError as error:  # which only the model can tell, such as two prompts with the same answer
            left_out.append({"row": index, "error": str(error)})
        progress(READING_PART * (index + 1) / len(pairs))
    if not runs:
        raise InputError("prompts", f"No pair could be read. {left_out[0]['error'] if left_out else ''}".rstrip())
    if ablation == "mean":
        mean = mean_by_position([run.source for run in runs.values()])
        runs = {index: run._replace(mean=mean) for index, run in runs.items()}
    report = part(progress, READING_PART, 1)
    found = find_circuit(list(runs.values()), max_lost=max_lost, method=method, progress=report)
    kept = [replace(pair, row=row) for row, pair in zip(runs, found.pairs, strict=True)]
    return replace(found, pairs=kept, left_out=left_out)


def head_name(head: Head) -> str:
    return f"L{head[0]} H{head[1]}"


def receiver_name(edge: Edge) -> str:
    return "logits" if edge.receiver is None else f"{edge.way} of {head_name(edge.receiver)}"


@torch.no_grad()
def find_circuit(
    runs: Sequence[PatchRun],
    *,
    max_lost: float = MAX_LOST,
    method: HeadMethod = "exact",
    progress: Progress = ignore,
) -> FoundCircuit:
    """Find few heads and edges that keep the effect: the logit difference between clean and corrupted prompts.

    ``runs`` are pairs of prompts, from ``patch_run`` in the direction "noise"; they may differ in length, and shares
    are those of the mean logit difference.

    1. Every head is ablated alone: its context vectors at all positions are those of the corrupted prompt (Vig et al.
       2020, resample ablation as in Chan et al. 2022), or ``run.mean``, if it is given. With the ``method``
       "attribution", only the ``MAX_HEADS`` heads that matter most by attribution patching (Nanda 2023) are, and the
       rest count as less important than these.
    2. Starting with the least important, heads are ablated together while the effect changes by at most half of
       ``max_lost``.
    3. Among the heads that are left (at most ``MAX_HEADS``), every edge into the queries, keys or values of a later
       head, or into the logits, is cut alone (path patching, Wang et al. 2023, Goldowsky-Dill et al. 2023).
    4. Starting with the least important, edges are cut together while the effect changes by at most ``max_lost``, as in
       the automatic discovery of Conmy et al. 2023.

    Where an edge is cut, the receiver gets the sender's output in the corrupted prompt; what it gets otherwise is that
    of the sender in the circuit. Embeddings are always those of the clean prompt, and MLPs are computed from what
    reaches them on the way to a receiver, so they are part of the edges: a path between two heads is patched through
    the MLPs between, and not through other heads, as in Wang et al. 2023. Pruning is greedy, with at most ``MAX_TRIES``
    tries, and other circuits may keep the effect as well. The effect may change in either direction: a head that works
    against the answer stays.

    Raises ``InputError`` if the mean difference of all pairs vanishes, and for an unknown method.
    """
    if method not in get_args(HeadMethod):
        raise InvalidValue("method", method, "'exact' or 'attribution'")
    pairs = Pairs(runs)
    order, patched = list[Head](), pairs.every_head()
    if method == "attribution":
        estimates = pairs.estimate_lost_alone(part(progress, 0, 0.1))
        by_estimate = sorted(patched, key=lambda head: abs(estimates[head]))
        order, patched = by_estimate[:-MAX_HEADS], by_estimate[-MAX_HEADS:]
    lost = pairs.lost_alone(patched, part(progress, 0.1 if order else 0, 0.25))
    order += sorted(patched, key=lambda head: abs(lost[head]))

    def heads_suffice(removed: set[Head], progress: Progress) -> bool:
        return abs(1 - pairs.without_heads(removed, progress)) <= max_lost / 2

    removed = prune(order, heads_suffice, part(progress, 0.25, 0.4))
    heads = sorted([head for head in order if head not in removed][-MAX_HEADS:])
    if unmeasured := [head for head in heads if head not in lost]:  # that could not be removed, whatever was estimated
        lost |= pairs.lost_alone(unmeasured, ignore)
    edges = edges_between(heads)
    start = float(pairs.with_edges(edges, all_of(edges)))
    losses = start - pairs.without_each_edge(heads, part(progress, 0.4, 0.6))
    allowed = max(max_lost, abs(1 - start))

    def edges_suffice(cut: set[Edge], progress: Progress) -> bool:
        return abs(1 - float(pairs.with_edges(edges, all_of(edges, cut), progress))) <= allowed

    by_loss = [edges[i] for i in losses.abs().argsort(stable=True).tolist()]
    cut = prune(by_loss, edges_suffice, part(progress, 0.6, 0.8))
    cut |= dangling([edge for edge in edges if edge not in cut])
    left = [edge for edge in edges if edge not in cut]
    by_pair = [graph.share(graph.with_edges(left, all_of(left))) for graph in pairs.graphs]
    whole = float(pairs.with_edges(left, all_of(left)))
    losses = whole - pairs.with_edges(left, ~torch.eye(len(left), dtype=torch.bool), part(progress, 0.8, 0.85))
    heads = sorted({edge.sender for edge in left})
    criteria = check_criteria(pairs, heads, part(progress, 0.85, 0.95))
    steps = parts(progress, len(heads), 0.95, 1)
    return FoundCircuit(
        kept=whole,
        without_heads=pairs.without_heads(set(order)),
        incompleteness=criteria.incompleteness,
        heads=[
            describe(runs[0], head, lost[head], criteria.minimality[head], report)
            for head, report in zip(heads, steps, strict=True)
        ],
        edges=[EdgeInCircuit(edge, loss) for edge, loss in zip(left, losses.tolist(), strict=True)],
        pairs=[
            PairInCircuit(row, run.answer, run.wrong, run.clean, run.corrupted, float(share))
            for row, (run, share) in enumerate(zip(runs, by_pair, strict=True))
            if run.answer is not None and run.wrong is not None
        ],
    )


def prune(order: Sequence[Item], suffices: Callable[[set[Item], Progress], bool], progress: Progress) -> set[Item]:
    """The items that can be removed, in this order, while the rest ``suffices``.

    Several are tried at once, half as many after each failure; after ``MAX_TRIES`` the rest stays.
    """
    removed: set[Item] = set()
    done, at_once = 0, max(1, len(order) // 2)
    for tried in range(MAX_TRIES):
        if done == len(order):
            break
        some = order[done : done + at_once]
        here = max(done / len(order), tried / MAX_TRIES)
        if suffices(removed.union(some), part(progress, here, here)):
            removed.update(some)
            done, at_once = done + len(some), 2 * at_once
        elif len(some) > 1:
            at_once = len(some) // 2
        else:
            done += 1
    progress(1)
    return removed


def describe(run: PatchRun, head: Head, lost: float, minimality: float, progress: Progress) -> HeadInCircuit:
    """Where a head matters in a pair, what it reads there, and what it writes."""
    text, (layer, index) = run.into, head
    T = len(text.ids)
    units = torch.tensor([(layer, index, position) for position in range(T)])
    there = (run.clean - effects(run, SITES["z"], units, progress)) / (run.clean - run.corrupted)
    position = int(there.abs().argmax())
    weights = text.attention(layer, heads=[index])[0, position]
    block, context = text.block(layer), text.context(layer)[0, position]
    part = context[index] @ block.attn.matrices().W_O[index]
    written = block.attention_adds(part, block.attn.output(context))
    promoted = direct_logits(text.gpt, written).topk(min(N_PROMOTED, text.config.vocab_size)).indices
    key = int(weights.argmax())
    return HeadInCircuit(
        layer,
        index,
        lost,
        position,
        minimality,
        float(there[position]),
        reads=text.ids[key],
        key=key,
        weight=float(weights[key]),
        promoted=promoted.tolist(),
    )
