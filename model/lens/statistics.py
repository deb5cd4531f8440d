"""Means over samples, with their standard errors."""

import torch
from torch import Tensor


def standard_error(samples: Tensor) -> Tensor:
    """The standard error of the mean over the first dimension of ``(n, ...)``; 0 for a single sample."""
    n = len(samples)
    return samples.std(0, correction=1) / n**0.5 if n > 1 else torch.zeros_like(samples[0])
