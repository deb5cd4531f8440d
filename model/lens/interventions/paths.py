"""Path patching: what changes in a head if it does not see the output of an earlier head."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, Literal, cast, get_args

import torch
from torch import Tensor

from ...config import GPTConfig, check_int
from ...drawing.heat_map import Part
from ...errors import InputError
from ...gpt import Block
from ...modules.head_tensors import Head
from ..answer import Answer, NotSent, PerHead, SentAs, sent
from ..composition import WAYS, Way
from ..progress import Progress, ignore, part
from ..question import AnswerToken, HeadIndex, Layer, PatchDirection, Reads, Within, WrongToken
from ..text_pass import Edit, Text, TextPass, heads_by_layer
from .patch_run import check_prompts, patch_run
from .patching import Differences, PairContent, about
from .reference import HeadReplacement, Method, Reference, ReferenceSet, contexts_of, read_reference, replacement

# From an earlier head to a later one: directly through the residual stream; also through the MLPs between, with all
# other heads as they were, the route of Wang et al. 2023; or also through the heads between.
Route = Literal["direct", "mlps", "every"]
ROUTES: tuple[Route, ...] = get_args(Route)
IN_WORDS: dict[Route, str] = {
    "direct": "the direct path",
    "mlps": "the path with MLPs recomputed and heads frozen",
    "every": "all paths",
}
Into = Literal[Way, "logits"]  # what a path leads into: the queries, keys or values of heads, or the logits
INTO: tuple[Into, ...] = (*WAYS, "logits")


def as_family(parts: Iterator[Part], family: str) -> Iterator[Part]:
    """Parts whose tables are on one scale, unless they are on that of another family."""
    return (each._replace(family=each.family or family) if isinstance(each.value, Tensor) else each for each in parts)


PerWay = dict[Way, PerHead]  # [earlier layer][earlier head]
PerInto = dict[Into, PerHead]


class PatchedPaths(PairContent):
    """The logit differences with a path patched, normalised: 0 is the corrupted prompt, 1 the clean one."""

    receivers: Annotated[list[Head], "The heads that paths lead into, each as `[layer, head]`; none for the logits."]
    direct: Annotated[PerInto, "By the direct path alone."]
    mlps: Annotated[PerInto, "MLPs are recomputed, and all other heads frozen (Wang et al. 2022)."]
    every: Annotated[PerInto, "By all paths, also through other heads."]


@dataclass(frozen=True)
class PathPatching(Differences):
    """The logit difference with the path from each earlier head into the receivers patched: 0 is corrupted, 1 is clean.

    Paths lead into heads, the last of which is in layer ``L``, or, without ``receivers``, into the logits, where ``L``
    is the number of layers. ``effects[route][way]`` ``(L, n_head)`` has the differences themselves, in nats.
    """

    effects: Annotated[
        dict[Route, PerInto], NotSent(), "The differences before normalisation, by `direct`, `mlps` and `every`."
    ]
    receivers: Annotated[list[Head], "The heads that paths lead into; none for the logits."] = field(
        default_factory=list
    )

    @property
    @sent
    def direct(self) -> PerInto:
        """By the direct path alone, for q, k and v, or for "logits"."""
        return self.share("direct")

    @property
    @sent
    def mlps(self) -> PerInto:
        """With MLPs recomputed, and all other heads frozen (Wang et al. 2022)."""
        return self.share("mlps")

    @property
    @sent
    def every(self) -> PerInto:
        """By all paths, also through other heads."""
        return self.share("every")

    def share(self, route: Route) -> PerInto:
        return {into: self.restored(each) for into, each in self.effects[route].items()}

    @property
    def summary(self) -> str:
        grids = {
            f"{IN_WORDS[route]} into {into} from": each for route in ROUTES for into, each in self.share(route).items()
        }
        grid = torch.stack(list(grids.values()))
        said = [self.most_moved(grid, list(grids), "n_layer", "n_head")] if grid.numel() else []
        return " ".join([super().summary, *said])

    def drawn(self) -> Iterator[Part]:
        return as_family(super().drawn(), "restored")

    def content(self) -> PatchedPaths:
        routes = {"direct": self.direct, "mlps": self.mlps, "every": self.every}
        return cast(PatchedPaths, {**self.about(), "receivers": self.receivers, **routes})


@dataclass(frozen=True)
class Cuts(Answer):
    """For each earlier layer and head, how much of the attention moves when its path into the queries or the keys
    is cut, and how much of the output changes when it is cut from the values. With ``corrupted``, also the effect of
    each path on the answer (path patching).

    The effect of cutting one path at a time into a head of layer ``L``: ``(L, n_head)`` over the earlier heads.

    ``moved[route][way]`` is between 0 and 1 for the ways "q" and "k": the attention weight that moves from some keys to
    others, averaged over all queries except the first, which has only one key. For "v" it is the norm of the change in
    the head's output divided by the norm of that output, averaged over all positions.
    """

    layer: int
    head: int
    method: Annotated[Method, SentAs(str)]
    reference: ReferenceSet | None
    moved: Annotated[dict[Route, PerWay], NotSent(), "The same as `direct`, `mlps` and `every`, by those names."]
    patched: Annotated[
        PathPatching | None,
        SentAs(PatchedPaths | None),
        "If `corrupted` is given: the effect of each path on the answer, with the earlier head's output taken from the "
        "other prompt.",
    ] = None

    @property
    def summary(self) -> str:
        if not self.layer:
            return "No head is earlier."
        return f"Most moves without {'; '.join(f'{way} {self.peak(each)}' for way, each in self.every.items())}."

    def drawn(self) -> Iterator[Part]:
        return as_family(super().drawn(), "paths")

    @property
    @sent
    def direct(self) -> PerWay:
        """``[earlier layer][earlier head]`` for q, k and v: only the direct path in the residual stream is cut."""
        return self.moved["direct"]

    @property
    @sent
    def mlps(self) -> PerWay:
        """The paths through MLPs are cut, too: all other heads are as they were (Wang et al. 2023)."""
        return self.moved["mlps"]

    @property
    @sent
    def every(self) -> PerWay:
        """All paths are cut, including those through the layers between."""
        return self.moved["every"]


def paths(
    text: TextPass,
    layer: Layer,
    head: HeadIndex,
    *,
    method: HeadReplacement = "mean",
    reference: Reference = None,
    corrupted: Annotated[
        Text | None,
        Reads.TEXT,
        "Another prompt with as many tokens, which leads to a different answer. The earlier head's output is then "
        "taken from it, and the effect on the answer is measured.",
    ] = None,
    answer: AnswerToken = None,
    wrong: WrongToken = None,
    direction: PatchDirection = "denoise",
    progress: Progress = ignore,
) -> Cuts:
    """How a head changes if it does not see the output of one earlier head.

    See ``cut_paths``; with ``corrupted``, also the effect of each path on the answer (see ``patch_paths``).
    """
    ids = None if corrupted is None else text.source.parse(corrupted)
    check_other_prompt(text.ids, ids, method=method, reference=reference, answer=answer, wrong=wrong)
    if corrupted is None:
        return cut_paths(text, layer, head, method=method, reference=reference, progress=progress)
    other = text.read(corrupted)
    prompts: dict[str, Any] = {"answer": answer, "wrong": wrong, "direction": direction}
    patched = patch_paths(text, other, layer, head, **prompts, progress=part(progress, 0, 0.5))
    cuts = cut_paths(
        text, layer, head, method="resample", reference=contexts_of(other), progress=part(progress, 0.5, 1)
    )
    return replace(cuts, reference=ReferenceSet("the corrupted prompt", 1, len(other.ids)), patched=patched)


def check_other_prompt(
    ids: Sequence[int],
    corrupted: Sequence[int] | None,
    *,
    method: str,
    reference: object,
    answer: object,
    wrong: object,
) -> None:
    """Raise ``InputError`` unless the options of ``paths`` fit the token ids of the prompts."""
    if corrupted is None:
        for name, token in (("answer", answer), ("wrong", wrong)):
            if token is not None:
                raise InputError(name, f"{name} needs corrupted, the other prompt of path patching.")
        return
    check_prompts(ids, corrupted)
    if method != "mean" or reference is not None:
        raise InputError("method", "With corrupted, the earlier head's output is that of the corrupted prompt.")


@torch.no_grad()
def cut_paths(
    text: TextPass,
    layer: int,
    head: int,
    *,
    method: Method = "mean",
    reference: Reference = None,
    progress: Progress = ignore,
) -> Cuts:
    """Cut the path from each earlier head into the queries, keys or values of one head, and measure the change there.

    This is path patching (Wang et al. 2023, Goldowsky-Dill et al. 2023): the earlier head's context vectors are
    replaced as in ``knockout``, with ``method`` and ``reference``, by default by their mean over a reference set. The
    rest of the head, such as its queries when its keys are cut, stays unchanged. On the "direct" route, only the
    earlier head's own output changes in the residual stream that the head reads. On the route "mlps", that of Wang et
    al., the MLPs between are recomputed, and all other heads are as they were. On the "every" route, the heads between
    are recomputed too. Raises
    ``InputError`` if there is no such head, or for a method or reference that does not fit.
    """
    text.check_head(layer, head)
    contexts, read = read_reference(text, method, reference)
    plain = parts_of(text, layer, head, text.stream[layer])
    weights = head_weights(text, layer, plain["q"], plain["k"])
    block = text.block(layer)  # the division in a norm after attention cancels in what is compared
    W_O = block.attention_adds(block.attn.matrices().W_O[head])  # (head_dim, C)
    output = weights @ plain["v"] @ W_O
    n_queries = max(len(text.ids) - 1, 1)
    moved: dict[Route, dict[Way, Tensor]] = {}
    for index, route in enumerate(ROUTES):
        moved[route] = {way: torch.zeros(layer, text.config.n_head) for way in WAYS}
        for earlier, heads, x in without_each(text, layer, route, method, contexts):
            cut = parts_of(text, layer, head, x)
            pairs: dict[Way, tuple[Tensor, Tensor]] = {"q": (cut["q"], plain["k"]), "k": (plain["q"], cut["k"])}
            for way, (query, key) in pairs.items():
                change = (head_weights(text, layer, query, key) - weights).abs().sum((-1, -2))
                moved[route][way][earlier, heads] = (change / (2 * n_queries)).cpu()
            change = (weights @ cut["v"] @ W_O - output).norm(dim=-1) / output.norm(dim=-1).clamp_min(1e-12)
            moved[route]["v"][earlier, heads] = change.mean(-1).cpu()
            progress((index + (earlier + 1) / layer) / len(ROUTES))
    return Cuts(layer, head, method, read, moved)


@torch.no_grad()
def patch_paths(
    clean: TextPass,
    corrupted: Annotated[TextPass, Reads.TEXT, "A prompt that leads to another answer."],
    layer: Annotated[int | None, Within(below="n_layer"), "The layer of the head that paths lead into."] = None,
    head: Annotated[int | None, Within(below="n_head"), "That head."] = None,
    *,
    receivers: Annotated[
        Sequence[Head] | None,
        Reads.HEADS,
        "Several heads that paths lead into together, each as `[layer, head]`. Without any head, paths lead into the "
        "logits.",
    ] = None,
    answer: AnswerToken = None,
    wrong: WrongToken = None,
    direction: PatchDirection = "denoise",
    progress: Progress = ignore,
) -> PathPatching:
    """How much each path from an earlier head into other heads, or into the logits, carries the difference between two
    prompts.

    Patch the path from each earlier head into the queries, keys or values of ``receivers``, or into the logits, and
    measure the answer.

    Path patching between two prompts (Wang et al. 2023, Goldowsky-Dill et al. 2023): the earlier head's output is taken
    from the other prompt, but only where the receivers' queries, keys or values, or the logits, are computed from it;
    everything after the receivers is recomputed, and so is what else a later receiver reads of an earlier one. Routes
    are those of ``cut_paths``, of which "mlps" is that of Wang et al.: all other heads are frozen, and MLPs recomputed.
    Into the logits, "every" is the same as patching the head. The prompts and the measure are those of
    ``patching.patch``. Raises ``InputError`` as that does, and if there is no such head.
    """
    heads_into = chosen_receivers(clean.config, layer, head, receivers)
    run = patch_run(clean, corrupted, answer=answer, wrong=wrong, direction=direction)
    text, contexts = run.into, contexts_of(run.source)
    layers = sorted({each for each, _ in heads_into}) or [text.config.n_layer]
    ways: tuple[Into, ...] = WAYS if heads_into else ("logits",)
    effects: dict[Route, PerInto] = {}
    for index, route in enumerate(ROUTES):
        effects[route] = {way: torch.zeros(layers[-1], text.config.n_head) for way in ways}
        for earlier, heads, streams in streams_without_each(text, layers, route, "resample", contexts):
            for way in ways:
                final = streams[layers[-1]] if way == "logits" else with_receivers(text, heads_into, streams, way)
                effects[route][way][earlier, heads] = run.measure(final).cpu()
            progress((index + (earlier + 1) / layers[-1]) / len(ROUTES))
    return PathPatching(*about(run, direction), effects, heads_into)


def chosen_receivers(
    config: GPTConfig, layer: int | None, head: int | None, receivers: Sequence[Head] | None
) -> list[Head]:
    """The heads that paths lead into; none for the logits. Raises ``InputError`` for a head that does not exist."""
    if receivers is not None:
        if layer is not None or head is not None:
            raise InputError("receivers", "receivers stand in the place of layer and head: give either.")
        heads_by_layer(config, receivers)
        return sorted({(each, index) for each, index in receivers})
    if layer is None and head is None:
        return []
    if layer is None or head is None:
        raise InputError("head", "A head needs both layer and head.")
    check_int("layer", layer, config.n_layer - 1, least=0)
    check_int("head", head, config.n_head - 1, least=0)
    return [(layer, head)]


def with_receivers(text: TextPass, receivers: Sequence[Head], streams: Mapping[int, Tensor], way: Way) -> Tensor:
    """The final stream ``(B, T, C)`` if each of ``receivers`` computed its queries, keys or values from ``streams``, by
    layer. Everything else is recomputed. Receivers of other layers are as they are.
    """
    by_layer = heads_by_layer(text.config, [each for each in receivers if each[0] in streams])

    def attend(block: Block, x: Tensor) -> Tensor:
        context, _ = block.attn.context(x, head_mask=text.mask_of(block.layer))
        for head in by_layer.get(block.layer, ()):
            own = dict(zip(WAYS, block.attn.queries_keys_values(x, head=head), strict=True))
            vectors = {name: each[:, 0] for name, each in own.items()}
            vectors[way] = parts_of(text, block.layer, head, streams[block.layer])[way]
            found = head_weights(text, block.layer, vectors["q"], vectors["k"]) @ vectors["v"]
            mask = text.mask_of(block.layer)
            context[:, :, head] = found if mask is None else found * mask[head]
        return block.attn.output(context.to(x.dtype))

    first = min(by_layer)
    return text.gpt.run_blocks(text.stream[first].expand_as(streams[first]), attend, start=first)


def without_each(
    text: TextPass, layer: int, route: Route, method: Method, reference: Tensor | None
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """The residual stream before ``layer`` with each earlier head's context vectors replaced.

    Yields the earlier layer, some of its heads ``(B,)``, and the streams ``(B, T, C)``.
    """
    for earlier, heads, streams in streams_without_each(text, [layer], route, method, reference):
        yield earlier, heads, streams[layer]


def streams_without_each(
    text: TextPass, layers: Sequence[int], route: Route, method: Method, reference: Tensor | None
) -> Iterator[tuple[int, Tensor, dict[int, Tensor]]]:
    """The same before several ``layers``, in ascending order, of which the last may be the number of layers: the
    stream after all. Of each head, there are those of later layers.
    """
    n_head = text.config.n_head
    own = [text.context(between) for between in range(layers[-1])]
    edits: dict[Route, Edit | None] = {"mlps": lambda between, _: own[between], "every": None}
    for earlier in range(layers[-1]):
        later = [layer for layer in layers if layer > earlier]
        block, context = text.block(earlier), own[earlier]  # (1, T, n_head, head_dim)
        change = context[0] - replacement(text, earlier, method, reference)[0]
        removed = change.transpose(0, 1) @ block.attn.matrices().W_O  # (n_head, T, C)
        output = block.attn.output(context)
        for heads in torch.arange(n_head).split(text.batch_size):
            if route == "direct":
                added = block.attention_adds(removed[heads], output)
                yield earlier, heads, {layer: text.stream[layer] - added for layer in later}
                continue
            streams = {later[0]: text.run_with_output(earlier, output - removed[heads], edits[route], stop=later[0])}
            for start, stop in pairwise(later):
                streams[stop] = text.run_layers(streams[start], edit=edits[route], start=start, stop=stop)
            yield earlier, heads, streams


def parts_of(text: TextPass, layer: int, head: int, x: Tensor) -> dict[Way, Tensor]:
    """One head's queries, keys and values from the stream before its layer: ``(B, T, C) -> (B, T, head_dim)``."""
    block = text.block(layer)
    vectors = block.attn.queries_keys_values(block.attention_input(x), head=head)
    return {way: each[:, 0] for way, each in zip(WAYS, vectors, strict=True)}


def head_weights(text: TextPass, layer: int, query: Tensor, key: Tensor) -> Tensor:
    """One head's attention weights ``(B, T, T)`` from its queries and keys, each ``(B or 1, T, head_dim)``."""
    return text.block(layer).attn.attention_weights(query[:, None], key[:, None])[:, 0]
