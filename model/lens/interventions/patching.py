"""Activation patching: which activations carry the difference between two prompts."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast, get_args

import torch
from torch import Tensor

from ...config import GPTConfig
from ...drawing.heat_map import Part, in_digits
from ...errors import InputError, InvalidValue
from ...modules.head_tensors import Head
from ...points import WEIGHTS
from ..answer import Answer, IsToken, NamedToken, NotSent, PerHead, SentAs, Shape, TokenId, sent
from ..progress import Progress, ignore, part
from ..question import AnswerToken, Json, PatchDirection, Reads, WrongToken
from ..text_pass import TextPass, replacing
from .patch_run import Direction, Metric, PatchRun, patch_run
from .sites import SITE_NAMES, SITES, Site, find_site, gradients, layer_activations, n_components, run_patched

ALL = -1  # in place of a position

# How a site is patched: by running the model for each activation, or approximately, or both.
SiteMethod = Literal["exact", "attribution", "both"]
Positions = Literal["each", "all"]

Difference = TypeVar("Difference", float, Tensor, float | None, Tensor | None)


class PairContent(TypedDict):
    corrupted_tokens: list[NamedToken]
    answer: NamedToken
    wrong: NamedToken
    direction: str
    clean: Annotated[float, "The logit of the answer minus that of the wrong token, in the clean run."]
    corrupted: Annotated[float, "The same in the corrupted run."]


class Patched(TypedDict):
    heads: Annotated[PerHead | None, "`[layer][head]`: one head's context vectors at all positions."]
    residual: Annotated[
        Annotated[Tensor, Shape(("n_layer + 1", "T"))] | None,
        "`[n_layer + 1][position]`: the residual stream before each layer, then after the last, at one position.",
    ]
    joint: Annotated[float | None, "All requested heads patched at once."]


class SitePatched(TypedDict):
    """The effects of patching one activation of a site at a time, with the dimensions ``axes``, normalised."""

    name: str
    hook: Annotated[str, "Its name in TransformerLens."]
    axes: list[str]
    exact: Annotated[Tensor | None, SentAs(list[Any] | None), "By running the model again for each activation."]
    estimate: Annotated[Tensor | None, SentAs(list[Any] | None), "By attribution patching: gradient times difference."]
    correlation: Annotated[float | None, "Pearson's correlation of the two, over all activations."]


class PatchContent(PairContent, Patched):
    """The effects of the patches, normalised: 0 is the corrupted prompt, 1 the clean one, in either direction."""

    site: SitePatched | None
    raw: Annotated[Patched, "The logit differences before normalisation."]


class SiteContent(PairContent, SitePatched):
    pass


@dataclass(frozen=True)
class Differences(Answer):
    """Logit differences in nats: the logit of the answer minus that of the wrong token, after the last position.

    ``clean`` and ``corrupted`` are those of the two unpatched prompts, ``answer`` and ``wrong`` the ids of the tokens,
    ``corrupted_ids`` those of the corrupted prompt.
    """

    clean: float
    corrupted: float
    answer: TokenId | None  # both None if a metric was given
    wrong: TokenId | None
    direction: Direction
    corrupted_ids: Annotated[list[int], IsToken(), Shape(("T",))]

    @property
    def summary(self) -> str:
        tokens = [self.token_texts(each) for each in (self.answer, self.wrong) if each is not None]
        what = f"The logit of {' minus that of '.join(tokens)}" if tokens else "The metric"
        clean, corrupted = in_digits(self.clean), in_digits(self.corrupted)
        return f"{what} is {clean} in the clean prompt and {corrupted} in the corrupted one."

    def restored(self, differences: Difference) -> Difference:
        """The differences on a scale from 0, the corrupted prompt, to 1, the clean one; None for None.

        When noise is removed, this is how much a patch restores; when it is added, how much a patch leaves.
        """
        return differences if differences is None else (differences - self.corrupted) / (self.clean - self.corrupted)

    def most_moved(self, restored: Tensor, *axes: str | Sequence[str]) -> str:
        """Which patch changes the difference most, in words."""
        change = restored if self.direction == "denoise" else restored - 1
        return (
            f"The patch that changes it most, as a share of the distance between the two: {self.peak(change, *axes)}."
        )

    def about(self) -> PairContent:
        answer, wrong = (None if each is None else self.named([each])[0] for each in (self.answer, self.wrong))
        return {
            "corrupted_tokens": self.named_text(self.corrupted_ids),
            "answer": cast(NamedToken, answer),  # there are always tokens in what is sent
            "wrong": cast(NamedToken, wrong),
            "direction": self.direction,
            "clean": self.clean,
            "corrupted": self.corrupted,
        }


@dataclass(frozen=True)
class Patching(Differences):
    """The logit difference after patching in, from the other prompt, each head, the residual stream at each layer
    and position, and all given heads at once, or every activation of a site: 0 is corrupted, 1 is clean.

    ``raw`` has the differences themselves. What was not requested is None.
    """

    raw: Annotated[
        Patched, NotSent(), "The logit differences before normalisation, by `heads`, `residual` and `joint`."
    ]
    site: "Annotated[SitePatching | None, 'The activations of a site.']" = None

    @property
    @sent
    def heads(self) -> PerHead | None:
        """With one head's context vectors, at all positions, taken from the other prompt."""
        return self.restored(self.raw["heads"])

    @property
    @sent
    def residual(self) -> Annotated[Tensor, Shape(("n_layer + 1", "T"))] | None:
        """With the residual stream before a layer, at one position, taken from the other prompt; the last row is the
        stream after all layers.
        """
        return self.restored(self.raw["residual"])

    @property
    @sent
    def joint(self) -> float | None:
        """With all requested heads taken from the other prompt at once."""
        return self.restored(self.raw["joint"])

    @property
    def summary(self) -> str:
        if self.heads is None:
            return super().summary if self.site is None else self.site.summary
        return f"{super().summary} {self.most_moved(self.heads, 'n_layer', 'n_head')}"

    def content(self) -> PatchContent:
        return {
            **self.about(),
            "heads": self.heads,
            "residual": self.residual,
            "joint": self.joint,
            "site": None if self.site is None else self.site.patched(),
            "raw": self.raw,
        }


@dataclass(frozen=True)
class SitePatching(Differences):
    """The differences with each activation of a site taken from the other prompt, measured and estimated: 0 is
    corrupted, 1 is clean.

    ``raw`` has the differences themselves. All tensors have the dimensions ``axes``; what was not requested is None.
    """

    site: Site
    axes: tuple[str, ...]
    raw: Annotated[
        dict[Literal["exact", "estimate"], Tensor | None],
        "The logit differences, or values of the metric, before normalisation, by `exact` and `estimate`.",
    ]
    places: Annotated[tuple[str, ...], "The layers, or the neurons, along the first of `axes`."] = field(
        default=(), repr=False
    )

    def drawn_axes(self) -> tuple[str | Sequence[str], ...]:
        """The axes as a table shows them: a single layer, or some neurons, by their own numbers."""
        return (self.places or self.axes[0], *self.axes[1:])

    @property
    def exact(self) -> Tensor | None:
        """By running the model again for each activation, with the dimensions ``axes``."""
        return self.restored(self.raw["exact"])

    @property
    def estimate(self) -> Tensor | None:
        """By attribution patching: gradient times difference, with the dimensions ``axes``."""
        return self.restored(self.raw["estimate"])

    @property
    def summary(self) -> str:
        shown = self.estimate if self.exact is None else self.exact
        if shown is None or not shown.numel():
            return super().summary
        return f"{super().summary} {self.most_moved(shown, *self.drawn_axes())}"

    def drawn(self) -> Iterator[Part]:
        yield Part("site", self.site.hook)
        for each in super().drawn():
            if each.name not in ("site", "axes", "places") and not each.name.startswith("raw"):
                yield each
        grids = {"exact": self.exact, "estimate": self.estimate}
        scale = "0 is the corrupted prompt, 1 the clean one."
        yield from (Part(name, grid, self.drawn_axes(), scale) for name, grid in grids.items() if grid is not None)
        yield from self.drawn_value("correlation", self.correlation, float)

    @property
    def correlation(self) -> float | None:
        """Pearson's correlation of the exact and the estimated differences; None if it is undefined."""
        exact, estimate = self.raw["exact"], self.raw["estimate"]
        if exact is None or estimate is None:
            return None
        a, b = (each.flatten().double() - each.double().mean() for each in (exact, estimate))
        spread = float((a @ a) * (b @ b)) ** 0.5
        return float(a @ b) / spread if spread else None

    def patched(self) -> SitePatched:
        return {
            "name": self.site.name,
            "hook": self.site.hook,
            "axes": list(self.axes),
            "exact": self.exact,
            "estimate": self.estimate,
            "correlation": self.correlation,
        }

    def content(self) -> SiteContent:
        return {**self.about(), **self.patched()}


@torch.no_grad()
def patch(
    clean: TextPass,
    corrupted: Annotated[
        TextPass, Reads.TEXT, "A prompt with the same number of tokens that leads to a different answer."
    ],
    *,
    answer: AnswerToken = None,
    wrong: WrongToken = None,
    direction: PatchDirection = "denoise",
    heads: Annotated[
        Sequence[Head] | None,
        Reads.HEADS,
        "Heads to patch together, each as `[layer, head]`; their joint effect is `joint` in the answer.",
    ] = None,
    grid: Annotated[bool, "Patch every head and position separately; false requires `heads`."] = True,
    site: Annotated[
        str | None,
        Json(Literal[SITE_NAMES]),
        "Patch every activation of this site separately, instead of heads and the residual stream. Names are those of "
        "TransformerLens, with or without its prefixes.",
    ] = None,
    positions: Annotated[Positions, "Patch each position of the site separately, or all at once."] = "each",
    neurons: Annotated[
        Sequence[tuple[int, int]] | None, Reads.NEURONS, "The MLP neurons to patch, each as `[layer, neuron]`."
    ] = None,
    method: Annotated[
        SiteMethod,
        "How to measure a site: run the model for each activation (`exact`), approximate it by the gradient times the "
        "difference (`attribution`), or `both`, with their correlation.",
    ] = "exact",
    metric: Metric | None = None,
    progress: Progress = ignore,
) -> Patching:
    """Which heads and positions carry the difference between two prompts: activations from one are patched into the
    other.

    Replace activations of one prompt with those of the other, one at a time, and ``heads`` at once.

    Activation patching as in Vig et al. 2020 and Meng et al. 2022 (causal tracing), measured by a logit difference as
    in Wang et al. 2023. The clean prompt should favour the token ``answer``, the corrupted one ``wrong``: by default
    the most probable tokens. Everything after the patched activation is recomputed; everything before stays unchanged.
    Without ``grid``, only ``heads`` are patched; with a ``site``, its activations instead of every head and position
    (``patch_site``). Raises ``InputError`` if the prompts differ in length or give the same logit difference, if the
    two tokens are the same, or if a head does not exist. Instead of the two tokens, a ``metric`` may be given: any
    function from the logits ``(1, T, vocab_size)`` of one text to a number, which patches are then measured by.
    """
    run = patch_run(clean, corrupted, answer=answer, wrong=wrong, direction=direction, metric=metric)
    joint = patch_together(run, heads) if heads else None
    by_head = residual = at_site = None
    if site is not None:
        at_site = patch_site(
            clean,
            corrupted,
            site,
            answer=run.answer,
            wrong=run.wrong,
            direction=direction,
            metric=metric,
            positions=positions,
            neurons=neurons,
            exact=method != "attribution",
            estimate=method != "exact",
            progress=progress,
        )
    elif grid:
        n_layer, n_head, T = run.into.config.n_layer, run.into.config.n_head, len(run.into.ids)
        share = n_head / (n_head + T - run.first)  # of the work
        by_head = patch_each(run, SITES["z"], each_position=False, progress=part(progress, 0, share))
        before = patch_each(run, SITES["resid_pre"], progress=part(progress, share, 1))
        residual = torch.cat([before, patch_each(run, SITES["resid_post"], layers=[n_layer - 1])])
    progress(1)
    return Patching(*about(run, direction), {"heads": by_head, "residual": residual, "joint": joint}, at_site)


def about(run: PatchRun, direction: Direction) -> tuple[float, float, int | None, int | None, Direction, list[int]]:
    """The fields of ``Differences``."""
    corrupted = run.into if direction == "denoise" else run.source
    return run.clean, run.corrupted, run.answer, run.wrong, direction, corrupted.ids


@torch.no_grad()
def patch_site(
    clean: TextPass,
    corrupted: TextPass,
    site: str,
    *,
    answer: str | int | None = None,
    wrong: str | int | None = None,
    direction: Direction = "denoise",
    positions: Positions = "each",
    neurons: Sequence[tuple[int, int]] | None = None,
    exact: bool = True,
    estimate: bool = False,
    metric: Metric | None = None,
    each_position: bool | None = None,
    progress: Progress = ignore,
) -> SitePatching:
    """Patch every activation of a site (see ``sites.SITES``) in every layer, one at a time, as in ``patch``.

    A site whose name has a layer, such as ``blocks.3.attn.hook_z``, means that layer alone.

    ``exact`` runs the model again for each activation; ``estimate`` approximates all of them by attribution patching.
    ``positions`` are patched one at a time ("each"), or "all" at once. One MLP neuron at a time is patched exactly only
    where ``neurons`` names it, as ``(layer, neuron)``. ``each_position`` is deprecated: true is "each", false "all".
    Raises ``InputError``, also for an unknown site.
    """
    if each_position is not None:
        warnings.warn("each_position is deprecated: write positions='each' or 'all'", DeprecationWarning, stacklevel=3)
        positions = "each" if each_position else "all"
    if positions not in get_args(Positions):
        raise InvalidValue("positions", positions, "'each' or 'all'")
    each_position = positions == "each"
    found, layer = find_site(clean.config, site)
    check_neurons(clean.config, found, neurons, exact)
    run = patch_run(clean, corrupted, answer=answer, wrong=wrong, direction=direction, metric=metric)
    layers = range(clean.config.n_layer) if layer is None else [layer]
    half = 0.5 if exact and estimate else 1.0
    measured = guess = None
    if exact:
        measured = patch_each(
            run, found, each_position=each_position, layers=layers, neurons=neurons, progress=part(progress, 0, half)
        )
    if estimate:
        guess = attribution_patching(run, found, each_position=each_position, progress=part(progress, 1 - half, 1))
        guess = guess[tuple(torch.tensor(list(neurons)).T)] if neurons is not None else guess[list(layers)]
    component = () if found.component is None else (found.component.rpartition(" ")[2],)
    axes = (*(("layer", *component) if neurons is None else ("neuron",)), *(["position"] if each_position else []))
    places = tuple(f"L{layer}" for layer in layers) if neurons is None else tuple(f"L{i} N{n}" for i, n in neurons)
    progress(1)
    return SitePatching(*about(run, direction), found, axes, {"exact": measured, "estimate": guess}, places)


def check_neurons(config: GPTConfig, site: Site, neurons: Sequence[tuple[int, int]] | None, exact: bool) -> None:
    """Raise ``InputError`` unless ``neurons`` are given where they are needed, and exist."""
    if site.component != "neuron":
        if neurons is not None:
            raise InputError("neurons", f"Neurons are patched at sites of the MLP's neurons only, found {site.name}.")
        return
    if neurons is None and exact:
        message = "Name the neurons to patch exactly, each as [layer, neuron], or ask for the estimate alone."
        raise InputError("neurons", message)
    for layer, neuron in neurons or ():
        if not (0 <= layer < config.n_layer and 0 <= neuron < config.inner_dim):
            allowed = f"a layer below {config.n_layer} and a neuron below {config.inner_dim}"
            raise InvalidValue("neurons", f"layer {layer}, neuron {neuron}", allowed)


@torch.no_grad()
def patch_each(
    run: PatchRun,
    site: Site,
    *,
    each_position: bool = True,
    layers: Sequence[int] | None = None,
    neurons: Sequence[tuple[int, int]] | None = None,
    progress: Progress = ignore,
) -> Tensor:
    """The logit difference with each activation of a site, one at a time, taken from the other prompt.

    ``(len(layers), [n_head], [T])``: with ``each_position`` one position at a time, otherwise all at once. With
    ``neurons``, each ``(layer, neuron)``, ``(len(neurons), [T])``.
    """
    config, T = run.into.config, len(run.into.ids)
    layers = range(config.n_layer) if layers is None else layers
    n = n_components(site, config)
    places = [(layer, component) for layer in layers for component in range(n)] if neurons is None else list(neurons)
    positions = list(range(run.first, T)) if each_position else [ALL]
    units = torch.tensor([(*place, position) for place in places for position in positions])
    differences = effects(run, site, units, progress).view(len(places), len(positions))
    if each_position:
        differences = torch.cat([torch.full((len(places), run.first), run.plain), differences], 1)
    shape = [len(places)] if neurons is not None else [len(layers)] if site.component is None else [len(layers), n]
    return differences.view(*shape, *([T] if each_position else []))


def effects(run: PatchRun, site: Site, units: Tensor, progress: Progress) -> Tensor:
    """The logit differences ``(n,)`` of patching each of ``units`` ``(n, 3)``: layer, head or neuron, and position."""
    into, n_layer = run.into, run.into.config.n_layer
    result = torch.empty(len(units))
    total, done = float((n_layer - units[:, 0]).sum()), 0.0
    for layer in units[:, 0].unique().tolist():
        other = taken(run, layer, site)
        for chosen in (units[:, 0] == layer).nonzero()[:, 0].split(into.batch_size):
            edit = partial(patched, site, other, units[chosen, 1], units[chosen, 2])
            result[chosen] = run.measure(run_patched(into, layer, site, edit)).cpu()
            done += len(chosen) * (n_layer - layer)
            progress(done / total)
    return result


def taken(run: PatchRun, layer: int, site: Site) -> Tensor:
    """The activations ``(1, T, ...)`` that are put into the run at a site of a layer."""
    if run.instead is not None:
        return run.instead[site.name][layer : layer + 1]
    return run.source.context(layer) if site is SITES["z"] else layer_activations(run.source, layer, [site])[0]


def patched(site: Site, other: Tensor, components: Tensor, positions: Tensor, own: Tensor) -> Tensor:
    """Copies of ``own`` ``(1, T, ...)``, ``(B, T, ...)``, each with one component of ``other`` at one position.

    ``components`` and ``positions`` are ``(B,)``; the position ``ALL`` stands for all of them.
    """
    if site.hook in WEIGHTS:  # which count heads before positions
        own, other = own.transpose(1, 2), other.transpose(1, 2)
        return patched(site._replace(hook=""), other, components, positions, own).transpose(1, 2)
    x = own.repeat(len(positions), *[1] * (own.dim() - 1))
    rows = torch.arange(len(positions))
    if positions[0] == ALL:
        if site.component is not None:
            x[rows, :, components] = other[0][:, components].transpose(0, 1)
        else:
            x[:] = other
    elif site.component is not None:
        x[rows, positions, components] = other[0, positions, components]
    else:
        x[rows, positions] = other[0, positions]
    return x


def attribution_patching(
    run: PatchRun, site: Site, *, each_position: bool = True, progress: Progress = ignore
) -> Tensor:
    """A linear approximation of ``patch_each``: gradient times difference (Nanda 2023, "attribution patching").

    ``(n_layer, [n_head or neurons], [T])``. The gradient is that of the logit difference in the run into which
    activations are put. Only one layer's graph is in memory at a time.
    """
    into, n_layer = run.into, run.into.config.n_layer
    with torch.inference_mode(False), torch.enable_grad():
        final = into.stream[-1].clone().requires_grad_()
        plain = run.measure(final).sum()
        if not plain.requires_grad:
            message = "An estimate takes the gradient of metric, which must return a tensor computed from the logits."
            raise InputError("metric", message)
        (after,) = torch.autograd.grad(plain, [final])
    changes = []
    for layer in reversed(range(n_layer)):
        slope, before = gradients(into, layer, after, site)
        with torch.no_grad():
            there, (here,) = taken(run, layer, site), layer_activations(into, layer, [site])
            product = ((there - here) * slope)[0].cpu()  # (T, [n_head or neurons], ...)
            if site.hook in WEIGHTS:
                product = product.transpose(0, 1)
            if site.component != "neuron":  # each of which is a single number
                product = product.sum(-1)
            changes.append(product.movedim(0, -1) if each_position else product.sum(0))
        after = before
        progress((n_layer - layer) / n_layer)
    return run.plain + torch.stack(changes[::-1])


def patch_together(run: PatchRun, together: Sequence[Head]) -> float:
    """The difference with the context vectors of all these heads, at all positions, from the other prompt."""
    replace = replacing(run.into.config, together, run.source.context)
    first, _ = min(together)
    return float(run.measure(run.into.run_from(first, run.into.stream[first], replace)))
