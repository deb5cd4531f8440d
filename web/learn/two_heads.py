"""Two trained heads side by side, for rungs 6 and 8: those of a served model that differ most on the sentence."""

import torch
from torch import Tensor

from model.gpt import Block
from model.ladder.averages import mask_future
from model.ladder.block import block_by_ladder
from model.ladder.terms import largest_difference
from model.lens.text_pass import TextPass
from model.modules.head_tensors import Head

from ..serving.served_models import ServedModels
from .arithmetic import softmax
from .lesson_request import SHOWN_WORDS, TwoHeadsRequest
from .sentence import word_model
from .tokenized_sentence import cached_pass, tokenize_sentence


@torch.inference_mode()
def two_heads(served: ServedModels, request: TwoHeadsRequest) -> dict[str, object] | None:
    """Their attention weights on the first tokens of the sentence, each with the terms that produced it.

    The heads are those of ``request.pair`` if the model has them, otherwise the two that differ most. None without a
    model.
    """
    loaded = word_model(served, request.model)
    if loaded is None:
        return None
    tokenized = tokenize_sentence(served, request.model_copy(update={"model": loaded.name}))
    config, ids = tokenized.loaded.config, tokenized.ids[:SHOWN_WORDS]
    text_pass = cached_pass(tokenized.loaded, tuple(ids))
    weights = torch.stack([text_pass.attention(layer) for layer in range(config.n_layer)])
    pair = request.pair
    if pair is None or any(layer >= config.n_layer or head >= config.n_head for layer, head in pair):
        pair = most_different(weights)
    first, second = (weights[head] for head in pair)
    return {
        "model": tokenized.loaded.name,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "tokens": [token.text for token in tokenized.loaded.tokens(ids)],
        "n_tokens": len(tokenized.ids),
        "largest_error": 1e-4 if tokenized.loaded.dtype == torch.float32 else 0.1,
        "difference": distance(first, second).item(),
        "heads": [one_head(tokenized.loaded.gpt.blocks[layer], text_pass, layer, head) for layer, head in pair],
    }


def one_head(block: Block, text_pass: TextPass, layer: int, head: int) -> dict[str, object]:
    """The weights of a head, recomputed from its queries and keys, and what most of that weight falls on."""
    stages = block_by_ladder(block, text_pass.stream[layer][0])
    query, key = (stage[head].float().cpu() for stage in (stages.query, stages.key))
    used = text_pass.attention(layer)[head]
    scores = mask_future(query @ key.T * block.attn.scale)
    return {
        "layer": layer,
        "head": head,
        "weights": used.tolist(),
        "scale": block.attn.scale,
        "query": query.tolist(),
        "key": key.tolist(),
        "weight_terms": softmax(scores),
        "error": largest_difference(stages.weights[head].float().cpu(), used),
        "habits": habits(used),
    }


def habits(weights: Tensor) -> dict[str, float]:
    """The mean weight that the tokens after the first two give to themselves, the one before, and the first."""
    rows = weights[2:] if len(weights) > 2 else weights[-1:]
    at = torch.arange(len(weights) - len(rows), len(weights))
    places = {"itself": at, "the token before": (at - 1).clamp(min=0), "the first token": torch.zeros_like(at)}
    return {name: weights[at, place].mean().item() for name, place in places.items()}


def distance(first: Tensor, second: Tensor) -> Tensor:
    """How far two heads' weights ``(..., T, T)`` are apart: half the sum of absolute differences, averaged over rows.

    The first row is left out: it is 1 in every head. 0 for equal heads, 1 for heads that never look at the same token.
    """
    rows = slice(1, None) if first.shape[-1] > 1 else slice(None)
    return (first - second).abs().sum(dim=-1)[..., rows].mean(dim=-1) / 2


def most_different(weights: Tensor) -> tuple[Head, Head]:
    """The two heads of ``(n_layer, n_head, T, T)`` weights that are farthest apart, among those that decide.

    A head that spreads its weights is far from any other one, and shows little: the sharper half is compared.
    """
    _, n_head, *_ = weights.shape
    flat = weights.flatten(0, 1)
    sharp = flat.amax(dim=-1).mean(dim=-1).argsort(descending=True)[: max(2, len(flat) // 2)].sort().values
    chosen = flat[sharp]
    apart = distance(chosen[:, None], chosen[None])
    first, second = divmod(int(apart.argmax()), len(chosen))
    a, b = (divmod(int(sharp[i]), n_head) for i in sorted((first, second)))
    return a, b
