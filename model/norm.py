"""The normalisation of the residual stream before attention, the MLP and the output head."""

from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """Layer norm (Ba et al. 2016), linear except for a division: ``norm(x) = linear(x) / divisor(x) + bias``."""

    def fold(self, rows: Tensor, *, centred: bool = True) -> Tensor:
        """Convert ``rows`` ``(..., C)`` acting on ``norm(x)`` into rows acting on ``x``, folding in the linear part.

        ``norm(x) @ row`` is ``x @ fold(row) / divisor(x) + bias @ row``. Unless ``centred``, the subtraction of the
        mean is left out.
        """
        rows = rows * self.weight.to(rows)
        return rows - rows.mean(-1, keepdim=True) if centred else rows  # centring the rows centres the products

    def divisor(self, x: Tensor) -> Tensor:
        """The divisor of ``x`` ``(..., C)``, ``(...)``: its standard deviation."""
        return (x.var(-1, correction=0) + self.eps).sqrt()
