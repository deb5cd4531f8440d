"""The named points of a forward pass, at which hooks see and change activations, and how they are chosen.

Names, shapes and values are those of TransformerLens 3.9 for a model whose weights are as they were published: nothing
is folded, and nothing is centred.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import partial

import torch
from torch import Tensor

from .config import GPTConfig
from .errors import InputError, InvalidValue
from .modules.hooks import Hook, Hooks

Choice = str | Callable[[str], bool]  # a name, a pattern in which * stands for anything, or a predicate
Names = Choice | Iterable[Choice]
MAX_NAMED = 12  # names that an error lists

HookChoice = Mapping[Choice, Hook] | Iterable[tuple[Choice, Hook]]

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
    "ln1_post.hook_scale",
    "ln1_post.hook_normalized",
    "hook_attn_out",
    "hook_resid_mid",
    "ln2.hook_scale",
    "ln2.hook_normalized",
    "mlp.hook_pre",
    "mlp.hook_pre_linear",
    "mlp.hook_post",
    "ln2_post.hook_scale",
    "ln2_post.hook_normalized",
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
    for part in ("ln1", "ln2"):
        unused = {"before": [f"{part}_post"], "after": [part], "both": []}[config.norm_place]
        missing |= {f"{name}.{point}" for name in unused for point in ("hook_scale", "hook_normalized")}
    found = [name for name in LAYER_POINTS if name not in missing]
    return [name.replace("_post.", ".") for name in found] if config.norm_place == "after" else found


def points(config: GPTConfig) -> list[str]:
    """The names of all points of a model."""
    in_layers = [f"blocks.{layer}.{name}" for layer in range(config.n_layer) for name in layer_points(config)]
    embedded = ["hook_embed"] if config.rotary else ["hook_embed", "hook_pos_embed"]
    return [*embedded, *in_layers, "ln_final.hook_scale", "ln_final.hook_normalized"]


def short_names(point: str) -> tuple[str, ...]:
    """What a point may be called, the short name first: ``z`` or ``ln1_scale``, ``attn.hook_z``, ``hook_z``.

    Neither has a layer, and not every last name is unique.
    """
    within = re.sub(r"^blocks\.\d+\.", "", point)
    last = within.rpartition(".")[2]
    is_own = within.startswith(("attn.", "hook_"))  # of a layer's attention, or its own
    return last.removeprefix("hook_") if is_own else within.replace(".hook_", "_"), within, last


IN_WORDS = {
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


def matching(config: GPTConfig, name: str) -> list[str]:
    """The points that a name or a pattern means. Without a layer, as in ``attn.hook_z`` or ``z``, it means all layers;
    ``blocks.3.z`` means one.
    """
    every, name = points(config), IN_WORDS.get(name, name)
    pattern = re.compile(".*".join(map(re.escape, name.split("*"))))
    if found := [point for point in every if pattern.fullmatch(point)]:
        return found
    block, short = re.fullmatch(r"(blocks\.\d+\.)?(.*)", name, re.S).groups("")  # type: ignore[union-attr]
    return [point for point in every if point.startswith(block) and {short, f"hook_{short}"} & {*short_names(point)}]


def find_points(config: GPTConfig, names: Names, field: str = "names") -> list[str]:
    """The points that ``names`` choose, in the order in which a pass reaches them.

    Raises ``InputError`` about ``field`` for a name that chooses none.
    """
    chosen = set[str]()
    for name in [names] if isinstance(names, str) or callable(names) else names:
        if callable(name):
            found = list(filter(name, points(config)))
        elif isinstance(name, str):
            found = matching(config, name)
        else:
            raise InvalidValue(field, name, "a name of a point, or a function of one")
        if not found:
            others = [point for point in points(config) if not point.startswith("blocks.")]
            shown = name if isinstance(name, str) else "a function that is true of none"
            raise no_such_point(config, field, shown, [*others, "a pattern in which * stands for anything"])
        chosen.update(found)
    return [point for point in points(config) if point in chosen]


def no_such_point(config: GPTConfig, field: str, name: object, others: Iterable[str] = ()) -> InvalidValue:
    """The error of a name that no point of the layers has, and none of ``others``."""
    every, last = [*filter(lambda point: point.startswith("blocks."), points(config)), *others], config.n_layer - 1
    layer = re.match(r"blocks\.(\d+)\.", name) if isinstance(name, str) else None
    if layer and int(layer[1]) > last:
        return InvalidValue(field, name, f"a point of a layer from 0 to {last}")
    near = [*every, *(short for point in layer_points(config) for short in short_names(point)[:2])]
    if (
        close := get_close_matches(name, near, 1, 0.85) or get_close_matches(name, every, 1, 0.75)
        if isinstance(name, str)
        else []
    ):
        return InvalidValue(field, name, f"the name of a point, such as {close[0]}")
    short = [short_names(point)[0] for point in layer_points(config)]
    allowed = f"one of {', '.join([*short, *others])}, or TransformerLens's name for it"
    return InvalidValue(field, name, f"{allowed}, after blocks.LAYER. for one layer, from 0 to {config.n_layer - 1}")


def chosen_hooks(config: GPTConfig, hooks: HookChoice | None) -> Hooks:
    """The hooks of someone who uses the library. Raises ``InputError`` for a name that chooses no point."""
    found = Hooks()
    for name, hook in () if hooks is None else hooks.items() if isinstance(hooks, Mapping) else hooks:
        if not callable(hook):
            raise InvalidValue("hooks", hook, "a function of a tensor and a name for each point")
        check_takes_two(hook)
        found = found.with_hook(find_points(config, name, "hooks"), partial(checked, hook))
    return found


def check_takes_two(hook: Hook) -> None:
    """Raise ``InputError`` unless a hook can be called with a tensor and a name."""
    try:
        signature = inspect.signature(hook)
    except ValueError:  # of a function that is not written in Python
        return
    try:
        signature.bind(None, "")
    except TypeError:
        message = (
            f"A hook is called as f(tensor, name), but one of these functions takes {signature}: write def f(x, name)."
        )
        raise InputError("hooks", message) from None


class Cache(dict[str, Tensor]):
    """Activations by the full names of their points; other names of them, see ``matching``, find them too.

    ``cache["z", 3]`` is that of layer 3, and -1 the last layer. Of a point that was kept in every layer, ``cache["z"]``
    has all of them, ``(n_layer, B, T, ...)``.
    """

    def __init__(self, config: GPTConfig, found: Mapping[str, Tensor] | None = None) -> None:
        super().__init__(found or {})
        self.config = config

    def __repr__(self) -> str:
        return "\n".join(f"{name} {tuple(x.shape)}" for name, x in self.items())

    def __getitem__(self, name: str | tuple[str, int]) -> Tensor:
        """Raises ``InputError`` for a name that means no activation in the cache, or several that are not one point
        in every layer.
        """
        if isinstance(name, str) and name in self:
            return super().__getitem__(name)
        asked = name
        if isinstance(name, tuple) and len(name) == 2:
            point, layer = name
            layer = layer + self.config.n_layer if isinstance(layer, int) and layer < 0 else layer
            name = f"blocks.{layer}.{IN_WORDS.get(point, point)}"
        found = [point for point in matching(self.config, name) if point in self] if isinstance(name, str) else []
        if len(found) == 1:
            return super().__getitem__(found[0])
        if len(found) == self.config.n_layer and len({short_names(point) for point in found}) == 1:
            return torch.stack([super(Cache, self).__getitem__(point) for point in found])
        if found:
            raise InputError("cache", f"{asked!r} means several activations in the cache: {first_names(found)}.")
        kept = f"one of {first_names(list(self))}" if self else "a name that was in names: none was"
        raise InvalidValue("cache", asked, kept)


def first_names(names: list[str]) -> str:
    """The first names, and how many more there are."""
    shown, left = names[:MAX_NAMED], len(names) - MAX_NAMED
    return ", ".join(shown) + (f" and {left} more" if left > 0 else "")


def checked(hook: Hook, x: Tensor, name: str) -> Tensor:
    """What a hook makes of a copy, so that it changes no activation that the pass has computed before.

    Raises ``InputError`` unless it returns None or a tensor of the same shape.
    """
    x = x.clone()
    changed = hook(x, name)
    if changed is None or (isinstance(changed, Tensor) and changed.shape == x.shape):
        return x if changed is None else changed.to(x)
    found = tuple(changed.shape) if isinstance(changed, Tensor) else type(changed).__name__
    raise InputError("hooks", f"A hook at {name} must return None or a tensor {tuple(x.shape)}, found {found}.")
