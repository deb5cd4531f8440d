"""Rung 3: a text is written, a bigram model learns it, and all of it is told while it happens, line by line of JSON."""

import asyncio
import time
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from model import LoadedModel, PromptError, Step
from model.ladder import BigramModel, CharacterTokenizer, counted_bigram_loss, train_bigram
from model.ladder_shown import seeded
from model.sampling import SamplingSettings
from model.ticket import Ticket
from model.tokenizer import CharTokenizer

from ..engines import Engines
from ..job import Job
from ..settings import BIGRAM_CHARACTERS, BIGRAM_TEXTS, MAX_ALPHABET, UPDATE_SECONDS
from ..shelf import Shelf
from ..validate import BadInput, read_model
from .ask import BigramAsk, check_lesson, check_sentence
from .text_rungs import SHOWN_TOKENS

WRITER = "shakespeare-char"
WRITTEN = 160  # characters of the bigram model's own writing, before and after
SHOWN = 14  # characters in the table of what follows what
POINTS = 200  # of the loss curve, at most


def choose_writer(shelf: Shelf, name: str | None) -> LoadedModel:
    """The model that is asked for, else the one trained on Shakespeare, else the first that writes characters."""
    if name is None:
        by_character = (n for n, gpt in shelf.models.items() if isinstance(gpt.tokenizer, CharTokenizer))
        name = WRITER if WRITER in shelf.models else next(by_character, None)
    return read_model(shelf, name)[1]


async def write_lesson(
    engines: Engines, gpt: LoadedModel, beginning: list[int], seed: int, client: Hashable
) -> AsyncIterator[list[str]]:
    """Several texts that a model writes at once, as far as they are. Raises ``Busy`` or ``Closed``."""
    length = max(1, min(BIGRAM_CHARACTERS // BIGRAM_TEXTS, gpt.config.context_length - len(beginning)))
    texts = [gpt.tokenizer.decode(beginning)] * BIGRAM_TEXTS
    job = Job()
    settings = SamplingSettings(temperature=0.8)
    tickets = [
        Ticket(gpt.draft(beginning, length, settings, seed=seed, place=(0, i)), job.sink(), client,
               deadline=engines.deadline())
        for i in range(BIGRAM_TEXTS)
    ]  # fmt: skip
    try:
        engines.start(job, gpt, *tickets)
        async with aclosing(job.follow(UPDATE_SECONDS)) as followed:
            async for events in followed:
                for index, event in events:
                    if isinstance(event, Step):
                        texts[index] += event.text
                yield texts
    finally:
        engines.leave(job, "learn")


@dataclass
class Training:
    """A bigram model on the way through a text; ``advance`` and ``report`` run in a worker thread."""

    ask: BigramAsk
    text: str

    def __post_init__(self) -> None:
        self.tokenizer = CharacterTokenizer(self.text)
        self.ids = torch.tensor(self.tokenizer.encode(self.text))
        vocab_size = len(self.tokenizer.characters)
        self.model = seeded(1337, lambda: BigramModel(vocab_size))
        self.generator = torch.Generator().manual_seed(self.ask.seed)
        self.losses: list[float] = []
        context_length = min(8, len(self.ids) - 1)
        self.steps: Iterator[float] = train_bigram(
            self.model,
            self.ids,
            steps=self.ask.steps,
            batch_size=min(32, len(self.ids)),
            context_length=context_length,
            learning_rate=self.ask.learning_rate,
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
        every = -(-self.ask.steps // POINTS)
        first = len(self.losses) // every
        while len(self.losses) < self.ask.steps:
            self.losses.append(next(self.steps))
            if time.perf_counter() >= until:
                break
        n_points = len(self.losses) // every
        points = torch.tensor(self.losses[first * every : n_points * every]).view(-1, every).mean(dim=1)
        return {"stage": "training", "step": len(self.losses), "steps": self.ask.steps, "every": every,
                "points": points.tolist()}  # fmt: skip

    @property
    def done(self) -> bool:
        return len(self.losses) >= self.ask.steps

    def end(self) -> dict[str, Any]:
        frequent = torch.bincount(self.ids).argsort(descending=True, stable=True)[:SHOWN].sort().values
        return {
            "stage": "after",
            "loss": self.whole_loss(),
            "wrote": self.write(),
            "frequent": [self.tokenizer.characters[i] for i in frequent],
            "follows": self.follows(frequent, frequent).tolist(),
            "sentence": self.judge(self.ask.sentence[:SHOWN_TOKENS]),
            "n_sentence": len(self.ask.sentence),
        }

    def whole_loss(self) -> float:
        with torch.inference_mode():
            return self.model.loss(self.ids[None, :-1], self.ids[None, 1:]).item()

    def write(self) -> str:
        generator = torch.Generator().manual_seed(self.ask.seed)
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


async def learn_bigram(
    shelf: Shelf, engines: Engines, ask: BigramAsk, client: Hashable
) -> AsyncIterator[dict[str, Any]]:
    """Everything that happens; whoever leaves ends it at the next line. Raises ``BadInput`` before the first one."""
    text = ask.lesson
    if not text:
        gpt = choose_writer(shelf, ask.model)
        try:
            beginning = gpt.read_prompt("\n")
        except PromptError:
            beginning = [0]
        async with aclosing(write_lesson(engines, gpt, beginning, ask.seed, client)) as written:
            async for texts in written:
                text = "\n".join(part.strip("\n") for part in texts)
                yield {"stage": "writing", "model": gpt.name, "text": text}
    training = await asyncio.to_thread(Training, ask, text)
    yield await asyncio.to_thread(training.begin)
    while not training.done:
        yield await asyncio.to_thread(training.advance, UPDATE_SECONDS)
    yield await asyncio.to_thread(training.end)


def check_bigram(shelf: Shelf, ask: BigramAsk) -> None:
    """Raise ``BadInput`` for what cannot be learned from, before anything is sent."""
    check_sentence(ask.sentence)
    check_lesson(ask.lesson)
    if ask.lesson and len(ask.lesson) < 2:
        raise BadInput("lesson", "A bigram model learns from pairs: type at least two characters.")
    if (found := len(set(ask.lesson))) > MAX_ALPHABET:
        raise BadInput("lesson", f"The text has {found:,} different characters, at most {MAX_ALPHABET} are taken.")
    if not ask.lesson:
        choose_writer(shelf, ask.model)
