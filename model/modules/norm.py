"""The normalisations of the residual stream before attention, the MLP and the output head.

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


def normalise(norm: LayerNorm | RMSNorm, x: Tensor, hooks: Hooks) -> Tensor:
    """``norm(x)``, with hooks at its divisor and at the quotient."""
    if not hooks.have("hook_scale", "hook_normalized"):
        plain: Tensor = norm(x)
        return plain
    divided = norm.centred(x) / hooks.at("hook_scale", norm.divisor(x)[..., None])
    return norm.scaled(hooks.at("hook_normalized", divided))


def make_norm(config: GPTConfig) -> LayerNorm | RMSNorm:
    """The norm of a residual stream, ``(..., C) -> (..., C)``."""
    return (RMSNorm if config.norm == "RMSNorm" else LayerNorm)(config.n_embd, eps=config.layer_norm_epsilon)
