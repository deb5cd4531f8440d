"""The loss of a model: on one batch, and on all of a text."""

import torch
from torch import Tensor
from torch.nn import functional as F

from ..gpt import GPT
from .data import consecutive_batches


def loss_of(gpt: GPT, inputs: Tensor, targets: Tensor, reduction: str = "mean") -> Tensor:
    """The cross-entropy of ``targets`` ``(B, T)``, the tokens that follow each of ``inputs``, in nats."""
    logits = gpt(inputs).logits.float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction=reduction)


@torch.inference_mode()
def validation_loss(gpt: GPT, ids: Tensor, context_length: int) -> float:
    """The loss on all of ``ids`` ``(n_tokens,)`` in nats per token: consecutive windows, every token counted once."""
    gpt.eval()
    device = gpt.wte.weight.device
    batches = consecutive_batches(ids, 16, context_length)
    total = sum(loss_of(gpt, inputs.to(device), targets.to(device), "sum").item() for inputs, targets in batches)
    return total / (len(ids) - 1)
