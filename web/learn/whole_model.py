"""Rung 10 as data: a served model from a token to the probability of the next one, step by step."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from model import InputError, LoadedModel, PromptError, UnknownCharacters, ladder
from model.drawing.metrics import most_selective_head
from model.gpt import Block
from model.head_tensors import Head
from model.ladder.block import (
    BlockStages,
    block_by_ladder,
    block_by_model,
    final_norm,
    linear,
    normalise,
    position_embeddings,
)
from model.ladder.terms import largest_difference, seeded
from model.lens.head_roles import clear_text_roles
from model.lens.text_pass import TextPass

from ..bounded_cache import BoundedCache
from ..serving.inputs import find_model
from ..serving.served_models import ServedModels
from ..serving.snapshots import read_report
from .lesson_request import LessonRequest, check_sentence

MAX_TOKENS = 256  # of the sentence: no more fit in the picture, and each costs a row of numbers
BOOK = " ".join(ladder.JOURNEY)
TOKENS_TO_CHOOSE_FROM = 96  # of the sentence, on which an interesting head is chosen
THUMBNAIL = 24  # cells of a side, at most
SHOWN_TOKENS = 10  # the likeliest next ones
# Stages that are sent as vectors of one token, and what the model's own modules return of them.
STAGES = ("x", "normed", "heads", "attended", "resid_mid", "mlp_input", "hidden", "activated", "mlp_output", "after")


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
    loaded = find_model(served, request.model)
    name = loaded.name
    if loaded.config.rotary is not None:
        raise InputError("model", f"This lesson follows a GPT-2 step by step, and {name} is a model of another family.")
    text, notes = request.sentence, []
    try:
        ids = loaded.tokenizer.encode(text)
    except UnknownCharacters as error:
        text = "".join(character for character in text if character not in error.characters)
        notes.append(f"{name} reads single characters and has never seen {error.named}, which the picture leaves out.")
        if not text.strip():
            text = BOOK
            notes.append("Your sentence contains nothing else, so the picture shows the book’s sentence.")
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


def whole_model(served: ServedModels, request: WholeModelRequest) -> dict[str, object]:
    """One token's path through a layer and on to the output, recomputed by the steps of the ladder."""
    tokenized = tokenize_sentence(served, request)
    loaded, ids, text_pass = tokenized.loaded, tokenized.ids, tokenized.text_pass
    config, gpt = loaded.config, loaded.gpt
    overview = cache_of(loaded).overviews.get_or_compute(tuple(ids), lambda: head_overview(loaded, tuple(ids)))
    layer, head, query = head_and_query(tokenized, request)
    if request.layer is None or request.head is None:
        layer, head = overview["start"]
    block = gpt.blocks[layer]
    stages = block_by_ladder(block, text_pass.stream[layer][0])
    past = torch.tril_indices(len(ids), len(ids))
    theirs = text_pass.attention(layer)[head]
    return {
        "model": loaded.name,
        "sha256": loaded.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_embd": config.n_embd,
        "inner_dim": config.inner_dim,
        "head_dim": config.n_embd // config.n_head,
        "vocab_size": config.vocab_size,
        "scale": block.attn.scale,
        "layer": layer,
        "head": head,
        "query": query,
        "note": tokenized.note,
        "ids": ids,
        "tokens": [token.text for token in loaded.tokens(ids)],
        "weights": theirs[past[0], past[1]].tolist(),
        "scores": (stages.scores[head, query, : query + 1].float() * block.attn.scale).tolist(),  # of the query
        "error": largest_difference(stages.weights[head].float().cpu(), theirs),
        "largest_error": 1e-4 if loaded.dtype == torch.float32 else 0.1,
        "embedding": {
            "token": rounded(gpt.wte.weight[ids[query]]),
            "position": rounded(position_embeddings(gpt, query, query + 1)[0]),
            "error": embedding_error(tokenized),
        },
        "vectors": {name: rounded(getattr(stages, name)[query]) for name in STAGES},
        "of_head": {name: rounded(getattr(stages, name)[head, query]) for name in ("query", "key", "value", "context")},
        "errors": stage_errors(block, stages, text_pass.stream[layer + 1][0]),
        "end": next_token_steps(tokenized, query),
        "guesses": guesses_by_layer(tokenized, query),
        "thumbnails": overview["thumbnails"],
        "roles": overview["roles"],
        "story": story(served, loaded),
        **book_case(),
    }


def rounded(vector: Tensor) -> list[float]:
    """The numbers to six digits: enough for any that is shown, and a third of the bytes."""
    return [float(f"{value:.6g}") for value in vector.float().tolist()]


@torch.inference_mode()
def embedding_error(tokenized: TokenizedSentence) -> float:
    gpt, stream = tokenized.loaded.gpt, tokenized.text_pass.stream[0][0]
    tokens = gpt.wte(torch.tensor(tokenized.ids, device=stream.device))
    ours = tokens + position_embeddings(gpt, 0, len(tokenized.ids))
    return largest_difference(ours.float(), stream.float())


def stage_errors(block: Block, stages: BlockStages, after: Tensor) -> dict[str, float]:
    """How far each recomputed stage differs from the model's own; the last is compared with its residual stream."""
    theirs = block_by_model(block, stages.x) | {"after": after}
    return {
        name: largest_difference(getattr(stages, name).float(), stage.float().view_as(getattr(stages, name)))
        for name, stage in theirs.items()
    }


@torch.inference_mode()
def next_token_steps(tokenized: TokenizedSentence, query: int) -> dict[str, object]:
    """After all layers: layer norm, logits over the vocabulary, and the probabilities of the next token."""
    loaded, gpt, text_pass = tokenized.loaded, tokenized.loaded.gpt, tokenized.text_pass
    x = text_pass.stream[-1][0, query]
    normed = normalise(final_norm(gpt), x)
    logits = linear(gpt.lm_head, normed).float().cpu()
    theirs = text_pass.logits(query, query + 1)[0]
    probabilities = ladder.stable_softmax(logits)
    top = logits.argsort(descending=True)[:SHOWN_TOKENS].tolist()
    follower = tokenized.ids[query + 1] if query + 1 < len(tokenized.ids) else None
    shown = [*top, *([follower] if follower is not None and follower not in top else [])]
    return {
        "x": rounded(x),
        "normed": rounded(normed),
        "norm_error": largest_difference(normed.float(), gpt.head_input(x).float()),
        "logits_error": largest_difference(logits, theirs),
        "probability_error": largest_difference(probabilities, torch.softmax(theirs, dim=-1)),
        "next": [
            {"id": i, "text": loaded.tokens([i])[0].text, "logit": logits[i].item(), "p": probabilities[i].item()}
            for i in shown
        ],
        "follower": follower,
        "surprise": None if follower is None else -math.log(max(probabilities[follower].item(), 1e-30)),
    }


@torch.inference_mode()
def guesses_by_layer(tokenized: TokenizedSentence, query: int) -> list[dict[str, object]]:
    """The likeliest next token if the model ended before each layer, and after the last one."""
    gpt = tokenized.loaded.gpt
    stream = torch.stack([x[0, query] for x in tokenized.text_pass.stream])
    probabilities = torch.softmax(gpt.logits(stream).float(), dim=-1)
    best = probabilities.max(dim=-1)
    return [
        {"text": tokenized.loaded.tokens([int(i)])[0].text, "p": p.item(), "length": x.float().norm().item()}
        for i, p, x in zip(best.indices, best.values, stream, strict=True)
    ]


def head_overview(loaded: LoadedModel, ids: tuple[int, ...]) -> dict[str, Any]:
    """Thumbnails and clear roles of all heads in this text, and the head to begin with."""
    text_pass = cached_pass(loaded, ids)
    attention = torch.stack([text_pass.attention(layer) for layer in range(loaded.config.n_layer)])
    first = min(len(ids), TOKENS_TO_CHOOSE_FROM)
    pooled = F.adaptive_max_pool2d(attention, min(len(ids), THUMBNAIL))
    roles = clear_text_roles(attention, ids)
    return {
        "start": starting_head(roles) or most_selective_head(attention[..., :first, :first]),
        "thumbnails": (255 * pooled.clamp(min=0).sqrt()).round().to(torch.uint8).flatten(-2).tolist(),
        "roles": [[{"role": role, "score": round(score, 4)} for role, score in row] for row in roles],
    }


def starting_head(roles: list[list[tuple[str, float]]]) -> Head | None:
    """The head whose role is the clearest, None without any; one that looks at the first token only if all do."""
    clear = {
        (layer, head): (role != "first_token", score)
        for layer, row in enumerate(roles)
        for head, (role, score) in enumerate(row)
        if role
    }
    return max(clear, key=lambda place: clear[place], default=None)


def story(served: ServedModels, loaded: LoadedModel) -> dict[str, object]:
    """The losses of blind guessing, a bigram model and this model in nats per token, where they are known."""
    report = read_report(served.sources.get(loaded.name, ""))

    def figure(name: str) -> float | None:
        try:
            number = float(report[name])
        except (ValueError, KeyError, TypeError, OverflowError):
            return None
        return number if math.isfinite(number) else None

    return {
        "uniform": math.log(loaded.config.vocab_size),
        "bigram": figure("bigram_validation_loss"),
        "model": figure("best_validation_loss"),
    }


@lru_cache(maxsize=1)
def book_case() -> dict[str, object]:
    """The weight splits of rung 8, and the same weights in the class that the GPT runs."""
    journey = torch.tensor([list(ladder.JOURNEY.values())])
    splits = seeded(123, lambda: ladder.WeightSplits(3, 2, 2))
    packed = ladder.pack_weight_splits(splits)
    with torch.inference_mode():
        by_splits, by_packed = splits(journey)[0], packed(journey)[0][0]
    return {"published": by_packed.tolist(), "published_error": largest_difference(by_splits, by_packed)}
