"""The arithmetic ledger: one cell of one head, from the query and key vectors to the logit of the next token."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..errors import InvalidValue
from .answer import Answer
from .attribution import attention_at, attribution, prediction, read_logit
from .text_pass import TextPass


@dataclass(frozen=True)
class Stage(Answer):
    """A query and a key before a step on the way to their score, ``(head_dim,)`` each, float32 on the CPU."""

    before: str  # "normalised" or "rotated"
    query: Tensor
    key: Tensor


@dataclass(frozen=True)
class Ledger(Answer):
    """Every number on the way from one query and one key to one logit, float32 on the CPU.

    The vectors are ``(head_dim,)`` and the rows ``(S,)``, one number for each key that the query sees. Inputs are the
    model's own; everything that follows from them is computed here, one operation at a time.
    """

    position: tuple[int, int]  # of the query and the key
    token: int  # the next token
    stages: list[Stage]  # the query and key before each of these steps; none if they are used as projected
    frequencies: Tensor | None  # the radians by which one position rotates each pair (i, i + n) of their numbers
    query: Tensor
    key: Tensor
    products: Tensor  # query * key
    score: float  # their sum
    scale: float
    n_masked: int  # later tokens, whose scores are minus infinity
    scaled: Tensor  # the row of scores times the scale
    largest: float  # of that row, subtracted from each
    exponentials: Tensor
    denominator: float  # their sum
    weights: Tensor  # exponentials / denominator
    mask: float  # the factor of the head's context vectors: 1 unless the text was read with a head mask
    value: Tensor
    weighted: Tensor  # the cell's weight * mask * value
    context: Tensor  # the sum of weight * mask * value over all keys
    reading: Tensor  # what a 1 in each component of the context vector adds to the logit: W_O @ direction
    terms: Tensor  # weighted * reading
    part: float  # their sum: what this key adds to the logit through this head
    parts: Tensor  # this sum for every key
    head_part: float  # their sum: what the head adds
    rest: float  # what all other heads, the MLPs, the embedding and the biases add
    logit: float  # the model's own
    probability: float  # the model's own
    errors: dict[str, float]  # the largest differences from the model's own results

    def content(self) -> dict[str, Any]:
        return self.numbers() | {"token": self.named([self.token])[0]}


@torch.inference_mode()
def ledger(
    text: TextPass,
    *,
    layer: int,
    head: int,
    query: int | None = None,
    key: int | None = None,
    token: int | None = None,
) -> Ledger:
    """Compute, step by step, what the cell ``(query, key)`` of a head adds to the logit of ``token`` after the query.

    The steps are compared with the model's forward pass: the attention weights of the whole text, and the context
    vectors of the fused attention. By default the query is the last token, the key the one with the largest weight, and
    ``token`` the most probable one. Raises ``InputError`` for a key after the query.
    """
    text.check_head(layer, head)
    query, token = prediction(text, query, token)
    here = attention_at(text, layer, query)
    key = int(here.weights[head].argmax()) if key is None else key
    if not 0 <= key <= query:
        raise InvalidValue("key", key, f"an integer from 0 to {query}, the position of the query")
    q, keys, values = here.query[head], here.keys[head], here.values[head]
    attn = text.block(layer).attn

    products = q * keys  # (S, head_dim)
    scaled = products.sum(-1) * attn.scale
    exponentials = (scaled - scaled.max()).exp()
    attn_weights = exponentials / exponentials.sum()
    weighted = (attn_weights * here.mask[head])[:, None] * values  # (S, head_dim)
    context = weighted.sum(0)

    projected = attn.projected(text.block(layer).attention_input(text.stream[layer][:, : query + 1]), head)
    steps = attn.stages(projected.query, projected.key).items()
    stages = [
        Stage(step, queries_before[0, 0, query].cpu(), keys_before[0, 0, key].cpu())
        for (_, (queries_before, keys_before)), (step, (queries_after, _)) in pairwise(steps)
        if queries_after is not queries_before
    ]
    direction, _ = read_logit(text, query, token)
    reading = here.W_O[head] @ direction  # (head_dim,)
    parts = (weighted * reading).sum(-1)
    whole = attribution(text, position=query, token=token)
    own_weights = text.attention(layer, query + 1, first=query, heads=[head])[0, 0]
    own_context = text.context(layer)[0, query, head]
    return Ledger(
        (query, key),
        token,
        stages=stages,
        frequencies=None if attn.rotary is None else attn.rotary.frequencies(),
        query=q.cpu(),
        key=keys[key].cpu(),
        products=products[key].cpu(),
        score=float(products[key].sum()),
        scale=attn.scale,
        n_masked=len(text.ids) - query - 1,
        scaled=scaled.cpu(),
        largest=float(scaled.max()),
        exponentials=exponentials.cpu(),
        denominator=float(exponentials.sum()),
        weights=attn_weights.cpu(),
        mask=float(here.mask[head]),
        value=values[key].cpu(),
        weighted=weighted[key].cpu(),
        context=context.cpu(),
        reading=reading.cpu(),
        terms=(weighted[key] * reading).cpu(),
        part=float(parts[key]),
        parts=parts.cpu(),
        head_part=float(parts.sum()),
        rest=whole.total - float(whole.heads[layer, head]),
        logit=whole.logit,
        probability=whole.probability,
        errors={
            "weights": float((attn_weights.cpu() - own_weights).abs().max()),
            "context": float((context - own_context).abs().max()),
            "logit": abs(float(parts.sum()) + whole.total - float(whole.heads[layer, head]) - whole.logit),
        },
    )
