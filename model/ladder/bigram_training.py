"""Rung 3 of the ladder, live: the training of a bigram model on a text, reported as it progresses."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from .bigram import BigramModel, counted_bigram_loss, train_bigram
from .terms import seeded
from .text import CharacterTokenizer

SAMPLE_LENGTH = 160  # characters that the model generates before and after training
TABLE_SIZE = 14  # characters in the table of what follows what
MAX_POINTS = 200  # of the loss curve


@dataclass
class BigramTraining:
    """Trains a bigram model on ``text``: call ``begin`` once, ``advance`` until ``done``, then ``end``.

    Each returns what to report at that point, with losses in nats. ``text`` must have at least two characters; ``seed``
    is used for the batches and the samples.
    """

    text: str
    steps: int
    learning_rate: float = 0.01
    seed: int = 1

    def __post_init__(self) -> None:
        self.tokenizer = CharacterTokenizer(self.text)
        self.ids = torch.tensor(self.tokenizer.encode(self.text))
        vocab_size = len(self.tokenizer.characters)
        self.model = seeded(1337, lambda: BigramModel(vocab_size))
        self.generator = torch.Generator().manual_seed(self.seed)
        self.losses: list[float] = []
        context_length = min(8, len(self.ids) - 1)
        self.training: Iterator[float] = train_bigram(
            self.model,
            self.ids,
            steps=self.steps,
            batch_size=min(32, len(self.ids)),
            context_length=context_length,
            learning_rate=self.learning_rate,
            generator=self.generator,
        )

    def begin(self) -> dict[str, object]:
        """Before training: the loss on the whole text, that of a uniform guess, and the lowest possible one."""
        characters = self.tokenizer.characters
        return {
            "stage": "before",
            "characters": characters,
            "n": len(self.ids),
            "uniform": torch.tensor(float(len(characters))).log().item(),
            "floor": counted_bigram_loss(self.ids, len(characters)),
            "loss": self.whole_loss(),
            "wrote": self.sample(),
        }

    def advance(self, seconds: float) -> dict[str, object]:
        """Train for about ``seconds``. Each of the ``points`` of the loss curve is the mean of ``every`` batches."""
        until = time.perf_counter() + seconds
        every = -(-self.steps // MAX_POINTS)
        first = len(self.losses) // every
        while len(self.losses) < self.steps:
            self.losses.append(next(self.training))
            if time.perf_counter() >= until:
                break
        n_points = len(self.losses) // every
        points = torch.tensor(self.losses[first * every : n_points * every]).view(-1, every).mean(dim=1)
        return {"stage": "training", "step": len(self.losses), "steps": self.steps, "every": every,
                "points": points.tolist()}  # fmt: skip

    @property
    def done(self) -> bool:
        return len(self.losses) >= self.steps

    def end(self, sentence: str) -> dict[str, object]:
        """After training: loss, sample, table of what follows what, and the probabilities of ``sentence``."""
        frequent = torch.bincount(self.ids).argsort(descending=True, stable=True)[:TABLE_SIZE].sort().values
        return {
            "stage": "after",
            "loss": self.whole_loss(),
            "wrote": self.sample(),
            "frequent": [self.tokenizer.characters[i] for i in frequent],
            "follows": self.follows(frequent, frequent).tolist(),
            "sentence": self.rate(sentence),
        }

    def whole_loss(self) -> float:
        """The loss on the whole text."""
        with torch.inference_mode():
            return self.model.loss(self.ids[None, :-1], self.ids[None, 1:]).item()

    def sample(self) -> str:
        """A text that the model generates, from the first character of the training text."""
        generator = torch.Generator().manual_seed(self.seed)
        return self.tokenizer.decode(self.model.generate(self.ids[None, :1], SAMPLE_LENGTH, generator)[0].tolist())

    def follows(self, these: Tensor, followers: Tensor) -> Tensor:
        """The probability of each of ``followers`` after each of ``these`` characters: ``[this][follower]``."""
        with torch.inference_mode():
            return self.model(these).softmax(dim=-1)[:, followers]

    def rate(self, sentence: str) -> list[dict[str, object]]:
        """Each character with its probability after the previous one, or None if the text lacks either of them."""
        ids = [self.tokenizer.ids.get(character) for character in sentence]
        rated: list[dict[str, object]] = [
            {"text": c, "known": c in self.tokenizer.ids, "probability": None} for c in sentence
        ]
        for position, (this, follower) in enumerate(pairwise(ids), start=1):
            if this is not None and follower is not None:
                rated[position]["probability"] = self.follows(torch.tensor([this]), torch.tensor([follower])).item()
        return rated
