"""A text that is shown, read once more: by another model, with earlier weights, or with heads scaled."""

from bisect import bisect_left

from pydantic import BaseModel, Field

from model import InputError, LoadedModel

from ..runs.run import Run
from ..services import Services
from ..serving.inputs import HeadMask, TokenIds, check_text, find_model


class Reading(BaseModel):
    """``ids`` are those of the model with the hash ``sha256``; ``model`` reads them, or NAME@STEP for a snapshot.

    Instead of ids it may be a ``text`` that a visitor gives.
    """

    sha256: str = Field(max_length=64)
    ids: TokenIds = []
    text: str | None = None
    n_prompt: int = Field(ge=0)
    model: str
    head_mask: HeadMask | None = None


def read_again(services: Services, reading: Reading) -> Run:
    """The run of that text with that model. Raises ``InputError`` where it cannot be read.

    With another tokenizer the text is tokenized again. The tokens that its context has no room for are left out.
    """
    source = services.served.with_hash(reading.sha256) or services.snapshots.with_hash(reading.sha256)
    if source is None:
        raise InputError("sha256", "The model that wrote this text is no longer served here.")
    if reading.text is not None:
        return read_text(services, reading, reading.text)
    most = source.config.context_length
    source.read_prompt(reading.ids[:most])
    ids = reading.ids[: most + 1]  # a last one may have been written that was not read
    loaded = services.snapshots.named(reading.model) or find_model(services.served, reading.model)
    n_prompt = min(reading.n_prompt, len(ids))
    if loaded.tokenizer.spec != source.tokenizer.spec:
        prompt = source.tokenizer.decode(ids[:n_prompt])
        ids = encode(services, loaded, source.tokenizer.decode(ids))
        n_prompt = tokens_within(loaded, ids, len(prompt))
    ids = ids[: loaded.config.context_length]
    return services.runs.recompute(loaded, loaded.read_prompt(ids), n_prompt, loaded.read_head_mask(reading.head_mask))


def read_text(services: Services, reading: Reading, text: str) -> Run:
    """The run of a text that a visitor gives. Raises ``InputError`` where it is empty or the model cannot read it."""
    loaded = services.snapshots.named(reading.model) or find_model(services.served, reading.model)
    ids = loaded.read_prompt(check_text(services.limits, text))
    # What follows the first token can be predicted.
    n_prompt = max(min(reading.n_prompt, len(ids) - 1), 1)
    return services.runs.recompute(loaded, ids, n_prompt, loaded.read_head_mask(reading.head_mask))


def encode(services: Services, loaded: LoadedModel, text: str) -> list[int]:
    return loaded.tokenizer.encode(check_text(services.limits, text))


def tokens_within(loaded: LoadedModel, ids: list[int], n_characters: int) -> int:
    """How many of ``ids`` begin within the first characters of their text."""
    return bisect_left(range(len(ids)), n_characters, key=lambda n: len(loaded.tokenizer.decode(ids[:n])))
