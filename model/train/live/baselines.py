"""What a model must beat: the loss of guessing evenly, and that of knowing the previous token alone."""

import math

import torch
from torch import Tensor

SMOOTHING = 0.1  # added to the count of every pair, so that none is impossible


def uniform_loss(vocab_size: int) -> float:
    """Nats per token of a model to which all tokens are equally probable."""
    return math.log(vocab_size)


def bigram_loss(train: Tensor, validation: Tensor, vocab_size: int) -> float:
    """Nats per token of ``validation`` under the counts of the pairs in ``train``, both ``(n_tokens,)``."""
    pairs = train[:-1].long() * vocab_size + train[1:].long()
    seen, counts = pairs.unique(return_counts=True)
    totals = torch.bincount(train[:-1].long(), minlength=vocab_size).double() + SMOOTHING * vocab_size
    wanted = validation[:-1].long() * vocab_size + validation[1:].long()
    places = torch.searchsorted(seen, wanted).clamp(max=len(seen) - 1)
    found = torch.where(seen[places] == wanted, counts[places], 0).double() + SMOOTHING
    return float(-(found / totals[validation[:-1].long()]).log().mean())
