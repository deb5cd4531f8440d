"""The sites of a forward pass whose activations are read, patched or exported: one table, and one loop over a layer."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ...config import GPTConfig, check_int
from ...errors import InvalidValue
from ..text_pass import TextPass

SiteName = Literal[
    "resid_pre", "q", "k", "v", "pattern", "z", "attn_out", "resid_mid", "mlp_post", "mlp_out", "resid_post"
]


class Site(NamedTuple):
    """A site: its name, its hook in TransformerLens, and what it holds.

    Activations are ``(B, T, ...)``; where ``component`` is set, the third dimension counts heads or neurons.
    """

    name: SiteName
    hook: str  # after "blocks.{layer}."
    what: str
    component: Literal["head", "neuron"] | None = None


# In the order in which a layer computes them.
SITES: dict[str, Site] = {
    site.name: site
    for site in (
        Site("resid_pre", "hook_resid_pre", "the residual stream before the layer"),
        Site("q", "attn.hook_q", "queries, as the scores are computed from them", "head"),
        Site("k", "attn.hook_k", "keys, as the scores are computed from them, for each query head", "head"),
        Site("v", "attn.hook_v", "values, for each query head", "head"),
        Site("pattern", "attn.hook_pattern", "attention weights of each query", "head"),
        Site("z", "attn.hook_z", "head outputs: the context vectors, before the output projection", "head"),
        Site("attn_out", "hook_attn_out", "the output of attention"),
        Site("resid_mid", "hook_resid_mid", "the residual stream after attention"),
        Site("mlp_post", "mlp.hook_post", "the MLP's neurons, after the activation function", "neuron"),
        Site("mlp_out", "hook_mlp_out", "the output of the MLP"),
        Site("resid_post", "hook_resid_post", "the residual stream after the layer"),
    )
}
# Every name of every site, with and without the prefixes of TransformerLens.
SITE_NAMES: Any = tuple(
    name for site in SITES.values() for name in dict.fromkeys((site.name, site.hook, site.hook.rpartition(".")[2]))
)
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

# Called with a site, a layer and its activation; returns the activation to continue with.
Hook = Callable[[SiteName, int, Tensor], Tensor]


def find_site(name: str, field: str = "site") -> Site:
    """A site by our name, TransformerLens's (``hook_z``, ``attn.hook_z``, ``blocks.3.attn.hook_z``), or in words.

    Raises ``InvalidValue`` for ``field`` if there is none.
    """
    short = re.sub(r"^blocks\.\d+\.", "", name)
    for site in SITES.values():
        if short in (site.name, site.hook, site.hook.rpartition(".")[2]):
            return site
    if name in ALIASES:
        return SITES[ALIASES[name]]
    raise InvalidValue(field, name, f"one of {', '.join(SITES)}, or TransformerLens's name for it")


def n_components(site: Site, config: GPTConfig) -> int:
    """How many heads or neurons a layer has at a site; 1 where there is neither."""
    return {"head": config.n_head, "neuron": config.inner_dim, None: 1}[site.component]


QKV: tuple[SiteName, ...] = ("q", "k", "v")


def run_layer(text: TextPass, layer: int, x: Tensor, hook: Hook) -> Tensor:
    """The residual stream ``(B, T, C)`` after a layer, given the one before; every activation passes through ``hook``.

    A hook may return more variants than it was given: from there on, the batch is larger.
    """
    block = text.block(layer)
    x = hook("resid_pre", layer, x)
    query, key, value = (
        hook(name, layer, part.transpose(1, 2)).transpose(1, 2)
        for name, part in zip(QKV, block.attn.queries_keys_values(block.attention_input(x)), strict=True)
    )
    pattern = block.attn.attention_weights(query, key).transpose(1, 2)  # (B, T, n_head, T)
    context = (hook("pattern", layer, pattern).transpose(1, 2) @ value).transpose(1, 2)  # (B, T, n_head, head_dim)
    mask = text.mask_of(layer)
    context = hook("z", layer, context if mask is None else context * mask[:, None])
    resid_mid = hook("resid_mid", layer, x + hook("attn_out", layer, block.attn.output(context)))
    neurons = hook("mlp_post", layer, block.neurons(x if block.parallel else resid_mid))
    return hook("resid_post", layer, resid_mid + hook("mlp_out", layer, block.mlp.output(neurons)))


def run_keeping(text: TextPass, layer: int, x: Tensor) -> tuple[dict[SiteName, Tensor], Tensor]:
    """The activations at every site of a layer, given the residual stream ``x`` before it, and the one after it."""
    by_site: dict[SiteName, Tensor] = {}

    def keep(site: SiteName, _layer: int, x: Tensor) -> Tensor:
        by_site[site] = x
        return x

    after = run_layer(text, layer, x, keep)
    return by_site, after


@torch.inference_mode()
def layer_activations(text: TextPass, layer: int) -> dict[SiteName, Tensor]:
    """The activations ``(1, T, ...)`` of a text at every site of a layer."""
    return run_keeping(text, layer, text.stream[layer])[0]


def activations(text: TextPass, sites: Sequence[str], layers: Sequence[int] | None = None) -> dict[str, Tensor]:
    """The activations of a text at sites of some layers, all by default: the tensors of ``/v1/activations``.

    Names and shapes are those of TransformerLens's cache of one text: ``blocks.3.attn.hook_z`` is
    ``(T, n_head, head_dim)``, a pattern ``(n_head, T, T)``.
    """
    chosen, n_layer = [find_site(name, "sites") for name in sites], text.config.n_layer
    wanted, found = range(n_layer) if layers is None else layers, dict[str, Tensor]()
    for layer in wanted:
        check_int("layers", layer, n_layer - 1, least=0)
    for layer in wanted:
        here = layer_activations(text, layer)
        found |= {f"blocks.{layer}.{site.hook}": of_one_text(site, here[site.name]) for site in chosen}
    return found


def of_one_text(site: Site, x: Tensor) -> Tensor:
    """An activation ``(1, n, ...)`` as in TransformerLens's cache of one text: ``(n, ...)``, a pattern
    ``(n_head, n, T)``; float32 on the CPU.
    """
    return (x[0].transpose(0, 1) if site.name == "pattern" else x[0]).float().cpu()


@torch.inference_mode()
def run_patched(text: TextPass, layer: int, site: SiteName, edit: Callable[[Tensor], Tensor]) -> Tensor:
    """The final residual stream ``(B, T, C)`` if ``edit`` changed the activation of a site, from 1 copy to ``B``."""

    def patch(name: SiteName, _layer: int, x: Tensor) -> Tensor:
        return edit(x) if name == site else x

    return text.run_from(layer + 1, run_layer(text, layer, text.stream[layer], patch))


def gradients(text: TextPass, layer: int, after: Tensor) -> dict[SiteName, Tensor]:
    """The gradients ``(1, T, ...)`` at every site of a layer, given the one with respect to the stream after it."""
    with torch.inference_mode(False), torch.enable_grad():
        by_site, out = run_keeping(text, layer, text.stream[layer].clone().requires_grad_())
        return dict(zip(by_site, torch.autograd.grad(out, list(by_site.values()), after.clone()), strict=True))
