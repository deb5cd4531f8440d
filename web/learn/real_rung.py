"""Rung 9 as data: a head of a model that is served, computed with the ladder's steps and compared with the model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from model import LoadedModel, PromptError, UnknownCharacters, ladder
from model.ladder_shown import RealHead, dot_product_terms, head_by_ladder, largest_difference, seeded
from model.reading import Reading
from model.trace import most_selective_head

from ..shelf import Shelf
from ..validate import BadInput, read_model
from .ask import Ask, check_sentence

MOST_TOKENS = 256  # of the sentence: the picture holds no more, and each costs a row of numbers
CHOSEN_FROM = 96  # tokens from which a head worth seeing is chosen
BOOK = " ".join(ladder.JOURNEY)


@dataclass(frozen=True)
class Read:
    """A model, the ids that it reads of the sentence, and what a visitor should know about them."""

    name: str
    gpt: LoadedModel
    ids: list[int]
    note: str


def real(shelf: Shelf, ask: Ask) -> dict[str, Any]:
    """The head that was asked for, or one that looks hard at earlier tokens."""
    found = read(shelf, ask)
    name, gpt, ids = found.name, found.gpt, found.ids
    reading = read_once(gpt, tuple(ids))
    config = gpt.config
    if ask.layer is None or ask.head is None:
        first = min(len(ids), CHOSEN_FROM)
        attention = torch.stack([reading.attention(layer, first) for layer in range(config.n_layer)])
        layer, head = most_selective_head(attention)
    else:
        layer, head = check_head(gpt, ask)
    ours, theirs = head_by_ladder(reading, layer, head), reading.attention(layer)[head]
    below = torch.tril_indices(len(ids), len(ids))
    journey = torch.tensor([list(ladder.JOURNEY.values())])
    splits = seeded(123, lambda: ladder.WeightSplits(3, 2, 2))
    packed = ladder.pack_weight_splits(splits)
    with torch.inference_mode():
        by_splits, by_packed = splits(journey)[0], packed(journey)[0][0]
    return {
        "model": name,
        "sha256": gpt.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "head_dim": ours.query.shape[-1],
        "scale": ours.scale,
        "layer": layer,
        "head": head,
        "note": found.note,
        "ids": ids,
        "tokens": [token.text for token in gpt.tokens(ids)],
        "weights": theirs[below[0], below[1]].tolist(),
        "error": largest_difference(ours.attention.weights, theirs),
        "published": by_packed.tolist(),
        "published_error": largest_difference(by_splits, by_packed),
    }


def cell(shelf: Shelf, ask: Ask) -> dict[str, Any]:
    """The dot product behind one cell of the head."""
    asked = read(shelf, ask)
    gpt, ids = asked.gpt, asked.ids
    layer, head = check_head(gpt, ask)
    if not ask.key <= ask.query < len(ids):
        raise BadInput("query", f"There is no cell of query {ask.query} and key {ask.key}.")
    reading = read_once(gpt, tuple(ids))
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


def read(shelf: Shelf, ask: Ask) -> Read:
    """What the model can read of the sentence, and the book's where that is nothing. Raises ``BadInput``."""
    check_sentence(ask.sentence)
    name, gpt = read_model(shelf, ask.model)
    text, notes = ask.sentence, []
    try:
        ids = gpt.tokenizer.encode(text)
    except UnknownCharacters as error:
        text = "".join(character for character in text if character not in error.characters)
        notes.append(f"{name} reads single characters and has never seen {error.named}: left out of the picture.")
        if not text.strip():
            text = BOOK
            notes.append("Nothing else is in your sentence, so here is the book's.")
        ids = encode(name, gpt, text)
    most = min(gpt.config.context_length, MOST_TOKENS)
    if len(ids) > most:
        notes.append(f"For {name} your sentence has {len(ids):,} tokens; the picture shows the first {most:,}.")
    return Read(name, gpt, ids[:most], " ".join(notes))


def encode(name: str, gpt: LoadedModel, text: str) -> list[int]:
    try:
        return gpt.tokenizer.encode(text)
    except PromptError as error:
        raise BadInput("sentence", f"{name} cannot read this sentence. {error}") from None


def check_head(gpt: LoadedModel, ask: Ask) -> tuple[int, int]:
    """The layer and the head, 0 where they are not said. Raises ``BadInput`` for one that the model does not have."""
    layer, head = ask.layer or 0, ask.head or 0
    for word, value, count in (("layer", layer, gpt.config.n_layer), ("head", head, gpt.config.n_head)):
        if value >= count:
            raise BadInput(word, f"{word} must be an integer from 0 to {count - 1}, found {value}")
    return layer, head


@lru_cache(maxsize=2)
def read_once(gpt: LoadedModel, ids: tuple[int, ...]) -> Reading:
    return Reading(gpt.gpt, ids)
