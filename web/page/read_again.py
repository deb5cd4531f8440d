"""Reading a displayed text again: by another model, with earlier weights, or with heads scaled."""

from bisect import bisect_left

from pydantic import BaseModel, Field

from model import LoadedModel

from ..body_types import HeadMask, TokenIds, Unicode
from ..runs.run import Run
from ..services import Services
from ..serving.inputs import check_text


class ReadAgain(BaseModel):
    """``ids`` are from the model with the hash ``sha256``; ``model``, a name or NAME@STEP, reads them.

    Instead of ids it may be a ``text`` that a visitor gives.
    """

    sha256: Unicode = Field(max_length=64)
    ids: TokenIds = []
    text: Unicode | None = None
    n_prompt: int = Field(ge=0)
    model: Unicode
    head_mask: HeadMask | None = None


def read_again(services: Services, asked: ReadAgain) -> Run:
    """The run of that text with that model. Raises ``InputError`` if it cannot be read.

    With another tokenizer the text is tokenized again. The tokens that its context has no room for are left out.
    """
    source = services.snapshots.with_hash(asked.sha256)
    if asked.text is not None:
        return read_text(services, asked, asked.text)
    most = source.config.context_length
    source.parse_prompt(asked.ids[:most])
    ids = asked.ids[: most + 1]  # the last token may have been written but never read
    loaded = services.snapshots.find(asked.model)
    n_prompt = min(asked.n_prompt, len(ids))
    if loaded.tokenizer.spec != source.tokenizer.spec:
        prompt = source.tokenizer.decode(ids[:n_prompt])
        ids = encode(services, loaded, source.tokenizer.decode(ids))
        n_prompt = tokens_within(loaded, ids, len(prompt))
    ids = ids[: loaded.config.context_length]
    return services.runs.recompute(loaded, loaded.parse_prompt(ids), n_prompt, loaded.parse_head_mask(asked.head_mask))


def read_text(services: Services, asked: ReadAgain, text: str) -> Run:
    """The run of a text that a visitor gives. Raises ``InputError`` if it is empty or the model cannot read it."""
    loaded = services.snapshots.find(asked.model)
    ids = loaded.parse_prompt(check_text(services.limits, text))
    # Every token after the first can be predicted.
    n_prompt = max(min(asked.n_prompt, len(ids) - 1), 1)
    return services.runs.recompute(loaded, ids, n_prompt, loaded.parse_head_mask(asked.head_mask))


class SnapshotText(BaseModel):
    """A text to be read again with the weights of another training step."""

    model: Unicode
    step: int
    ids: TokenIds
    n_prompt: int = Field(ge=0)


def read_with_snapshot(services: Services, text: SnapshotText) -> Run:
    """The run of that text with that snapshot. Raises ``InputError`` if it cannot be read."""
    loaded = services.snapshots.get(text.model, text.step)
    ids = text.ids[: loaded.config.context_length + 1]
    loaded.parse_prompt(ids[: loaded.config.context_length])
    return services.runs.recompute(loaded, ids, text.n_prompt)


def encode(services: Services, loaded: LoadedModel, text: str) -> list[int]:
    return loaded.tokenizer.encode_prompt(check_text(services.limits, text))


def tokens_within(loaded: LoadedModel, ids: list[int], n_characters: int) -> int:
    """The number of ``ids`` that begin within the first characters of their text."""
    return bisect_left(range(len(ids)), n_characters, key=lambda n: len(loaded.tokenizer.decode(ids[:n])))
