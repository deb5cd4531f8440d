"""A map of all heads: heads that do alike are neighbours on it."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadMap:
    """``points`` ``(n_layer, n_head, 2)``, and what the two axes are.

    ``explained`` ``(2,)`` is the share of the variance along each axis. ``axes`` ``(2, features)`` says how much each
    feature counts on it: a unit vector in standardised features.
    """

    points: Tensor
    explained: Tensor
    axes: Tensor


def head_map(features: Tensor) -> HeadMap:
    """Project heads ``(n_layer, n_head, features)`` to the two directions in which they vary most.

    Principal component analysis (Pearson 1901) by a singular value decomposition. Each feature is standardised first,
    so that none counts for more because of its unit; a feature that is the same for all heads counts for nothing. The
    sign of an axis is arbitrary, and chosen such that its largest entry is positive.
    """
    rows = features.double().flatten(0, 1)
    centred = rows - rows.mean(0)
    spread = centred.pow(2).mean(0).sqrt()
    rows = torch.where(spread > 1e-9, centred / spread.clamp_min(1e-9), 0.0)
    _, singular, axes = torch.linalg.svd(rows, full_matrices=False)
    missing = max(0, 2 - len(axes))
    axes = torch.cat([axes[:2], torch.zeros(missing, rows.shape[1], dtype=rows.dtype)])
    variances = torch.cat([singular.pow(2), torch.zeros(missing, dtype=rows.dtype)])
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    explained = variances[:2] / variances.sum().clamp_min(1e-12)
    return HeadMap((rows @ axes.T).unflatten(0, features.shape[:2]).float(), explained.float(), axes.float())
