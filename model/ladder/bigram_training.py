"""Rung 3 of the ladder as it is watched: a bigram model on its way through a text, told piece by piece."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from .taken_apart import seeded
from .text import BigramModel, CharacterTokenizer, counted_bigram_loss, train_bigram

WRITTEN = 160  # characters of the bigram model's own writing, before and after
SHOWN = 14  # characters in the table of what follows what
POINTS = 200  # of the loss curve, at most


@dataclass
class BigramTraining:
    """``begin`` once, ``advance`` until ``done``, then ``end``: each gives what there is to tell, losses in nats.

    ``text`` has at least two characters; ``seed`` is that of the batches and of the writing.
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

    def begin(self) -> dict[str, Any]:
        """What is known before the first step: the loss of the whole text, of a uniform guess, and of a count."""
        characters = self.tokenizer.characters
        return {
            "stage": "before",
            "characters": characters,
            "n": len(self.ids),
            "uniform": torch.tensor(float(len(characters))).log().item(),
            "floor": counted_bigram_loss(self.ids, len(characters)),
            "loss": self.whole_loss(),
            "wrote": self.write(),
        }

    def advance(self, seconds: float) -> dict[str, Any]:
        """Train for a moment; the mean loss of every so many batches is a point of the curve."""
        until = time.perf_counter() + seconds
        every = -(-self.steps // POINTS)
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

    def end(self, sentence: str) -> dict[str, Any]:
        """The trained model: its loss, its writing, what follows what, and ``sentence`` as it sees it."""
        frequent = torch.bincount(self.ids).argsort(descending=True, stable=True)[:SHOWN].sort().values
        return {
            "stage": "after",
            "loss": self.whole_loss(),
            "wrote": self.write(),
            "frequent": [self.tokenizer.characters[i] for i in frequent],
            "follows": self.follows(frequent, frequent).tolist(),
            "sentence": self.judge(sentence),
        }

    def whole_loss(self) -> float:
        with torch.inference_mode():
            return self.model.loss(self.ids[None, :-1], self.ids[None, 1:]).item()

    def write(self) -> str:
        generator = torch.Generator().manual_seed(self.seed)
        return self.tokenizer.decode(self.model.generate(self.ids[None, :1], WRITTEN, generator)[0].tolist())

    def follows(self, these: Tensor, followers: Tensor) -> Tensor:
        """The probability of each follower after each of these characters: ``[this][next]``."""
        with torch.inference_mode():
            return self.model(these).softmax(dim=-1)[:, followers]

    def judge(self, sentence: str) -> list[dict[str, Any]]:
        """Each character with its probability after the one before it; None where the text lacks one of them."""
        ids = [self.tokenizer.ids.get(character) for character in sentence]
        judged: list[dict[str, Any]] = [
            {"text": c, "known": c in self.tokenizer.ids, "probability": None} for c in sentence
        ]
        for at, (this, follower) in enumerate(pairwise(ids), start=1):
            if this is not None and follower is not None:
                judged[at]["probability"] = self.follows(torch.tensor([this]), torch.tensor([follower])).item()
        return judged
