"""The arithmetic ledger: one cell of one head, from the query and key vectors to the logit of the next token."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, TypedDict

import torch
from torch import Tensor

from ..drawing.heat_map import in_digits, shown_token
from ..errors import InvalidValue
from .answer import Answer, SentAs, Shape, TokenId
from .attribution import attention_at, attribution, prediction, read_logit
from .question import HeadIndex, Layer, NextToken, Within
from .text_pass import TextPass

Vector = Annotated[Tensor, Shape(("head_dim",)), "`head_dim` numbers."]
Row = Annotated[Tensor, Shape(("query + 1",)), "One number for each key up to the query."]


@dataclass(frozen=True)
class LedgerStage:
    """A query and a key before a step on the way to their score."""

    before: Annotated[str, SentAs(Literal["normalised", "rotated"])]
    query: Vector
    key: Vector


class LedgerErrors(TypedDict):
    """The largest differences from the model's own results."""

    weights: Annotated[float, "In the row of attention weights, compared with the model's own."]
    context: Annotated[float, "In the context vector, compared with the model's own."]
    logit: Annotated[float, "In the sum of the head's part and the rest, compared with the model's own logit."]


@dataclass(frozen=True)
class Ledger(Answer):
    """The vectors, products, sums, the softmax and the parts of the logit, and how far they are from the model's
    own.

    Inputs are the model's own; everything that follows from them is computed here, one operation at a time.
    """

    layer: int
    head: int
    position: Annotated[tuple[int, int], "The positions of the query and the key."]
    token: TokenId
    stages: Annotated[
        list[LedgerStage],
        "The query and key before they are normalised or rotated; empty if they are used as projected.",
    ]
    frequencies: Annotated[
        Vector | None,
        "The angle in radians by which one position rotates numbers i and i + n of the query and the key.",
    ]
    query: Vector
    key: Vector
    products: Vector  # query * key
    score: float  # their sum
    scale: float
    n_masked: Annotated[int, "The number of later tokens, whose scores are minus infinity."]
    n_before: Annotated[int, "The number of tokens before the layer's window, whose scores are minus infinity, too."]
    scaled: Annotated[Row, "The row of scores, scaled, before any is replaced."]
    largest: Annotated[float, "The largest that is not replaced, subtracted from each."]
    exponentials: Annotated[Row, "Those of the tokens before the window are 0."]
    denominator: float  # their sum
    weights: Row  # exponentials / denominator
    mask: Annotated[float, "The head mask's factor; 1 without one."]
    value: Vector
    weighted: Vector  # the cell's weight * mask * value
    context: Vector  # the sum of weight * mask * value over all keys
    reading: Annotated[Vector, "What a 1 in each component of the context vector would add to the logit."]
    terms: Vector  # weighted * reading
    part: Annotated[float, "What this key adds to the logit."]
    parts: Annotated[Row, "What each key adds to the logit."]
    head_part: float  # their sum
    rest: Annotated[float, "What everything but this head adds to the logit."]
    logit: float  # the model's own
    probability: float  # the model's own
    errors: LedgerErrors

    @property
    def summary(self) -> str:
        query, key = self.position
        texts = [shown_token(self.texts[at]) if self.texts else str(at) for at in (query, key)]
        cell, token = f"{texts[0]} ({query}) looks at {texts[1]} ({key})", self.token_texts(self.token)
        weight, part = in_digits(float(self.weights[key])), in_digits(self.part)
        return f"{cell} with a weight of {weight}, which adds {part} to the logit of {token}."


@torch.no_grad()
def ledger(
    text: TextPass,
    layer: Layer,
    head: HeadIndex,
    *,
    query: Annotated[
        int | None, Within(below="n_tokens"), "The position of the query, counted from 0; the last by default."
    ] = None,
    key: Annotated[
        int | None,
        Within(below="n_tokens"),
        "The position of the key; by default the one with the largest attention weight.",
    ] = None,
    token: NextToken = None,
) -> Ledger:
    """Every number between one query, one key of a head and the logit of the next token.

    Compute, step by step, what the cell ``(query, key)`` of a head adds to the logit of ``token`` after the query.

    The steps are compared with the model's forward pass: the attention weights of the whole text, and the context
    vectors of the fused attention. By default the query is the last token, the key the one with the largest weight, and
    ``token`` the most probable one. Raises ``InputError`` for a key that the query does not see.
    """
    text.check_head(layer, head)
    query, token = prediction(text, query, token)
    here = attention_at(text, layer, query)
    attn = text.block(layer).attn
    n_before = 0 if attn.window is None else max(0, query + 1 - attn.window)
    key = int(here.weights[head].argmax()) if key is None else key
    if not n_before <= key <= query:
        raise InvalidValue("key", key, f"an integer from {n_before} to {query}, the position of the query")
    q, keys, values = here.query[head], here.keys[head], here.values[head]

    products = q * keys  # (S, head_dim)
    scaled = products.sum(-1) * attn.scale
    largest = scaled[n_before:].max()
    exponentials = (scaled - largest).exp()
    exponentials[:n_before] = 0
    attn_weights = exponentials / exponentials.sum()
    weighted = (attn_weights * here.mask[head])[:, None] * values  # (S, head_dim)
    context = weighted.sum(0)

    steps = attn.stages_of(text.block(layer).attention_input(text.stream[layer][:, : query + 1]), head).items()
    changed = {"normalised": attn.q_norm is not None, "rotated": attn.rotary is not None}
    stages = [
        LedgerStage(step, queries[0, query].cpu(), keys[0, key].cpu())
        for (_, (queries, keys)), (step, _) in pairwise(steps)
        if changed[step]
    ]
    direction, _ = read_logit(text, query, token)
    reading = here.block.attention_adds(here.W_O[head], here.output) @ direction  # (head_dim,)
    parts = (weighted * reading).sum(-1)
    whole = attribution(text, position=query, token=token)
    own_weights = text.attention(layer, query + 1, first=query, heads=[head])[0, 0]
    own_context = text.context(layer)[0, query, head]
    return Ledger(
        layer,
        head,
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
        n_before=n_before,
        scaled=scaled.cpu(),
        largest=float(largest),
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
        rest=whole.sum - float(whole.heads[layer, head]),
        logit=whole.logit,
        probability=whole.probability,
        errors={
            "weights": float((attn_weights.cpu() - own_weights).abs().max()),
            "context": float((context - own_context).abs().max()),
            "logit": abs(float(parts.sum()) + whole.sum - float(whole.heads[layer, head]) - whole.logit),
        },
    )
