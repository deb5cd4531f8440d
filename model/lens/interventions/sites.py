"""The points of a layer as sites: what patching puts into a run, and what is exported for one text."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ...config import GPTConfig
from ...modules.hooks import Hooks
from ...points import LAYER_POINTS, QKV, ROTATED, WEIGHTS, matching, no_such_point, short_names
from ..text_pass import TextPass

Component = Literal["head", "key-value head", "neuron"]
OF_HEADS = (QKV[0], ROTATED[0], *WEIGHTS, "attn.hook_z", "attn.hook_result")


class Site(NamedTuple):
    """A point of every layer: its short name, its name in a layer, and what its components are, if it has any.

    Activations are ``(B, T, ...)``, where the third dimension counts components; attention scores and patterns are
    ``(B, n_head, T, T)``.
    """

    name: str
    hook: str  # after "blocks.{layer}."
    component: Component | None = None

    def at(self, layer: int) -> str:
        return f"blocks.{layer}.{self.hook}"


def named(point: str) -> Site:
    component: Component | None = None
    if point in (*QKV, *ROTATED):
        component = "head" if point in OF_HEADS else "key-value head"
    elif point in OF_HEADS:
        component = "head"
    elif point in ("mlp.hook_pre", "mlp.hook_pre_linear", "mlp.hook_post"):
        component = "neuron"
    return Site(short_names(point)[0], point, component)


SITES: dict[str, Site] = {site.name: site for site in map(named, LAYER_POINTS)}  # in the order of LAYER_POINTS
NAMES = [name for point in LAYER_POINTS for name in dict.fromkeys(short_names(point))]
SITE_NAMES: Any = tuple(name for name in NAMES if NAMES.count(name) == 1)  # ``hook_scale`` alone is not unique


def find_site(config: GPTConfig, name: str, field: str = "site") -> tuple[Site, int | None]:
    """A site by any name of its points, see ``matching``; and the layer, if one is named.

    Raises ``InvalidValue`` for ``field`` unless the name means one point, of a single layer or of all.
    """
    found = [point.split(".", 2) for point in matching(config, name)] if isinstance(name, str) else []
    sites = {parts[-1] for parts in found}
    if len(sites) != 1 or found[0][0] != "blocks" or len(found) not in (1, config.n_layer):
        raise no_such_point(config, field, name)
    return SITES[short_names(sites.pop())[0]], int(found[0][1]) if len(found) < config.n_layer else None


def n_components(site: Site, config: GPTConfig) -> int:
    """How many heads or neurons a layer has at a site; 1 where there is neither."""
    sizes = {"head": config.n_head, "key-value head": config.n_kv_head, "neuron": config.inner_dim, None: 1}
    return sizes[site.component]


def run_keeping(text: TextPass, layer: int, x: Tensor, sites: Sequence[Site]) -> tuple[list[Tensor], Tensor]:
    """The activations at some sites of a layer, given the residual stream ``x`` before it, and the one after it."""
    found: dict[str, Tensor] = {}
    hooks = Hooks().with_hook([site.at(layer) for site in sites], lambda x, name: found.__setitem__(name, x))
    after = text.run_layers(x, hooks=hooks, start=layer, stop=layer + 1)
    return [found[site.at(layer)] for site in sites], after


@torch.no_grad()
def layer_activations(text: TextPass, layer: int, sites: Sequence[Site]) -> list[Tensor]:
    """The activations ``(1, T, ...)`` of a text at some sites of a layer."""
    return run_keeping(text, layer, text.stream[layer], sites)[0]


@torch.no_grad()
def run_patched(text: TextPass, layer: int, site: Site, edit: Callable[[Tensor], Tensor]) -> Tensor:
    """The final residual stream ``(B, T, C)`` if ``edit`` changed the activation of a site, from 1 copy to ``B``."""
    hooks = Hooks().with_hook([site.at(layer)], lambda x, _: edit(x))
    return text.run_layers(text.stream[layer], hooks=hooks, start=layer)


def gradients(text: TextPass, layer: int, after: Tensor, site: Site) -> tuple[Tensor, Tensor]:
    """The gradients ``(1, T, ...)`` at a site of a layer, and with respect to the stream before it, given the one with
    respect to the stream after it.
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = text.stream[layer].clone().requires_grad_()
        (at_site,), out = run_keeping(text, layer, x, [site])
        slope, before = torch.autograd.grad(out, [at_site, x], after.clone())
        return slope, before
