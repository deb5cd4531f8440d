"""Means over samples, with their standard errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


def standard_error(samples: Tensor) -> Tensor:
    """The standard error of the mean over the first dimension of ``(n, ...)``; 0 for a single sample."""
    n = len(samples)
    return samples.std(0, correction=1) / n**0.5 if n > 1 else torch.zeros_like(samples[0])


def mean_and_error(samples: Sequence[Any]) -> tuple[Any, Any]:
    """The mean of ``samples`` (numbers, or nested lists or arrays of one shape) and its standard error, as lists."""
    stacked = torch.from_numpy(np.stack([np.asarray(each, dtype=np.float64) for each in samples]))
    return stacked.mean(0).tolist(), standard_error(stacked).tolist()
