"""Hooks: functions that see, and may change, the activations at the named points of a forward pass."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from torch import Tensor

Hook = Callable[[Tensor, str], Tensor | None]  # the activation and its name; what to continue with, if not the same


class Hooks:
    """The functions at each point of a pass, in their order. A part of the model names its points without ``part``."""

    def __init__(self, by_point: Mapping[str, Sequence[Hook]] | None = None, part: str = "") -> None:
        self.by_point: Mapping[str, Sequence[Hook]] = {} if by_point is None else by_point
        self.part = part

    def with_hook(self, names: Iterable[str], hook: Hook) -> "Hooks":
        """The same with one more function at ``names``, called after those that are there."""
        more = {self.part + name: [*self.by_point.get(self.part + name, ()), hook] for name in names}
        return Hooks({**self.by_point, **more}, self.part)

    def within(self, part: str) -> "Hooks":
        """The same as a part of the model names them."""
        return Hooks(self.by_point, self.part + part) if self.by_point else self

    def have(self, *names: str) -> bool:
        """Whether any of these points has a function."""
        return bool(self.by_point) and any(self.part + name in self.by_point for name in names)

    def at(self, name: str, x: Tensor) -> Tensor:
        """What to continue with after the functions at a point."""
        if self.by_point:
            name = self.part + name
            for hook in self.by_point.get(name, ()):
                changed = hook(x, name)
                x = x if changed is None else changed
        return x

    def of_heads(self, names: Sequence[str], given: Sequence[Tensor]) -> Sequence[Tensor]:
        """The same for vectors of heads at several points, ``(B, heads, T, head_dim)`` each: functions see ``(B, T,
        heads, head_dim)``, and if one of them returns more rows than it was given, all have as many.
        """
        if not self.have(*names):
            return given
        heads = [self.at(name, x.transpose(1, 2)).transpose(1, 2) for name, x in zip(names, given, strict=True)]
        rows = max(map(len, heads))
        return [x.expand(rows, -1, -1, -1) for x in heads]


NO_HOOKS = Hooks()
