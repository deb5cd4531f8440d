"""The forward pass with hooks: functions that see, and may change, what flows at its named points.

Names, shapes and values are those of TransformerLens 3.9 for a model whose weights are as they were published: nothing
is folded, and nothing is centred.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .attention import MultiHeadAttention
from .config import GPTConfig
from .errors import InputError, InvalidValue, shorten
from .gpt import GPT, Block, Forward
from .modules.cache import KVCache
from .modules.head_tensors import QueriesKeysValues, product_by_group
from .modules.mlp import MLP
from .modules.norm import LayerNorm, RMSNorm

Hook = Callable[[Tensor, str], Tensor | None]  # the activation and its name; what to continue with, if not the same
Choice = str | Callable[[str], bool]  # a name, a pattern in which * stands for anything, or a predicate
Names = Choice | Iterable[Choice]
HookChoice = Mapping[Choice, Hook] | Iterable[tuple[Choice, Hook]]
Point = Callable[[str, Tensor], Tensor]  # a name within a layer, and the activation; what to continue with

# The points of a layer, in the order in which it computes them. Activations are ``(B, T, ...)``: of heads ``(B, T,
# n_head, head_dim)``, with n_kv_head for keys and values; scores and patterns are ``(B, n_head, T, T)``.
QKV = ("attn.hook_q", "attn.hook_k", "attn.hook_v")  # as projected
ROTATED = ("attn.hook_rot_q", "attn.hook_rot_k")  # as the scores are computed from them, where positions are rotary
WEIGHTS = ("attn.hook_attn_scores", "attn.hook_pattern")
LAYER_POINTS = (
    "hook_resid_pre",
    "ln1.hook_scale",
    "ln1.hook_normalized",
    *QKV,
    *ROTATED,
    *WEIGHTS,
    "attn.hook_z",
    "attn.hook_result",
    "hook_attn_out",
    "hook_resid_mid",
    "ln2.hook_scale",
    "ln2.hook_normalized",
    "mlp.hook_pre",
    "mlp.hook_pre_linear",
    "mlp.hook_post",
    "hook_mlp_out",
    "hook_resid_post",
)


def layer_points(config: GPTConfig) -> list[str]:
    """The points that every layer of a model has."""
    missing = set() if config.rotary else set(ROTATED)
    if config.parallel:
        missing.add("hook_resid_mid")
    if not config.gated_mlp:
        missing.add("mlp.hook_pre_linear")
    return [name for name in LAYER_POINTS if name not in missing]


def points(config: GPTConfig) -> list[str]:
    """The names of all points of a model."""
    in_layers = [f"blocks.{layer}.{name}" for layer in range(config.n_layer) for name in layer_points(config)]
    embedded = ["hook_embed"] if config.rotary else ["hook_embed", "hook_pos_embed"]
    return [*embedded, *in_layers, "ln_final.hook_scale", "ln_final.hook_normalized"]


def short_names(point: str) -> tuple[str, ...]:
    """A point without its layer, as ``attn.hook_z``, ``hook_z``, ``z`` or ``attn_z``."""
    within = re.sub(r"^blocks\.\d+\.", "", point)
    last = within.rpartition(".")[2]
    return within, last, last.removeprefix("hook_"), within.replace(".hook_", "_")


def find_points(config: GPTConfig, names: Names, field: str = "names") -> list[str]:
    """The points that ``names`` choose, in the order in which a pass reaches them.

    A name without a layer, such as ``attn.hook_z`` or ``z``, means all layers. Raises ``InputError`` about ``field``
    for a name that chooses none.
    """
    chosen = set[str]()
    every = points(config)
    for name in [names] if isinstance(names, str) or callable(names) else names:
        if callable(name):
            found = list(filter(name, every))
        elif isinstance(name, str):
            pattern = re.compile(".*".join(map(re.escape, name.split("*"))))
            found = [point for point in every if pattern.fullmatch(point)]
            found = found or [point for point in every if name in short_names(point)]
        else:
            raise InvalidValue(field, name, "a name of a point, or a function of one")
        if not found:
            allowed = f"{', '.join([*every[: every.index('blocks.0.hook_resid_pre')], *layer_points(config)])}"
            layers = f"blocks.LAYER. before those of a layer, from 0 to {config.n_layer - 1}"
            shown = shorten(name) if isinstance(name, str) else "a predicate that chooses none"
            message = f"{field}: this model has no point {shown}. It has {allowed}, ln_final.hook_scale and "
            raise InputError(field, f"{message}ln_final.hook_normalized, with {layers}; * stands for anything.")
        chosen.update(found)
    return [point for point in every if point in chosen]


class Hooks:
    """The functions to call at each point, in their order."""

    def __init__(self, by_point: Mapping[str, Sequence[Hook]] | None = None) -> None:
        self.by_point = {} if by_point is None else dict(by_point)

    @classmethod
    def chosen(cls, config: GPTConfig, hooks: HookChoice | None) -> "Hooks":
        """The hooks of someone who uses the library. Raises ``InputError`` for a name that chooses no point."""
        found = cls()
        for name, hook in () if hooks is None else hooks.items() if isinstance(hooks, Mapping) else hooks:
            if not callable(hook):
                raise InvalidValue("hooks", hook, "a function of a tensor and a name for each point")
            found = found.with_hook(find_points(config, name, "hooks"), partial(checked, hook))
        return found

    def with_hook(self, names: Iterable[str], hook: Hook) -> "Hooks":
        """The same with one more function at ``names``, called after those that are there."""
        return Hooks(self.by_point | {name: [*self.by_point.get(name, ()), hook] for name in names})

    def __call__(self, name: str, x: Tensor) -> Tensor:
        for hook in self.by_point.get(name, ()):
            changed = hook(x, name)
            x = x if changed is None else changed
        return x

    def have(self, *names: str) -> bool:
        """Whether any of these points has a function."""
        return any(name in self.by_point for name in names)


def checked(hook: Hook, x: Tensor, name: str) -> Tensor | None:
    """What a hook returns. Raises ``InputError`` unless it is None or a tensor of the same shape."""
    changed = hook(x, name)
    if changed is None or (isinstance(changed, Tensor) and changed.shape == x.shape):
        return None if changed is None else changed.to(x)
    found = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
    raise InputError("hooks", f"A hook at {name} must return None or a tensor {tuple(x.shape)}, found {found}.")


def run_with_hooks(
    gpt: GPT,
    ids: Tensor,
    hooks: Hooks,
    *,
    cache: KVCache | None = None,
    head_mask: Tensor | None = None,
    last_only: bool = False,
) -> Tensor:
    """The logits ``(B, T, vocab_size)`` of ``GPT.forward`` for the same arguments, with ``hooks``."""
    start = 0 if cache is None else cache.length
    x = hooks("hook_embed", gpt.wte(ids))
    if gpt.wpe is not None:
        x = x + hooks("hook_pos_embed", gpt.wpe.weight[start : start + ids.shape[1]].repeat(len(ids), 1, 1))
    for block in gpt.blocks:
        x = run_layer(block, x, hooks, cache=cache, head_mask=None if head_mask is None else head_mask[block.layer])
    if cache is not None:
        cache.advance(ids.shape[1])
    logits: Tensor = gpt.lm_head(normalise(gpt.ln_f, x[:, -1:] if last_only else x, hooks, "ln_final"))
    return logits


def forward(gpt: GPT, hooks: Hooks, ids: Tensor, *, record: Collection[int] = (), **options: Any) -> Forward:
    """The same with the attention weights of the layers in ``record``, as they are after the hooks."""
    attention: dict[int, Tensor] = {}

    def keep(x: Tensor, name: str) -> None:
        attention[int(name.split(".")[1])] = x

    recorded = hooks.with_hook([f"blocks.{layer}.{WEIGHTS[1]}" for layer in record], keep)
    return Forward(run_with_hooks(gpt, ids, recorded, **options), attention)


def run_layer(
    block: Block, x: Tensor, hooks: Hooks, *, cache: KVCache | None = None, head_mask: Tensor | None = None
) -> Tensor:
    """The residual stream ``(B, T, C)`` after a layer, given the one before.

    ``head_mask`` ``(n_head,)`` or ``(B, n_head)`` scales each head's context vectors. Where a hook returns more rows
    than it was given, the batch is larger from there on.
    """
    at = f"blocks.{block.layer}."
    x = hooks(at + "hook_resid_pre", x)
    attended = attend(block.attn, normalise(block.ln_1, x, hooks, at + "ln1"), hooks, at, cache, block.layer, head_mask)
    after = x + hooks(at + "hook_attn_out", attended)
    if not block.parallel:
        after = hooks(at + "hook_resid_mid", after)
    neurons = run_neurons(
        block.mlp, normalise(block.ln_2, x if block.parallel else after, hooks, at + "ln2"), hooks, at
    )
    return hooks(at + "hook_resid_post", after + hooks(at + "hook_mlp_out", block.mlp.output(neurons)))


def normalise(norm: LayerNorm | RMSNorm, x: Tensor, hooks: Hooks, at: str) -> Tensor:
    scale, normalized = f"{at}.hook_scale", f"{at}.hook_normalized"
    if not hooks.have(scale, normalized):
        plain: Tensor = norm(x)
        return plain
    divided = norm.centred(x) / hooks(scale, norm.divisor(x)[..., None])
    return norm.scaled(hooks(normalized, divided))


def attend(
    attn: MultiHeadAttention,
    x: Tensor,
    hooks: Hooks,
    at: str,
    cache: KVCache | None,
    layer: int,
    head_mask: Tensor | None,
) -> Tensor:
    """What attention adds to the residual stream, given its input: both ``(B, T, C)``."""

    def by_position(name: str, heads: Tensor) -> Tensor:
        return hooks(at + name, heads.transpose(1, 2)).transpose(1, 2) if hooks.have(at + name) else heads

    query, key, value = map(by_position, QKV, attn.by_heads(attn.c_attn(x)))
    query, key = attn.stages(query, key, 0 if cache is None else cache.start)["rotated"]
    if attn.rotary is not None:
        query, key = map(by_position, ROTATED, (query, key))
    if cache is not None:
        key, value = cache.write(layer, key, value)
    rows = max(len(query), len(key), len(value))
    query, key, value = QueriesKeysValues(*(each.expand(rows, -1, -1, -1) for each in (query, key, value)))
    if hooks.have(*(at + name for name in WEIGHTS)):
        scores = hooks(at + WEIGHTS[0], attn.attention_scores(query, key))
        context = product_by_group(hooks(at + WEIGHTS[1], torch.softmax(scores, dim=-1)), value)
    else:
        context = attn.fused(query, key, value)
    context = context.transpose(1, 2)  # (B, T, n_head, head_dim)
    if head_mask is not None:
        context = context * head_mask.to(context).reshape(-1, 1, attn.n_head, 1)
    context = hooks(at + "attn.hook_z", context.to(x.dtype))
    if not hooks.have(at + "attn.hook_result"):
        return attn.output(context)
    matrices = attn.matrices()
    return hooks(at + "attn.hook_result", torch.einsum("bthd,hdc->bthc", context, matrices.W_O)).sum(2) + matrices.b_O


def run_neurons(mlp: MLP, x: Tensor, hooks: Hooks, at: str) -> Tensor:
    """The MLP's neurons ``(B, T, inner_dim)`` from its input."""
    if mlp.is_gated:
        gate, up = mlp.c_fc(x).chunk(2, dim=-1)
        neurons = mlp.nonlinear(hooks(at + "mlp.hook_pre", gate)) * hooks(at + "mlp.hook_pre_linear", up)
    else:
        neurons = mlp.nonlinear(hooks(at + "mlp.hook_pre", mlp.c_fc(x)))
    return hooks(at + "mlp.hook_post", neurons)
