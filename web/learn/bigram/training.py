"""Rung 3: a model writes a text and a bigram model is trained on it, with every stage streamed as lines of JSON."""

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import aclosing

from model import InputError, LoadedModel, PromptError, SamplingSettings, Step
from model.ladder.bigram import BigramTraining
from model.tokenizer import CharTokenizer

from ...serving.engines import Engines
from ...serving.inputs import find_model
from ...serving.served_models import ServedModels
from ...settings import BIGRAM_CHARACTERS, BIGRAM_TEXTS, MAX_ALPHABET, UPDATE_SECONDS
from ..ask import BigramAsk, check_lesson, check_sentence
from ..tokens_and_windows import SHOWN_TOKENS

WRITER = "shakespeare-char"


def choose_writer(served: ServedModels, name: str | None) -> LoadedModel:
    """The model to write the text: the one named, or the one trained on Shakespeare, or any character model."""
    if name is None:
        by_character = (n for n, loaded in served.models.items() if isinstance(loaded.tokenizer, CharTokenizer))
        name = WRITER if WRITER in served.models else next(by_character, None)
    return find_model(served, name)


async def write_lesson(
    engines: Engines, loaded: LoadedModel, prompt: list[int], seed: int, client: Hashable
) -> AsyncGenerator[list[str]]:
    """Yield the texts that a model is writing in parallel, as they grow. Raises ``Busy`` or ``Closed``."""
    length = max(1, min(BIGRAM_CHARACTERS // BIGRAM_TEXTS, loaded.config.context_length - len(prompt)))
    texts = [loaded.tokenizer.decode(prompt)] * BIGRAM_TEXTS
    sampling = SamplingSettings(temperature=0.8)
    requests = [
        loaded.request(prompt, length, sampling=sampling, seed=seed, logprobs=False, choice=(0, i))
        for i in range(BIGRAM_TEXTS)
    ]
    async with engines.generate(loaded, *requests, client=client, route="learn", pace=UPDATE_SECONDS) as generation:
        async for events in generation:
            for index, event in events:
                if isinstance(event, Step):
                    texts[index] += event.text
            yield texts


async def learn_bigram(
    served: ServedModels, engines: Engines, ask: BigramAsk, client: Hashable
) -> AsyncGenerator[dict[str, object]]:
    """Yield a report for every stage: writing, if no text was given, then training, then the result.

    Closing the generator stops the work at the next report.
    """
    text = ask.lesson
    if not text:
        loaded = choose_writer(served, ask.model)
        try:
            prompt = loaded.read_prompt("\n")
        except PromptError:
            prompt = [0]
        async with aclosing(write_lesson(engines, loaded, prompt, ask.seed, client)) as written:
            async for texts in written:
                text = "\n".join(part.strip("\n") for part in texts)
                yield {"stage": "writing", "model": loaded.name, "text": text}
    training = await asyncio.to_thread(BigramTraining, text, ask.steps, ask.learning_rate, ask.seed)
    yield await asyncio.to_thread(training.begin)
    while not training.done:
        yield await asyncio.to_thread(training.advance, UPDATE_SECONDS)
    end = await asyncio.to_thread(training.end, ask.sentence[:SHOWN_TOKENS])
    yield end | {"n_sentence": len(ask.sentence)}


def check_bigram(served: ServedModels, ask: BigramAsk) -> None:
    """Raise ``InputError`` if ``ask`` cannot be carried out."""
    check_sentence(ask.sentence)
    check_lesson(ask.lesson)
    if ask.lesson and len(ask.lesson) < 2:
        raise InputError("lesson", "A bigram model learns from pairs: type at least two characters.")
    if (found := len(set(ask.lesson))) > MAX_ALPHABET:
        raise InputError("lesson", f"The text has {found:,} different characters; at most {MAX_ALPHABET} are accepted.")
    if not ask.lesson:
        choose_writer(served, ask.model)
