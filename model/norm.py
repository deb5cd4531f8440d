"""The normalisation of the residual stream before each part that reads it."""

from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """Layer norm (Ba et al. 2016), which is linear but for a division: ``norm(x) = linear(x) / divisor(x) + bias``."""

    def fold(self, rows: Tensor, *, centred: bool = True) -> Tensor:
        """``rows`` ``(..., C)`` that read ``norm(x)`` as rows that read ``x``, with the linear part folded in.

        ``norm(x) @ row`` is ``x @ fold(row) / divisor(x) + bias @ row``. Unless ``centred``, the subtraction of the
        mean is left out.
        """
        rows = rows * self.weight.to(rows)
        return rows - rows.mean(-1, keepdim=True) if centred else rows  # centring the rows centres the products

    def divisor(self, x: Tensor) -> Tensor:
        """What ``x`` ``(..., C)`` is divided by, ``(...)``: its standard deviation."""
        return (x.var(-1, correction=0) + self.eps).sqrt()
