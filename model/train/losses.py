"""The loss of a model on a batch or a whole text, and the baselines it has to beat: uniform and bigram."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ..gpt import GPT
from .data import consecutive_batches

SMOOTHING = 0.1  # added to the count of every pair, so that none is impossible


def loss_of(gpt: GPT, inputs: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """The cross-entropy of ``targets`` ``(B, T)``, the tokens that follow each of ``inputs``, in nats."""
    logits = gpt(inputs).logits.float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)


@torch.inference_mode()
def validation_loss(gpt: GPT, ids: Tensor, context_length: int) -> float:
    """The loss on all of ``ids`` ``(n_tokens,)`` in nats per token: consecutive windows, every token counted once."""
    gpt.eval()
    device = gpt.device
    batches = consecutive_batches(ids, 16, context_length)
    total = sum(loss_of(gpt, inputs.to(device), targets.to(device), "sum").item() for inputs, targets in batches)
    return total / (len(ids) - 1)


def uniform_loss(vocab_size: int) -> float:
    """Nats per token of a model to which all tokens are equally probable."""
    return math.log(vocab_size)


def bigram_loss(train: Tensor, inputs: Tensor, targets: Tensor, vocab_size: int) -> float:
    """Nats per token of ``targets``, each given the token before it in ``inputs`` of the same shape.

    The probabilities are the counts of the pairs in ``train`` ``(n_tokens,)``.
    """
    inputs, targets = inputs.flatten().long(), targets.flatten().long()
    pairs = train[:-1].long() * vocab_size + train[1:].long()
    seen, counts = pairs.unique(return_counts=True)
    totals = torch.bincount(train[:-1].long(), minlength=vocab_size).double() + SMOOTHING * vocab_size
    wanted = inputs * vocab_size + targets
    places = torch.searchsorted(seen, wanted).clamp(max=len(seen) - 1)
    found = torch.where(seen[places] == wanted, counts[places], 0).double() + SMOOTHING
    return float(-(found / totals[inputs]).log().mean())
