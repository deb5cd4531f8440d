"""The normalisations of what attention, the MLP and the output head read, and of what a layer adds.

Both are linear except for a division: ``norm(x) = linear(x) / divisor(x) + bias``.
"""

from torch import Tensor, nn

from ..config import GPTConfig
from .hooks import Hooks


class LayerNorm(nn.LayerNorm):
    """Layer norm (Ba et al. 2016)."""

    def fold(self, rows: Tensor, *, centred: bool = True) -> Tensor:
        """Convert ``rows`` ``(..., C)`` acting on ``norm(x)`` into rows acting on ``x``, folding in the linear part.

        ``norm(x) @ row`` is ``x @ fold(row) / divisor(x) + constant(row)``. Unless ``centred``, the subtraction of the
        mean is left out.
        """
        rows = rows * self.weight.to(rows)
        return rows - rows.mean(-1, keepdim=True) if centred else rows  # centring the rows centres the products

    def centred(self, x: Tensor) -> Tensor:
        """What is divided: ``x`` ``(..., C)`` without its mean."""
        return x - x.mean(-1, keepdim=True)

    def scaled(self, x: Tensor) -> Tensor:
        """The result for ``x`` ``(..., C)``, which was centred and divided."""
        return x * self.weight + self.bias

    def divisor(self, x: Tensor) -> Tensor:
        """The divisor of ``x`` ``(..., C)``, ``(...)``: its standard deviation."""
        return (x.var(-1, correction=0) + self.eps).sqrt()

    def constant(self, row: Tensor) -> float:
        """The part of ``norm(x) @ row`` that is the same for every ``x``."""
        return float(self.bias @ row)


class RMSNorm(nn.RMSNorm):
    """Root mean square norm (Zhang & Sennrich 2019), which has no bias and subtracts no mean."""

    def fold(self, rows: Tensor, *, centred: bool = True) -> Tensor:
        """As for ``LayerNorm``; there is nothing to centre."""
        del centred
        return rows * self.weight.to(rows)

    def centred(self, x: Tensor) -> Tensor:
        """What is divided: ``x`` ``(..., C)`` itself."""
        return x

    def scaled(self, x: Tensor) -> Tensor:
        """The result for ``x`` ``(..., C)``, which was divided."""
        return x * self.weight

    def divisor(self, x: Tensor) -> Tensor:
        """The divisor of ``x`` ``(..., C)``, ``(...)``: its root mean square."""
        return (x.square().mean(-1) + self.eps).sqrt()  # type: ignore[operator]

    def constant(self, row: Tensor) -> float:
        del row
        return 0.0


class HeadNorm(RMSNorm):
    """The norm of queries or keys ``(B, heads, T, head_dim)``: of each, or of those of ``n_joint`` heads together."""

    def __init__(self, head_dim: int, n_joint: int, *, eps: float) -> None:
        super().__init__(head_dim * n_joint, eps=eps)
        self.n_joint = n_joint

    def forward(self, heads: Tensor) -> Tensor:
        if self.n_joint == 1:
            return super().forward(heads)
        joined = super().forward(heads.transpose(1, 2).flatten(2))
        return joined.unflatten(-1, (self.n_joint, -1)).transpose(1, 2)


class NoNorm(nn.Identity):
    """In place of a norm that a model lacks."""

    def fold(self, rows: Tensor, *, centred: bool = True) -> Tensor:
        """``rows`` ``(..., C)`` as they are."""
        del centred
        return rows

    def divisor(self, x: Tensor) -> Tensor:
        """1 for each of ``x`` ``(..., C)``, ``(...)``."""
        return x.new_ones(x.shape[:-1])


AnyNorm = LayerNorm | RMSNorm | NoNorm


def normalise(norm: AnyNorm, x: Tensor, hooks: Hooks) -> Tensor:
    """``norm(x)``, with hooks at its divisor and at the quotient."""
    if isinstance(norm, NoNorm):
        return x
    if not hooks.have("hook_scale", "hook_normalized"):
        plain: Tensor = norm(x)
        return plain
    divided = norm.centred(x) / hooks.at("hook_scale", norm.divisor(x)[..., None])
    return norm.scaled(hooks.at("hook_normalized", divided))


def held(norm: AnyNorm, part: Tensor, whole: Tensor | None) -> Tensor:
    """What ``part`` ``(..., C)`` of an RMSNorm's input is of its output, divided as the ``whole`` input is.

    Parts that add up to the whole then add up to its norm. Without a ``whole``, nothing is divided.
    """
    gained = norm.fold(part)
    return gained if whole is None else gained / norm.divisor(whole)[..., None]


def make_norm(config: GPTConfig) -> LayerNorm | RMSNorm:
    """The norm of a residual stream, ``(..., C) -> (..., C)``."""
    return (RMSNorm if config.norm == "RMSNorm" else LayerNorm)(config.n_embd, eps=config.layer_norm_epsilon)


def make_qk_norm(config: GPTConfig) -> tuple[HeadNorm, HeadNorm] | None:
    """The norms of a layer's queries and keys, if it has any."""
    if not config.qk_norm:
        return None
    n_joint = (config.n_head, config.n_kv_head) if config.joint_qk_norm else (1, 1)
    query, key = (HeadNorm(config.head_dim, n, eps=config.layer_norm_epsilon) for n in n_joint)
    return query, key
