"""Rung 10 as data: a served model from a token to the probability of the next one, step by step, and a draw of it."""

import math
from functools import lru_cache
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from model import LoadedModel, SamplingSettings, ladder
from model.drawing.metrics import most_selective_head
from model.gpt import Block
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
from model.modules.head_tensors import Head
from model.sampling import draw_tokens, probabilities, random_generator

from ..serving.served_models import ServedModels
from ..serving.snapshots import read_report
from .tokenized_sentence import (
    MAX_TOKENS,
    TokenizedSentence,
    WholeModelRequest,
    cache_of,
    cached_pass,
    head_and_query,
    tokenize_sentence,
)

TOKENS_TO_CHOOSE_FROM = 96  # of the sentence, on which an interesting head is chosen
THUMBNAIL = 24  # cells of a side, at most
SHOWN_TOKENS = 10  # the likeliest next ones
# Stages that are sent as vectors of one token, and what the model's own modules return of them.
STAGES = ("x", "normed", "heads", "attended", "resid_mid", "mlp_input", "hidden", "activated", "mlp_output", "after")
MAX_DRAWS = 1_000


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
    follower = follower_of(tokenized, query)
    return {
        "x": rounded(x),
        "normed": rounded(normed),
        "norm_error": largest_difference(normed.float(), gpt.head_input(x).float()),
        "logits_error": largest_difference(logits, theirs),
        "probability_error": largest_difference(probabilities, torch.softmax(theirs, dim=-1)),
        "next": [
            {"id": i, "text": loaded.tokens([i])[0].text, "logit": logits[i].item(), "p": probabilities[i].item()}
            for i in shown_tokens(logits, follower)
        ],
        "follower": follower,
        "surprise": None if follower is None else -math.log(max(probabilities[follower].item(), 1e-30)),
    }


def follower_of(tokenized: TokenizedSentence, query: int) -> int | None:
    """The token that follows in the sentence, None after its last one."""
    return tokenized.ids[query + 1] if query + 1 < len(tokenized.ids) else None


def shown_tokens(logits: Tensor, follower: int | None) -> list[int]:
    """The likeliest next tokens, and the one that follows in the sentence."""
    likeliest: list[int] = logits.argsort(descending=True, stable=True)[:SHOWN_TOKENS].tolist()
    return likeliest if follower is None or follower in likeliest else [*likeliest, follower]


@torch.inference_mode()
def guesses_by_layer(tokenized: TokenizedSentence, query: int) -> list[dict[str, object]]:
    """The likeliest next token if the model ended before each layer, and after the last one."""
    gpt = tokenized.loaded.gpt
    stream = torch.stack([x[0, query] for x in tokenized.text_pass.stream])
    probabilities = torch.softmax(gpt.logits(stream).float(), dim=-1)
    best = probabilities.max(dim=-1)
    return [
        {
            "id": int(i),
            "text": tokenized.loaded.tokens([int(i)])[0].text,
            "p": p.item(),
            "length": x.float().norm().item(),
        }
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


class DrawRequest(WholeModelRequest):
    temperature: float = Field(1.0, ge=0, le=2)
    top_k: int = Field(0, ge=0, le=100)  # 0 means all tokens
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(1, ge=0, le=10**9)
    draws: int = Field(1, ge=1, le=MAX_DRAWS)


@torch.inference_mode()
def draw(served: ServedModels, request: DrawRequest) -> dict[str, object]:
    """Tokens drawn after the one that is followed: the first of them, and how often each shown token was drawn."""
    tokenized = tokenize_sentence(served, request)
    _, _, query = head_and_query(tokenized, request)
    logits = tokenized.text_pass.logits(query, query + 1)[0]
    settings = SamplingSettings(temperature=request.temperature, top_k=request.top_k or None, top_p=request.top_p)
    own, drawn_with = logits.double().softmax(dim=-1), probabilities(logits, settings)
    drawn = draw_tokens(drawn_with, random_generator(request.seed), request.draws)
    counts = torch.bincount(drawn, minlength=len(logits))
    shown = shown_tokens(logits, follower_of(tokenized, query))
    rest = torch.ones_like(logits, dtype=torch.bool).index_fill(0, torch.tensor(shown, device=logits.device), False)
    first = int(drawn[0])
    config = tokenized.loaded.config
    is_end = query == len(tokenized.ids) - 1 and len(tokenized.ids) < min(config.context_length, MAX_TOKENS)
    text = tokenized.loaded.tokens([first])[0].text
    return {
        "draws": request.draws,
        "seed": request.seed,
        "drawn": {"id": first, "text": text, "p": own[first].item(), "drawn_with": drawn_with[first].item()},
        "continued": request.sentence + text if is_end else None,
        "n_possible": int((drawn_with > 0).sum()),
        "tokens": [
            {
                "id": i,
                "text": token.text,
                "logit": logits[i].item(),
                "p": own[i].item(),
                "drawn_with": drawn_with[i].item(),
                "n": int(counts[i]),
            }
            for i, token in zip(shown, tokenized.loaded.tokens(shown), strict=True)
        ],
        "others": {
            "p": own[rest].sum().item(),
            "drawn_with": drawn_with[rest].sum().item(),
            "n": request.draws - int(counts[shown].sum()),
        },
    }
