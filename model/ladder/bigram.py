"""Rung 3 of the ladder: the smallest language model, which predicts the next token from the last one alone."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .text import check_ids, check_range, random_batch


class BigramModel(nn.Module):
    """Predicts the next token from the last one alone: row ``a`` of the table holds the logits of what follows ``a``.

    Before training, its loss is above the ``ln(vocab_size)`` nats of a uniform guess, because random logits prefer some
    tokens for no reason. Training can lower it to :func:`counted_bigram_loss` but no further, as the model never looks
    further back.
    """

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of the token that follows each: ``(B, T) -> (B, T, vocab_size)``."""
        check_range(ids, self.table.num_embeddings)
        return self.table(ids)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy of ``targets`` ``(B, T)``, the tokens that follow ``inputs`` ``(B, T)``, in nats."""
        return F.cross_entropy(self(inputs).flatten(0, -2), targets.flatten())

    @torch.inference_mode()
    def generate(self, ids: Tensor, max_new_tokens: int, generator: torch.Generator | None = None) -> Tensor:
        """Append sampled tokens one at a time: ``(B, T) -> (B, T + max_new_tokens)``."""
        for _ in range(max_new_tokens):
            probabilities = torch.softmax(self(ids[:, -1]), dim=-1)
            ids = torch.cat([ids, torch.multinomial(probabilities, 1, generator=generator)], dim=1)
        return ids


def train_bigram(
    model: BigramModel,
    ids: Tensor,
    *,
    steps: int,
    batch_size: int = 32,
    context_length: int = 8,
    learning_rate: float = 1e-3,
    generator: torch.Generator | None = None,
) -> Iterator[float]:
    """Train with AdamW on random batches of ``ids`` ``(N,)`` and yield the loss before each update, in nats."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for _ in range(steps):
        loss = model.loss(*random_batch(ids, batch_size, context_length, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def counted_bigram_loss(ids: Tensor, vocab_size: int) -> float:
    """The lowest loss that any bigram model can reach on ``ids`` ``(N,)``, in nats.

    Cross-entropy is lowest if the predicted probabilities equal the observed frequencies, so counting pairs is enough
    and nothing has to be trained. It is the conditional entropy H(next | this) (Shannon 1948, section 6).
    """
    check_ids(ids, at_least=2)
    check_range(ids, vocab_size)
    pairs = ids[:-1] * vocab_size + ids[1:]
    counts = torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size).double()
    totals = counts.sum(dim=1)
    entropy = torch.special.entr(counts / totals.clamp(min=1)[:, None]).sum(dim=1)  # -p ln p, with 0 ln 0 = 0
    return float(totals @ entropy / totals.sum())
