"""Rung 9 as data: a head of a model that is served, computed with the ladder's steps and compared with the model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from model import InputError, LoadedModel, PromptError, UnknownCharacters, ladder
from model.ladder.taken_apart import RealHead, dot_product_terms, head_by_ladder, largest_difference, seeded
from model.lens.metrics import most_selective_head
from model.lens.residuals import Residuals

from ..serving.inputs import find_model
from ..serving.served_models import ServedModels
from .ask import Ask, check_sentence

MOST_TOKENS = 256  # of the sentence: the picture holds no more, and each costs a row of numbers
CHOSEN_FROM = 96  # tokens from which a head worth seeing is chosen
BOOK = " ".join(ladder.JOURNEY)


@dataclass(frozen=True)
class Read:
    """A model, the ids that it reads of the sentence, and what a visitor should know about them."""

    loaded: LoadedModel
    ids: list[int]
    note: str


def real(served: ServedModels, ask: Ask) -> dict[str, Any]:
    """The head that was asked for, or one that looks hard at earlier tokens."""
    found = read(served, ask)
    loaded, ids = found.loaded, found.ids
    reading = read_once(loaded, tuple(ids))
    config = loaded.config
    if ask.layer is None or ask.head is None:
        first = min(len(ids), CHOSEN_FROM)
        attention = torch.stack([reading.attention(layer, first) for layer in range(config.n_layer)])
        layer, head = most_selective_head(attention)
    else:
        layer, head = check_head(loaded, ask)
    ours, theirs = head_by_ladder(reading, layer, head), reading.attention(layer)[head]
    below = torch.tril_indices(len(ids), len(ids))
    journey = torch.tensor([list(ladder.JOURNEY.values())])
    splits = seeded(123, lambda: ladder.WeightSplits(3, 2, 2))
    packed = ladder.pack_weight_splits(splits)
    with torch.inference_mode():
        by_splits, by_packed = splits(journey)[0], packed(journey)[0][0]
    return {
        "model": loaded.name,
        "sha256": loaded.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "head_dim": ours.query.shape[-1],
        "scale": ours.scale,
        "layer": layer,
        "head": head,
        "note": found.note,
        "ids": ids,
        "tokens": [token.text for token in loaded.tokens(ids)],
        "weights": theirs[below[0], below[1]].tolist(),
        "error": largest_difference(ours.attention.weights, theirs),
        "published": by_packed.tolist(),
        "published_error": largest_difference(by_splits, by_packed),
    }


def cell(served: ServedModels, ask: Ask) -> dict[str, Any]:
    """The dot product behind one cell of the head."""
    asked = read(served, ask)
    loaded, ids = asked.loaded, asked.ids
    layer, head = check_head(loaded, ask)
    if not ask.key <= ask.query < len(ids):
        raise InputError("query", f"There is no cell of query {ask.query} and key {ask.key}.")
    reading = read_once(loaded, tuple(ids))
    found: RealHead = head_by_ladder(reading, layer, head)
    scores = found.attention.scores[ask.query]
    query, key = found.query[ask.query], found.key[ask.key]
    return {
        "query": query.tolist(),
        "key": key.tolist(),
        "products": dot_product_terms(query[None], key[None])[0, 0].tolist(),
        "score": scores[ask.key].item(),
        "scaled": (scores[ask.key] * found.scale).item(),
        "scale": found.scale,
        "weight": found.attention.weights[ask.query, ask.key].item(),
        "model_weight": reading.attention(layer)[head, ask.query, ask.key].item(),
    }


def read(served: ServedModels, ask: Ask) -> Read:
    """What the model can read of the sentence, and the book's where that is nothing. Raises ``InputError``."""
    check_sentence(ask.sentence)
    loaded = find_model(served, ask.model)
    name = loaded.name
    text, notes = ask.sentence, []
    try:
        ids = loaded.tokenizer.encode(text)
    except UnknownCharacters as error:
        text = "".join(character for character in text if character not in error.characters)
        notes.append(f"{name} reads single characters and has never seen {error.named}: left out of the picture.")
        if not text.strip():
            text = BOOK
            notes.append("Nothing else is in your sentence, so here is the book's.")
        ids = encode(loaded, text)
    most = min(loaded.config.context_length, MOST_TOKENS)
    if len(ids) > most:
        notes.append(f"For {name} your sentence has {len(ids):,} tokens; the picture shows the first {most:,}.")
    return Read(loaded, ids[:most], " ".join(notes))


def encode(loaded: LoadedModel, text: str) -> list[int]:
    try:
        return loaded.tokenizer.encode(text)
    except PromptError as error:
        raise InputError("sentence", f"{loaded.name} cannot read this sentence. {error}") from None


def check_head(loaded: LoadedModel, ask: Ask) -> tuple[int, int]:
    """The layer and the head, 0 where they are not said. Raises ``InputError`` for one that the model does not have."""
    layer, head = ask.layer or 0, ask.head or 0
    for word, value, count in (("layer", layer, loaded.config.n_layer), ("head", head, loaded.config.n_head)):
        if value >= count:
            raise InputError(word, f"{word} must be an integer from 0 to {count - 1}, found {value}")
    return layer, head


@lru_cache(maxsize=2)
def read_once(loaded: LoadedModel, ids: tuple[int, ...]) -> Residuals:
    return Residuals(loaded.gpt, ids)
