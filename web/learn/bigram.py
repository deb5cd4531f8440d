"""Rung 3: a bigram model, trained while the visitor watches, and the recorded training that the rung opens with.

Every stage of a training is streamed as a line of JSON. The recording was made by ``bench/lecture.py``.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Hashable
from contextlib import aclosing
from functools import cache
from pathlib import Path
from typing import Any

from model import InputError, LoadedModel, PromptError, SamplingSettings, Step
from model.ladder.bigram import BigramTraining, rate
from model.tokenizer import CharTokenizer

from ..serving.engines import Engines
from ..serving.served_models import ServedModels
from .lesson_request import (
    MAX_TRAINING_TEXT_CHARACTERS,
    BigramRequest,
    LessonRequest,
    check_sentence,
    check_training_text,
)
from .tokens_and_windows import SHOWN_TOKENS

MAX_ALPHABET = 256  # different characters in a bigram model's text: its table has the square of their number
BIGRAM_TEXTS = 8  # texts written at once for a bigram model to learn from
BIGRAM_CHARACTERS = 2_000  # in all of these texts together
REPORT_SECONDS = 0.2  # between reports of the texts being written, and of the training

FILE = Path(__file__).with_name("bigram_lecture.json")
WRITER = "shakespeare-char"


@cache
def recorded() -> dict[str, Any]:
    """The reports "before", "training" and "after", and "table", ``[this][next]`` probabilities."""
    recording: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return recording


def lecture_training(sentence: str) -> list[dict[str, object]]:
    """The reports of the recorded training, with the probabilities of ``sentence``."""
    recording = recorded()
    rated = rate(sentence[:SHOWN_TOKENS], recording["before"]["characters"], recording["table"])
    return [
        recording["before"],
        recording["training"],
        recording["after"] | {"sentence": rated, "n_sentence": len(sentence)},
    ]


def before_training(served: ServedModels, request: LessonRequest) -> dict[str, object]:
    """Rung 3 before a training: a recorded one, and the model that would write the text, if any."""
    check_sentence(request.sentence)
    try:
        writer = choose_writer(served, request.model).name
    except InputError:
        writer = None
    example = lecture_training(request.sentence)
    return {"writer": writer, "most_characters": MAX_TRAINING_TEXT_CHARACTERS, "example": example}


def choose_writer(served: ServedModels, name: str | None) -> LoadedModel:
    """The model that writes the text: the one named, or the one trained on Shakespeare, or any character model."""
    if name is None:
        by_character = (n for n, loaded in served.models.items() if isinstance(loaded.tokenizer, CharTokenizer))
        name = WRITER if WRITER in served.models else next(by_character, None)
    return served.find(name)


async def write_training_text(
    served: ServedModels, engines: Engines, request: BigramRequest, client: Hashable
) -> AsyncGenerator[tuple[str, str]]:
    """Yield the name of the writer and the text, a few texts written in parallel, as it grows.

    Raises ``InputError``, ``Busy`` or ``Closed``.
    """
    loaded = choose_writer(served, request.model)
    try:
        prompt = loaded.parse_prompt("\n")
    except PromptError:
        prompt = [0]
    length = max(1, min(BIGRAM_CHARACTERS // BIGRAM_TEXTS, loaded.config.context_length - len(prompt)))
    texts = [loaded.tokenizer.decode(prompt)] * BIGRAM_TEXTS
    sampling = SamplingSettings(temperature=0.8)
    requests = [
        loaded.request(prompt, length, sampling=sampling, seed=request.seed, logprobs=False, choice=(0, i))
        for i in range(BIGRAM_TEXTS)
    ]
    async with engines.generate(loaded, *requests, client=client, route="learn", pace=REPORT_SECONDS) as generation:
        async for events in generation:
            for index, event in events:
                if isinstance(event, Step):
                    texts[index] += event.text
            yield loaded.name, "\n".join(part.strip("\n") for part in texts)


async def learn_bigram(
    served: ServedModels, engines: Engines, request: BigramRequest, client: Hashable
) -> AsyncGenerator[dict[str, object]]:
    """Yield a report for every stage: writing, if no text was given, then training, then the result.

    Closing the generator stops the work at the next report.
    """
    text = request.training_text
    if not text:
        async with aclosing(write_training_text(served, engines, request, client)) as written:
            async for model, text in written:
                yield {"stage": "writing", "model": model, "text": text}
    training = await asyncio.to_thread(BigramTraining, text, request.steps, request.learning_rate, request.seed)
    yield await asyncio.to_thread(training.begin)
    while not training.done:
        yield await asyncio.to_thread(training.advance, REPORT_SECONDS)
    end = await asyncio.to_thread(training.end, request.sentence[:SHOWN_TOKENS])
    yield end | {"n_sentence": len(request.sentence)}


def check_bigram(served: ServedModels, request: BigramRequest) -> None:
    """Raise ``InputError`` if ``request`` cannot be carried out."""
    check_sentence(request.sentence)
    check_training_text(request.training_text)
    if request.training_text and len(request.training_text) < 2:
        raise InputError("training_text", "A bigram model learns from pairs: type at least two characters.")
    if (n_characters := len(set(request.training_text))) > MAX_ALPHABET:
        raise InputError(
            "training_text", f"The text has {n_characters:,} different characters; at most {MAX_ALPHABET} are accepted."
        )
    if not request.training_text:
        choose_writer(served, request.model)
