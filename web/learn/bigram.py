"""Rung 3: a text is written, a bigram model learns it, and all of it is told while it happens, line by line of JSON."""

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import aclosing
from typing import Any

from model import LoadedModel, PromptError, Step
from model.ladder_training import BigramTraining
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


def choose_writer(shelf: Shelf, name: str | None) -> LoadedModel:
    """The model that is asked for, else the one trained on Shakespeare, else the first that writes characters."""
    if name is None:
        by_character = (n for n, gpt in shelf.models.items() if isinstance(gpt.tokenizer, CharTokenizer))
        name = WRITER if WRITER in shelf.models else next(by_character, None)
    return read_model(shelf, name)[1]


async def write_lesson(
    engines: Engines, gpt: LoadedModel, beginning: list[int], seed: int, client: Hashable
) -> AsyncGenerator[list[str]]:
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


async def learn_bigram(
    shelf: Shelf, engines: Engines, ask: BigramAsk, client: Hashable
) -> AsyncGenerator[dict[str, Any]]:
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
    training = await asyncio.to_thread(BigramTraining, text, ask.steps, ask.learning_rate, ask.seed)
    yield await asyncio.to_thread(training.begin)
    while not training.done:
        yield await asyncio.to_thread(training.advance, UPDATE_SECONDS)
    end = await asyncio.to_thread(training.end, ask.sentence[:SHOWN_TOKENS])
    yield end | {"n_sentence": len(ask.sentence)}


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
