"""Rung 9 as data: a head of a served model, computed with the steps of the ladder and compared with the model."""

from dataclasses import dataclass
from functools import lru_cache

import torch

from model import InputError, LoadedModel, PromptError, UnknownCharacters, ladder
from model.ladder.terms import dot_product_terms, largest_difference, seeded
from model.ladder.trained_head import head_by_ladder
from model.lens.metrics import most_selective_head
from model.lens.residuals import Residuals

from ..serving.inputs import find_model
from ..serving.served_models import ServedModels
from .ask import Ask, check_sentence

MAX_TOKENS = 256  # of the sentence: no more fit in the picture, and each costs a row of numbers
TOKENS_TO_CHOOSE_FROM = 96  # of the sentence, on which an interesting head is chosen
BOOK = " ".join(ladder.JOURNEY)


@dataclass(frozen=True)
class ReadSentence:
    """A model, the ids of what it can read of the sentence, and a note for the visitor if that is not all."""

    loaded: LoadedModel
    ids: list[int]
    note: str


def whole_head(served: ServedModels, ask: Ask) -> dict[str, object]:
    """The attention weights of the head that was asked for, or else of the most selective one."""
    found = read(served, ask)
    loaded, ids = found.loaded, found.ids
    residuals = read_once(loaded, tuple(ids))
    config = loaded.config
    if ask.layer is None or ask.head is None:
        first = min(len(ids), TOKENS_TO_CHOOSE_FROM)
        attention = torch.stack([residuals.attention(layer, first) for layer in range(config.n_layer)])
        layer, head = most_selective_head(attention)
    else:
        layer, head = check_head(loaded, ask)
    ours, theirs = head_by_ladder(residuals, layer, head), residuals.attention(layer)[head]
    past = torch.tril_indices(len(ids), len(ids))
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
        "weights": theirs[past[0], past[1]].tolist(),
        "error": largest_difference(ours.attention.weights, theirs),
        "published": by_packed.tolist(),
        "published_error": largest_difference(by_splits, by_packed),
    }


def one_cell(served: ServedModels, ask: Ask) -> dict[str, object]:
    """The dot product behind one cell of the head."""
    found = read(served, ask)
    loaded, ids = found.loaded, found.ids
    layer, head = check_head(loaded, ask)
    if not ask.key <= ask.query < len(ids):
        raise InputError("query", f"There is no cell for query {ask.query} and key {ask.key}.")
    residuals = read_once(loaded, tuple(ids))
    trained = head_by_ladder(residuals, layer, head)
    scores = trained.attention.scores[ask.query]
    query, key = trained.query[ask.query], trained.key[ask.key]
    return {
        "query": query.tolist(),
        "key": key.tolist(),
        "products": dot_product_terms(query[None], key[None])[0, 0].tolist(),
        "score": scores[ask.key].item(),
        "scaled": (scores[ask.key] * trained.scale).item(),
        "scale": trained.scale,
        "weight": trained.attention.weights[ask.query, ask.key].item(),
        "model_weight": residuals.attention(layer)[head, ask.query, ask.key].item(),
    }


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


def check_head(loaded: LoadedModel, ask: Ask) -> tuple[int, int]:
    """The layer and head asked for, 0 by default. Raises ``InputError`` if the model does not have them."""
    layer, head = ask.layer or 0, ask.head or 0
    for name, value, count in (("layer", layer, loaded.config.n_layer), ("head", head, loaded.config.n_head)):
        if value >= count:
            raise InputError(name, f"{name} must be an integer from 0 to {count - 1}, found {value}")
    return layer, head


@lru_cache(maxsize=2)
def read_once(loaded: LoadedModel, ids: tuple[int, ...]) -> Residuals:
    """The residual stream over ``ids``, cached for the next cells of the same sentence."""
    return Residuals(loaded.gpt, ids)
