"""The visitor's sentence as a served model reads it, and the head and token of it that were asked for."""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import Field

from model import InputError, LoadedModel, PromptError, UnknownCharacters, ladder
from model.checkpoint.families.gpt2 import GPT2
from model.checkpoint.folder_format import family_of
from model.lens.text_pass import TextPass

from ..serving.bounded_cache import BoundedCache
from ..serving.served_models import ServedModels
from .lesson_request import LessonRequest, check_sentence

MAX_TOKENS = 256  # of the sentence: no more fit in the picture, and each costs a row of numbers
BOOK = " ".join(ladder.JOURNEY)


@dataclass(frozen=True)
class TokenizedSentence:
    """A model, the ids of what it can read of the sentence, and a note for the visitor if that is not all."""

    loaded: LoadedModel
    ids: list[int]
    note: str

    @property
    def text_pass(self) -> TextPass:
        """The residual stream over the sentence."""
        return cached_pass(self.loaded, tuple(self.ids))


class ModelCache:
    """The latest results for one model, reused by later requests about the same tokens."""

    def __init__(self) -> None:
        self.text_passes = BoundedCache[tuple[int, ...], TextPass](max_entries=2)
        self.overviews = BoundedCache[tuple[int, ...], dict[str, Any]](max_entries=2)


CACHES: WeakKeyDictionary[LoadedModel, ModelCache] = WeakKeyDictionary()  # weak, so that unused models are freed


def cache_of(loaded: LoadedModel) -> ModelCache:
    return CACHES.setdefault(loaded, ModelCache())


def cached_pass(loaded: LoadedModel, ids: tuple[int, ...]) -> TextPass:
    """The residual stream of ``loaded`` over ``ids``, cached."""
    return cache_of(loaded).text_passes.get_or_compute(ids, lambda: TextPass(loaded.gpt, ids))


def tokenize_sentence(served: ServedModels, request: LessonRequest) -> TokenizedSentence:
    """What the model can read of the sentence, or the book's sentence if that is nothing. Raises ``InputError``."""
    check_sentence(request.sentence)
    loaded = served.find(request.model)
    name = loaded.name
    family = family_of(loaded.config)
    if family is not GPT2:
        kind = f"a model of another family, {family.model_type}"
        raise InputError("model", f"This lesson follows a GPT-2 step by step, and {name} is {kind}.")
    text, notes = request.sentence, []
    try:
        ids = loaded.tokenizer.encode(text)
    except UnknownCharacters as error:
        text = "".join(character for character in text if character not in error.characters)
        notes.append(f"{name} reads single characters and has never seen {error.named}, which the picture leaves out.")
        if not text.strip():
            text = BOOK
            notes.append("Your sentence contains nothing else, so the picture shows Raschka’s sentence.")
        ids = encode(loaded, text)
    most = min(loaded.config.context_length, MAX_TOKENS)
    if len(ids) > most:
        notes.append(f"Your sentence has {len(ids):,} tokens for {name}; the picture shows the first {most:,}.")
    return TokenizedSentence(loaded, ids[:most], " ".join(notes))


def encode(loaded: LoadedModel, text: str) -> list[int]:
    """The ids of ``text``. Raises ``InputError`` if the model cannot read it."""
    try:
        return loaded.tokenizer.encode(text)
    except PromptError as error:
        raise InputError("sentence", f"{loaded.name} cannot read this sentence. {error}") from None


class WholeModelRequest(LessonRequest):
    layer: int | None = Field(None, ge=0, le=10_000)
    head: int | None = Field(None, ge=0, le=10_000)
    query: int | None = Field(None, ge=0, le=10**6)


def head_and_query(tokenized: TokenizedSentence, request: WholeModelRequest) -> tuple[int, int, int]:
    """The layer, head and query asked for; 0, 0 and the last one by default. Raises ``InputError``."""
    config = tokenized.loaded.config
    layer, head = request.layer or 0, request.head or 0
    for name, value, count in (("layer", layer, config.n_layer), ("head", head, config.n_head)):
        if value >= count:
            raise InputError(name, f"{name} must be an integer from 0 to {count - 1}, found {value}")
    last = len(tokenized.ids) - 1
    query = last if request.query is None else request.query
    if query > last:
        raise InputError("query", f"query must be an integer from 0 to {last}, found {query}")
    return layer, head, query
