"""What a served model can read of the visitor's sentence, read once for all its numbers."""

from dataclasses import dataclass
from functools import lru_cache

from model import InputError, LoadedModel, PromptError, UnknownCharacters, ladder
from model.lens.text_pass import Residuals

from ...serving.inputs import find_model
from ...serving.served_models import ServedModels
from ..ask import Ask, check_sentence

MAX_TOKENS = 256  # of the sentence: no more fit in the picture, and each costs a row of numbers
BOOK = " ".join(ladder.JOURNEY)


@dataclass(frozen=True)
class ReadSentence:
    """A model, the ids of what it can read of the sentence, and a note for the visitor if that is not all."""

    loaded: LoadedModel
    ids: list[int]
    note: str

    @property
    def residuals(self) -> Residuals:
        """The residual stream over the sentence, kept for the next numbers of the same one."""
        return read_once(self.loaded, tuple(self.ids))


@lru_cache(maxsize=2)
def read_once(loaded: LoadedModel, ids: tuple[int, ...]) -> Residuals:
    return Residuals(loaded.gpt, ids)


def read(served: ServedModels, ask: Ask) -> ReadSentence:
    """What the model can read of the sentence, or the book's sentence if that is nothing. Raises ``InputError``."""
    check_sentence(ask.sentence)
    loaded = find_model(served, ask.model)
    name = loaded.name
    text, notes = ask.sentence, []
    try:
        ids = loaded.tokenizer.encode(text)
    except UnknownCharacters as error:
        text = "".join(character for character in text if character not in error.characters)
        notes.append(f"{name} reads single characters and has never seen {error.named}, which the picture leaves out.")
        if not text.strip():
            text = BOOK
            notes.append("Your sentence contains nothing else, so the picture shows the book's sentence.")
        ids = encode(loaded, text)
    most = min(loaded.config.context_length, MAX_TOKENS)
    if len(ids) > most:
        notes.append(f"Your sentence has {len(ids):,} tokens for {name}; the picture shows the first {most:,}.")
    return ReadSentence(loaded, ids[:most], " ".join(notes))


def encode(loaded: LoadedModel, text: str) -> list[int]:
    """The ids of ``text``. Raises ``InputError`` if the model cannot read it."""
    try:
        return loaded.tokenizer.encode(text)
    except PromptError as error:
        raise InputError("sentence", f"{loaded.name} cannot read this sentence. {error}") from None


def check_place(found: ReadSentence, ask: Ask) -> tuple[int, int, int]:
    """The layer, head and query asked for; 0, 0 and the last one by default. Raises ``InputError``."""
    config = found.loaded.config
    layer, head = ask.layer or 0, ask.head or 0
    for name, value, count in (("layer", layer, config.n_layer), ("head", head, config.n_head)):
        if value >= count:
            raise InputError(name, f"{name} must be an integer from 0 to {count - 1}, found {value}")
    last = len(found.ids) - 1
    query = last if ask.query is None else ask.query
    if query > last:
        raise InputError("query", f"query must be an integer from 0 to {last}, found {query}")
    return layer, head, query
