"""Finding a circuit: the nodes, and the edges between them, that carry the difference between pairs of prompts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar, get_args

import torch
from torch import Tensor

from ...drawing.heat_map import Part
from ...errors import InputError, InvalidValue, counted
from ..answer import Answer, NotSent, SentAs, TokenId, TokenIds, left_out_in_words, sent
from ..lens import Lens
from ..progress import Progress, ignore, part, parts
from ..prompts import LeftOut, Row, parse_rows
from ..question import Reads
from ..text_pass import TextPass
from ..token_circuits import direct_logits
from .ablated_graph import OUTPUTS, Edge, Graph, Node, Pairs, all_of, dangling, order
from .criteria import check_criteria
from .mlp_nodes import MLPGraph
from .patch_run import PatchRun, patch_run
from .patching import effects
from .paths import Route
from .reference import contexts_of
from .sites import SITES, Site, layer_activations

MAX_LOST = 0.1  # of the effect
MAX_NODES = 32  # among which edges are measured: their number grows with its square
MAX_PAIRS = 100  # that are read together
MAX_TRIES = 100  # to remove nodes, and then edges: more than a concentrated effect needs
N_PROMOTED = 5  # tokens named for each node
MAX_SHOWN_EDGES = 60  # those that matter most, of a circuit that is not found yet
READING_PART = 0.1  # of the work, roughly

# "exact" ablates every node alone. "attribution" estimates this by attribution patching, and ablates only the
# ``MAX_NODES`` nodes for which the estimates are largest.
NodeMethod = Literal["exact", "attribution"]
# "resample": what a node writes in the pair's corrupted prompt (Chan et al. 2022). "mean": the mean of this over the
# corrupted prompts of all pairs, position by position, so that what a template has in common stays (Wang et al. 2023).
# "zero": zeros, which also remove any constant part that later layers rely on.
Ablation = Literal["resample", "mean", "zero"]
EDGE_IN_WORDS: dict[Route, str] = {
    "mlps": "An edge goes through the MLPs between its ends, which are recomputed, and not through other heads.",
    "direct": "An edge is the direct path in the residual stream.",
}
Item = TypeVar("Item")
# Called with what is left of a circuit, in JSON's types, whenever that has changed.
SoFar = Callable[[Mapping[str, Any]], object]


def unseen(_left: Mapping[str, Any]) -> None:
    """A ``SoFar`` that does nothing."""


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
        "The largest change of the share, over some subsets of the circuit's nodes, if it is ablated besides the "
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
class MLPInCircuit:
    layer: int
    lost: Annotated[float, "The share of the effect that is lost if this MLP alone is ablated."]
    position: Annotated[int, "The position at which its output matters most, as for a head."]
    minimality: Annotated[float, "As for a head."]
    lost_there: Annotated[float, "The share that is lost if it is ablated at this position only."]
    promoted: TokenIds


@dataclass(frozen=True)
class EdgeInCircuit:
    edge: Annotated[Edge, NotSent()]
    lost: Annotated[float, "The share of the effect that is lost if this edge alone is cut."]

    @property
    @sent
    def sender(self) -> Node:
        """``[layer, head]``, or ``[layer, null]`` for the layer's MLP."""
        return self.edge.sender

    @property
    @sent
    def receiver(self) -> Node | None:
        """The same, or null for the logits."""
        return self.edge.receiver

    @property
    @sent
    def way(self) -> str | None:
        """What a head computes from it: its queries, keys or values; null for other receivers."""
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
    """Faithfulness first: how much of the effect is left with everything else ablated. Then the heads and, as nodes if
    they were asked for, the MLPs, with the tokens they read and promote, and the edges with what is lost without each.
    At most 32 nodes are considered.
    """

    kept: Annotated[
        float,
        "Faithfulness: the share of the effect, the mean logit difference, that is left with everything else ablated: "
        "1 is the clean prompts, 0 the corrupted ones.",
    ]
    without_heads: Annotated[float, "The share left with all heads, and MLPs if they are nodes, ablated."]
    incompleteness: Annotated[
        float,
        "The largest difference, over some subsets of the circuit's nodes, between the shares that the circuit's nodes "
        "and all nodes keep without the subset (Wang et al. 2023): near 0, no node outside does the same.",
    ]
    route: Annotated[
        Route,
        SentAs(str),
        "What an edge is. `mlps`: the path through the MLPs between its ends, which are recomputed, and not through "
        "other heads (Wang et al. 2023). `direct`, where MLPs are nodes: the direct path in the residual stream.",
    ]
    heads: list[HeadInCircuit]
    mlps: Annotated[list[MLPInCircuit], "Empty unless MLPs are nodes."]
    edges: list[EdgeInCircuit]
    pairs: list[PairInCircuit]
    left_out: Annotated[list[LeftOut], "The pairs that have no effect to explain, and why."] = field(
        default_factory=list
    )

    def __str__(self) -> str:
        rows = [f"{node_name(each.edge.sender)} -> {receiver_name(each.edge)}: {each.lost:.3f}" for each in self.edges]
        left_out = left_out_in_words(self.left_out, len(self.pairs) + len(self.left_out))
        kept = f"{self.kept:.3f} of the effect kept. {EDGE_IN_WORDS[self.route]} Lost without each:"
        return "\n".join([*([left_out] if left_out else []), kept, *rows])

    @property
    def summary(self) -> str:
        mlps = [counted(len(self.mlps), "MLP")] if self.route == "direct" else []
        parts = [counted(len(self.heads), "head"), *mlps]
        edges, node = counted(len(self.edges), "edge"), "node" if mlps else "head"
        return (
            f"{self.kept:.3f} of the effect is kept with {', '.join(parts)} and {edges}, "
            f"{self.without_heads:.3f} without any {node}. {EDGE_IN_WORDS[self.route]}"
        )

    def drawn(self) -> Iterator[Part]:
        for each in super().drawn():
            yield each._replace(value=self.edge_rows()) if each.name == "edges" else each

    def edge_rows(self) -> list[dict[str, Any]]:
        edges = [(node_name(each.edge.sender), receiver_name(each.edge), each.lost) for each in self.edges]
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
        NodeMethod,
        "Patch every head (`exact`), or estimate all of them by attribution patching first and patch only the "
        f"{MAX_NODES} that matter most (`attribution`), which is faster in a model with many heads.",
    ] = "exact",
    ablation: Annotated[
        Ablation,
        "What an ablated head's context vectors are replaced with: those of the pair's corrupted prompt (`resample`), "
        "their mean over the corrupted prompts of all pairs, position by position (`mean`), for which all prompts must "
        "have the same number of tokens, or zeros (`zero`). Of an ablated MLP, its output is replaced.",
    ] = "resample",
    mlps: Annotated[
        bool,
        "Each layer's MLP is a node beside the heads, and an edge is the direct path between two nodes. Otherwise MLPs "
        "are never ablated, and belong to the edges.",
    ] = False,
    progress: Progress = ignore,
    so_far: SoFar = unseen,
) -> FoundCircuit:
    """Which heads, MLPs if they are nodes, and edges between them carry the difference between clean and corrupted
    prompts: a circuit that loses at most 10% of the effect, found by patching nodes and paths and pruning.

    See ``find_circuit``. A row is that of ``over_prompts``, with the column ``corrupted``. Pairs without an effect to
    explain are left out. Raises ``InputError`` if all are.
    """
    pairs = parse_rows(lens, prompts, ("corrupted", "answer", "wrong"), ("corrupted",))
    runs, left_out = dict[int, PatchRun](), list[LeftOut]()
    if ablation not in get_args(Ablation):
        raise InvalidValue("ablation", ablation, "'resample', 'mean' or 'zero'")
    for index, pair in enumerate(pairs):
        texts = [lens.read(pair[name]) for name in ("prompt", "corrupted")]
        try:
            runs[index] = patch_run(*texts, answer=pair["answer"], wrong=pair["wrong"], direction="noise")
        except InputError as error:  # which only the model can tell, such as two prompts with the same answer
            left_out.append({"row": index, "error": str(error)})
        progress(READING_PART * (index + 1) / len(pairs))
    if not runs:
        raise InputError("prompts", f"No pair could be read. {left_out[0]['error'] if left_out else ''}".rstrip())
    if ablation != "resample":
        instead = ablated(ablation, [run.source for run in runs.values()], [SITES["z"], *([OUTPUTS] if mlps else [])])
        replaced = zip(runs.items(), instead, strict=True)
        runs = {index: run._replace(instead=by_site) for (index, run), by_site in replaced}
    report = part(progress, READING_PART, 1)
    found = find_circuit(
        list(runs.values()), max_lost=max_lost, method=method, mlps=mlps, progress=report, so_far=so_far
    )
    kept = [replace(pair, row=row) for row, pair in zip(runs, found.pairs, strict=True)]
    return replace(found, pairs=kept, left_out=left_out)


@torch.no_grad()
def ablated(ablation: Ablation, texts: Sequence[TextPass], sites: Sequence[Site]) -> list[dict[str, Tensor]]:
    """Of each text, what replaces the activations ``(n_layer, T, ...)`` of some sites: zeros, or the mean of all texts.

    Raises ``InputError`` for a mean unless all texts have the same number of tokens.
    """

    def activations(text: TextPass, site: Site) -> Tensor:
        if site is SITES["z"]:
            return contexts_of(text)
        return torch.cat([layer_activations(text, layer, [site])[0] for layer in range(text.config.n_layer)])

    if ablation == "zero":
        return [{site.name: torch.zeros_like(activations(text, site)) for site in sites} for text in texts]
    if len(lengths := sorted({len(text.ids) for text in texts})) > 1:
        found = " and ".join(map(str, lengths))
        raise InputError("ablation", f"A mean by position needs prompts of one length in tokens, found {found}.")
    means = {site.name: sum(activations(text, site).double() for text in texts) / len(texts) for site in sites}
    return [{name: torch.as_tensor(mean).float() for name, mean in means.items()}] * len(texts)


def node_name(node: Node) -> str:
    layer, head = node
    return f"L{layer} MLP" if head is None else f"L{layer} H{head}"


def receiver_name(edge: Edge) -> str:
    if edge.receiver is None:
        return "logits"
    return node_name(edge.receiver) if edge.way is None else f"{edge.way} of {node_name(edge.receiver)}"


@torch.no_grad()
def find_circuit(
    runs: Sequence[PatchRun],
    *,
    max_lost: float = MAX_LOST,
    method: NodeMethod = "exact",
    mlps: bool = False,
    progress: Progress = ignore,
    so_far: SoFar = unseen,
) -> FoundCircuit:
    """Find few nodes and edges that keep the effect: the logit difference between clean and corrupted prompts.

    ``runs`` are pairs of prompts, from ``patch_run`` in the direction "noise"; they may differ in length, and shares
    are those of the mean logit difference.

    1. Every head is ablated alone: its context vectors at all positions are those of the corrupted prompt (Vig et al.
       2020, resample ablation as in Chan et al. 2022), or ``run.instead``, if it is given; and with ``mlps`` every MLP,
       whose output is. With the ``method`` "attribution", only the ``MAX_NODES`` nodes that matter most by attribution
       patching (Nanda 2023) are, and the rest count as less important than these.
    2. Starting with the least important, nodes are ablated together while the effect changes by at most half of
       ``max_lost``.
    3. Among the nodes that are left (at most ``MAX_NODES``), every edge into the queries, keys or values of a later
       head, into a later MLP, or into the logits, is cut alone (path patching, Wang et al. 2023, Goldowsky-Dill et al.
       2023).
    4. Starting with the least important, edges are cut together while the effect changes by at most ``max_lost``, as in
       the automatic discovery of Conmy et al. 2023.

    Where an edge is cut, the receiver gets what the sender writes if it is ablated; what it gets otherwise is that of
    the sender in the circuit. Embeddings are always those of the clean prompt. Unless MLPs are nodes, they are computed
    from what reaches them on the way to a receiver, so they are part of the edges: a path between two heads is patched
    through the MLPs between, and not through other heads, as in Wang et al. 2023. If they are nodes, an edge is the
    direct path in the residual stream, as in Conmy et al. 2023. Pruning is greedy, with at most ``MAX_TRIES`` tries,
    and other circuits may keep the effect as well. The effect may change in either direction: a node that works against
    the answer stays. ``so_far`` gets what is left from the time on at which at most ``MAX_NODES`` nodes are.

    Raises ``InputError`` if the mean difference of all pairs vanishes, and for an unknown method.
    """
    if method not in get_args(NodeMethod):
        raise InvalidValue("method", method, "'exact' or 'attribution'")
    pairs = Pairs(runs, MLPGraph if mlps else Graph)
    by_importance, patched = list[Node](), pairs.nodes()
    if method == "attribution":
        estimates = pairs.estimate_lost_alone(part(progress, 0, 0.1))
        by_estimate = sorted(patched, key=lambda node: abs(estimates[node]))
        by_importance, patched = by_estimate[:-MAX_NODES], by_estimate[-MAX_NODES:]
    lost = pairs.lost_alone(patched, part(progress, 0.1 if by_importance else 0, 0.25))
    by_importance += sorted(patched, key=lambda node: abs(lost[node]))

    def nodes_suffice(removed: set[Node], progress: Progress) -> bool:
        suffices = abs(1 - pairs.without(removed, progress)) <= max_lost / 2
        if suffices and len(kept := [node for node in by_importance if node not in removed]) <= MAX_NODES:
            so_far(left_of(kept, lost))
        return suffices

    removed = prune(by_importance, nodes_suffice, part(progress, 0.25, 0.4))
    nodes = sorted([node for node in by_importance if node not in removed][-MAX_NODES:], key=order)
    if unmeasured := [node for node in nodes if node not in lost]:  # that could not be removed, whatever was estimated
        lost |= pairs.lost_alone(unmeasured, ignore)
    edges = pairs.edges_between(nodes)
    start = float(pairs.with_edges(edges, all_of(edges)))
    losses = start - pairs.without_each_edge(nodes, part(progress, 0.4, 0.6))
    allowed = max(max_lost, abs(1 - start))

    def edges_suffice(cut: set[Edge], progress: Progress) -> bool:
        suffices = abs(1 - float(pairs.with_edges(edges, all_of(edges, cut), progress))) <= allowed
        if suffices:
            so_far(left_of(nodes, lost, {edge: loss for edge, loss in by_edge.items() if edge not in cut}))
        return suffices

    by_edge = dict(zip(edges, losses.tolist(), strict=True))
    so_far(left_of(nodes, lost, by_edge))
    by_loss = [edges[i] for i in losses.abs().argsort(stable=True).tolist()]
    cut = prune(by_loss, edges_suffice, part(progress, 0.6, 0.8))
    cut |= dangling([edge for edge in edges if edge not in cut])
    left = [edge for edge in edges if edge not in cut]
    by_pair = [graph.share(graph.with_edges(left, all_of(left))) for graph in pairs.graphs]
    whole = float(pairs.with_edges(left, all_of(left)))
    losses = whole - pairs.with_edges(left, ~torch.eye(len(left), dtype=torch.bool), part(progress, 0.8, 0.85))
    nodes = sorted({edge.sender for edge in left}, key=order)
    criteria = check_criteria(pairs, nodes, part(progress, 0.85, 0.95))
    found = {
        node: described(runs[0], node, report, lost=lost[node], minimality=criteria.minimality[node])
        for node, report in zip(nodes, parts(progress, len(nodes), 0.95, 1), strict=True)
    }
    return FoundCircuit(
        kept=whole,
        without_heads=pairs.without(set(by_importance)),
        incompleteness=criteria.incompleteness,
        route=pairs.graphs[0].route,
        heads=[each for each in found.values() if isinstance(each, HeadInCircuit)],
        mlps=[each for each in found.values() if isinstance(each, MLPInCircuit)],
        edges=[EdgeInCircuit(edge, loss) for edge, loss in zip(left, losses.tolist(), strict=True)],
        pairs=[
            PairInCircuit(row, run.answer, run.wrong, run.clean, run.corrupted, float(share))
            for row, (run, share) in enumerate(zip(runs, by_pair, strict=True))
            if run.answer is not None and run.wrong is not None
        ],
    )


def left_of(
    nodes: Sequence[Node], lost: Mapping[Node, float], edges: Mapping[Edge, float] | None = None
) -> dict[str, Any]:
    """What is left of a circuit: its nodes with what is ``lost`` without each, the number of its edges once they are
    measured, and those of them that matter most."""
    strongest = sorted((edges or {}).items(), key=lambda item: -abs(item[1]))[:MAX_SHOWN_EDGES]
    return {
        "nodes": [
            {"layer": node[0], "head": node[1], "lost": lost[node]} for node in sorted(nodes, key=order) if node in lost
        ],
        "n_edges": None if edges is None else len(edges),
        "edges": [{**edge._asdict(), "lost": loss} for edge, loss in strongest],
    }


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


def described(run: PatchRun, node: Node, progress: Progress, **measured: Any) -> HeadInCircuit | MLPInCircuit:
    """Where a node matters in a pair, what it reads there, and what it writes; and what was ``measured`` of it."""
    text, (layer, head) = run.into, node
    site = OUTPUTS if head is None else SITES["z"]
    units = torch.tensor([(layer, head or 0, position) for position in range(len(text.ids))])
    there = (run.clean - effects(run, site, units, progress)) / (run.clean - run.corrupted)
    position = int(there.abs().argmax())
    if head is None:
        written = layer_activations(text, layer, [site])[0][0, position]
    else:
        block, context = text.block(layer), text.context(layer)[0, position]
        written = block.attention_adds(context[head] @ block.attn.matrices().W_O[head], block.attn.output(context))
    promoted = direct_logits(text.gpt, written).topk(min(N_PROMOTED, text.config.vocab_size)).indices.tolist()
    place: dict[str, Any] = {"position": position, "lost_there": float(there[position]), "promoted": promoted}
    if head is None:
        return MLPInCircuit(layer, **measured, **place)
    weights = text.attention(layer, heads=[head])[0, position]
    key = int(weights.argmax())
    reads: dict[str, Any] = {"reads": text.ids[key], "key": key, "weight": float(weights[key])}
    return HeadInCircuit(layer, head, **measured, **place, **reads)
