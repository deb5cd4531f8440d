"""Rung 3 of the ladder: the smallest language model, which predicts from the last token alone, and its training."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .terms import seeded, softmax_terms
from .text import CharacterTokenizer, check_ids, check_range, random_batch

SPLIT = 0.9  # of the text is for training; the rest is held out
BLOCK = 8  # characters per window
SAMPLE_LENGTH = 160  # characters that the model generates at each snapshot
TABLE_SIZE = 14  # characters in the table of follow-up probabilities
MAX_POINTS = 200  # on the loss curve
N_SNAPSHOTS = 12  # of the table, from the first to the last step
SHOWN_BEGINNING = 300  # characters of the text that are reported, also as ids


class NextTokenModel(nn.Module):
    """Any model whose call ``(B, T) -> (B, T, vocab_size)`` returns the logits of the token after each."""

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross-entropy of ``targets`` ``(B, T)``, the tokens that follow ``inputs`` ``(B, T)``, in nats."""
        return F.cross_entropy(self(inputs).flatten(0, -2), targets.flatten())


class BigramModel(NextTokenModel):
    """Predicts the next token from the last one alone: row ``a`` of the table holds the logits of what follows ``a``.

    Before training, its loss is above the ``ln(vocab_size)`` nats of a uniform guess, because random logits prefer some
    tokens for no reason. Training can lower it to ``counted_bigram_loss`` but no further, because the model sees
    only one token.
    """

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of the token that follows each: ``(B, T) -> (B, T, vocab_size)``."""
        check_range(ids, self.table.num_embeddings)
        return self.table(ids)

    @torch.no_grad()
    def generate(self, ids: Tensor, max_new_tokens: int, generator: torch.Generator | None = None) -> Tensor:
        """Append sampled tokens one at a time: ``(B, T) -> (B, T + max_new_tokens)``."""
        for _ in range(max_new_tokens):
            probabilities = torch.softmax(self(ids[:, -1]), dim=-1)
            ids = torch.cat([ids, torch.multinomial(probabilities, 1, generator=generator)], dim=1)
        return ids


def train_bigram(
    model: NextTokenModel,
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


@dataclass
class BigramTraining:
    """Trains a bigram model on ``text``: call ``begin`` once, ``advance`` until ``done``, then ``end``.

    Each returns a report for that point, with losses in nats. ``text`` must have at least two characters; ``seed``
    determines the first table, the batches and the samples. The last tenth is held out, if that leaves two characters
    for each part.
    """

    text: str
    steps: int
    learning_rate: float = 0.01
    seed: int = 1337  # of Karpathy's lecture

    def __post_init__(self) -> None:
        self.tokenizer = CharacterTokenizer(self.text)
        self.ids = torch.tensor(self.tokenizer.encode(self.text))
        n = int(SPLIT * len(self.ids))
        is_split = n >= 2 and len(self.ids) - n >= 2
        self.trained_on, self.held_out = (self.ids[:n], self.ids[n:]) if is_split else (self.ids, self.ids[:0])
        self.frequent = torch.bincount(self.ids).argsort(descending=True, stable=True)[:TABLE_SIZE].sort().values
        vocab_size = len(self.tokenizer.characters)
        # The lecture seeds once: its batches are drawn by the generator that has drawn the table.
        self.model, state = seeded(self.seed, lambda: (BigramModel(vocab_size), torch.get_rng_state()))
        self.generator = torch.Generator()
        self.generator.set_state(state)
        self.losses: list[float] = []
        self.held_out_losses: list[float | None] = []  # one for each point of the curve
        self.block = min(BLOCK, len(self.trained_on) - 1)
        self.every = -(-self.steps // MAX_POINTS)
        # Denser at the beginning, where the table changes most.
        places = (round(self.steps * (i / (N_SNAPSHOTS - 1)) ** 2.5) for i in range(N_SNAPSHOTS))
        self.snapshot_steps = sorted(set(places))
        self.training: Iterator[float] = train_bigram(
            self.model,
            self.trained_on,
            steps=self.steps,
            batch_size=min(32, len(self.trained_on)),
            context_length=self.block,
            learning_rate=self.learning_rate,
            generator=self.generator,
        )

    def begin(self) -> dict[str, object]:
        """Before training: the text as data, the losses, the loss of a uniform guess, and the lowest possible loss."""
        characters = self.tokenizer.characters
        return {
            "stage": "before",
            "characters": characters,
            "n": len(self.ids),
            "n_train": len(self.trained_on),
            "n_held_out": len(self.held_out),
            "beginning": self.text[:SHOWN_BEGINNING],
            "ids": self.ids[:SHOWN_BEGINNING].tolist(),
            "batch": self.first_batch(),
            "uniform": torch.tensor(float(len(characters))).log().item(),
            "floor": counted_bigram_loss(self.trained_on, len(characters)),
            "loss": self.loss_on(self.trained_on),
            "held_out": self.loss_on(self.held_out),
            "wrote": self.sample(),
            "frequent": [characters[i] for i in self.frequent],
            "snapshots": [self.snapshot(0)],
        }

    def first_batch(self) -> dict[str, list[list[int]]]:
        """Four windows of eight characters at random positions in the training part, with their targets."""
        generator = torch.Generator().manual_seed(1337)
        inputs, targets = random_batch(self.trained_on, min(4, len(self.trained_on)), self.block, generator)
        return {"inputs": inputs.tolist(), "targets": targets.tolist()}

    def advance(self, seconds: float) -> dict[str, object]:
        """Train for about ``seconds``. Each of the ``points`` of the loss curve is the mean of ``every`` batches."""
        until = time.perf_counter() + seconds
        every = self.every
        first = len(self.losses) // every
        snapshots = []
        while len(self.losses) < self.steps:
            self.losses.append(next(self.training))
            step = len(self.losses)
            if step % every == 0:
                self.held_out_losses.append(self.loss_on(self.held_out))
            if step in self.snapshot_steps:
                snapshots.append(self.snapshot(step))
            if time.perf_counter() >= until:
                break
        n_points = len(self.losses) // every
        points = torch.tensor(self.losses[first * every : n_points * every]).view(-1, every).mean(dim=1)
        return {"stage": "training", "step": len(self.losses), "steps": self.steps, "every": every,
                "points": points.tolist(), "held_out": self.held_out_losses[first:n_points],
                "snapshots": snapshots}  # fmt: skip

    @property
    def done(self) -> bool:
        return len(self.losses) >= self.steps

    def end(self, sentence: str) -> dict[str, Any]:
        """After training: losses, a sample, and the probabilities of ``sentence``."""
        with torch.no_grad():
            table = self.model.table.weight.softmax(dim=-1)
        return {
            "stage": "after",
            "loss": self.loss_on(self.trained_on),
            "held_out": self.loss_on(self.held_out),
            "wrote": self.sample(),
            "sentence": rate(sentence, self.tokenizer.characters, table.tolist()),
        }

    def snapshot(self, step: int) -> dict[str, object]:
        """The current table of follow-up probabilities with the terms of its softmax, and a sample."""
        with torch.no_grad():
            logits = self.model(self.frequent)
        largest, exponentials, sums = softmax_terms(logits)
        return {
            "step": step,
            "loss": self.loss_on(self.trained_on),
            "held_out": self.loss_on(self.held_out),
            "logits": logits[:, self.frequent].tolist(),
            "largest": largest.tolist(),
            "sums": sums.tolist(),
            "follows": (exponentials / sums[:, None])[:, self.frequent].tolist(),
            "wrote": self.sample(),
        }

    def loss_on(self, ids: Tensor) -> float | None:
        """The loss over ``ids``, or None if there are too few."""
        if len(ids) < 2:
            return None
        with torch.no_grad():
            return self.model.loss(ids[None, :-1], ids[None, 1:]).item()

    def sample(self) -> str:
        """A text that the model generates, from the first character of the training text."""
        generator = torch.Generator().manual_seed(self.seed)
        return self.tokenizer.decode(self.model.generate(self.ids[None, :1], SAMPLE_LENGTH, generator)[0].tolist())


def rate(sentence: str, characters: list[str], table: list[list[float]]) -> list[dict[str, object]]:
    """Each character with its probability after the one before it, None where the text lacks either."""
    places = {character: place for place, character in enumerate(characters)}
    indices = [places.get(character) for character in sentence]
    pairs = [None if a is None or b is None else table[a][b] for a, b in pairwise([None, *indices])]
    return [
        {"text": character, "known": character in places, "probability": p}
        for character, p in zip(sentence, pairs, strict=True)
    ]
