"""The points of a layer as sites: what patching puts into a run, and what is exported for one text."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ...config import GPTConfig
from ...errors import InvalidValue
from ...hooks import LAYER_POINTS, QKV, ROTATED, WEIGHTS, Hooks, layer_points, run_layer
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
    last = point.rpartition(".")[2].removeprefix("hook_")
    component: Component | None = None
    if point in (*QKV, *ROTATED):
        component = "head" if point in OF_HEADS else "key-value head"
    elif point in OF_HEADS:
        component = "head"
    elif point in ("mlp.hook_pre", "mlp.hook_pre_linear", "mlp.hook_post"):
        component = "neuron"
    return Site(last if point.startswith(("attn.", "hook_")) else point.replace(".hook_", "_"), point, component)


SITES: dict[str, Site] = {site.name: site for site in map(named, LAYER_POINTS)}  # in the order of LAYER_POINTS


def names_of(site: Site) -> tuple[str, ...]:
    """The names of a site, with and without the prefixes of TransformerLens; ``hook_scale`` alone is not unique."""
    last = site.hook.rpartition(".")[2]
    is_unique = [each.rpartition(".")[2] for each in LAYER_POINTS].count(last) == 1
    return tuple(dict.fromkeys((site.name, site.hook, last) if is_unique else (site.name, site.hook)))


SITE_NAMES: Any = tuple(name for site in SITES.values() for name in names_of(site))
ALIASES = {
    "residual stream": "resid_pre",
    "query": "q",
    "key": "k",
    "value": "v",
    "attention pattern": "pattern",
    "head output": "z",
    "attention output": "attn_out",
    "neuron": "mlp_post",
    "MLP output": "mlp_out",
}


def find_site(config: GPTConfig, name: str, field: str = "site") -> tuple[Site, int | None]:
    """A site by our name, TransformerLens's (``hook_z``, ``attn.hook_z``), or in words; and the layer, if it is named.

    Raises ``InvalidValue`` for ``field`` if the model has none.
    """
    block, short = "", ALIASES.get(name, name) if isinstance(name, str) else ""
    if short.startswith("blocks."):
        block, _, short = short.removeprefix("blocks.").partition(".")
    has_layer = not block or (block.isdecimal() and int(block) < config.n_layer)
    sites = [SITES[named(point).name] for point in layer_points(config)]
    found = next((site for site in sites if short in names_of(site)), None)
    if found is None or not has_layer:
        layers = f"after blocks.LAYER. for one layer, from 0 to {config.n_layer - 1}"
        allowed = f"one of {', '.join(site.name for site in sites)}, or TransformerLens's name for it, {layers}"
        raise InvalidValue(field, name, allowed)
    return found, int(block) if block else None


def n_components(site: Site, config: GPTConfig) -> int:
    """How many heads or neurons a layer has at a site; 1 where there is neither."""
    sizes = {"head": config.n_head, "key-value head": config.n_kv_head, "neuron": config.inner_dim, None: 1}
    return sizes[site.component]


def run_keeping(text: TextPass, layer: int, x: Tensor, sites: Sequence[Site]) -> tuple[list[Tensor], Tensor]:
    """The activations at some sites of a layer, given the residual stream ``x`` before it, and the one after it."""
    found: dict[str, Tensor] = {}
    hooks = Hooks().with_hook([site.at(layer) for site in sites], lambda x, name: found.__setitem__(name, x))
    after = run_layer(text.block(layer), x, hooks, head_mask=text.mask_of(layer))
    return [found[site.at(layer)] for site in sites], after


@torch.no_grad()
def layer_activations(text: TextPass, layer: int, sites: Sequence[Site]) -> list[Tensor]:
    """The activations ``(1, T, ...)`` of a text at some sites of a layer."""
    return run_keeping(text, layer, text.stream[layer], sites)[0]


@torch.no_grad()
def run_patched(text: TextPass, layer: int, site: Site, edit: Callable[[Tensor], Tensor]) -> Tensor:
    """The final residual stream ``(B, T, C)`` if ``edit`` changed the activation of a site, from 1 copy to ``B``."""
    hooks = Hooks().with_hook([site.at(layer)], lambda x, _: edit(x))
    after = run_layer(text.block(layer), text.stream[layer], hooks, head_mask=text.mask_of(layer))
    return text.run_from(layer + 1, after)


def gradients(text: TextPass, layer: int, after: Tensor, site: Site) -> tuple[Tensor, Tensor]:
    """The gradients ``(1, T, ...)`` at a site of a layer, and with respect to the stream before it, given the one with
    respect to the stream after it.
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = text.stream[layer].clone().requires_grad_()
        (at_site,), out = run_keeping(text, layer, x, [site])
        slope, before = torch.autograd.grad(out, [at_site, x], after.clone())
        return slope, before
