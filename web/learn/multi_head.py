"""Rungs 7 and 8 as data: causal attention with dropout, and several heads, stacked or split from one projection."""

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from model import InputError, ladder
from model.ladder.terms import causal_stages, largest_difference, seeded
from model.ladder.timing import time_attention

from ..serving.served_models import ServedModels
from .arithmetic import dot_terms, softmax
from .block import loss_ladder
from .lesson_request import SHOWN_WORDS, LessonRequest, StrictRequest, TwoHeadsRequest
from .self_attention import D_OUT, make_matrices
from .sentence import SIZE, parse_sentence
from .two_heads import two_heads

N_HEAD = 2
# The heads whose batched product the book prints.
HEADS = (
    ((0.2745, 0.6584, 0.2775, 0.8573), (0.8993, 0.0390, 0.9268, 0.7388), (0.7179, 0.7058, 0.9156, 0.4340)),
    ((0.0772, 0.3565, 0.1479, 0.5331), (0.4066, 0.2318, 0.4545, 0.9737), (0.4606, 0.5159, 0.4220, 0.5786)),
)
TIMED_WIDTH = 256  # n_embd of the constructions that are timed

Place = Annotated[int, Field(ge=0, lt=SHOWN_WORDS)]  # of a word


class CausalMaskingRequest(LessonRequest):
    kind: Literal["parameters", "linear"] = "parameters"  # of the matrices on rung 6
    dropout: float = Field(0.5, ge=0, le=0.9)
    dropped: Literal["weights", "ones"] = "weights"
    factor: float = Field(1.0, ge=1, le=100)  # of W query
    seed: int = Field(1, ge=0, le=10**9)
    flipped: list[tuple[Place, Place]] = Field([], max_length=SHOWN_WORDS**2)  # query, key: changes to the causal mask


class ManyHeadsRequest(TwoHeadsRequest):
    d_out: Literal[2, 4, 16] = 2


class TimesRequest(StrictRequest):
    n_head: int = Field(8, ge=1, le=64)
    n_tokens: int = Field(64, ge=1, le=512)


def causal(served: ServedModels, request: CausalMaskingRequest) -> dict[str, object]:
    """Causal attention and dropout, on the scores of rung 6. The mask may have been changed."""
    sentence = parse_sentence(served, request)
    x = sentence.x
    matrices, scale = make_matrices(request.kind), D_OUT**-0.5
    attention = seeded(123, lambda: ladder.CausalAttention(SIZE, 2)).eval()
    with torch.inference_mode():
        query, key = x @ matrices["query"] * request.factor, x @ matrices["key"]
        scores = query @ key.T
        mask = changed_mask(request, len(x))
        stages = causal_stages(scores, scale, mask)
        shown = torch.ones_like(scores) if request.dropped == "ones" else stages.weights
        drawn = torch.rand(shown.shape, generator=torch.Generator().manual_seed(request.seed))
        dropped = ladder.drop_weights(shown, request.dropout, torch.Generator().manual_seed(request.seed))
        batch = attention(torch.stack([x, x]))
        alone = attention.attend(x)
        value = attention.W_value(x)
    return sentence.data | {
        "kind": request.kind,
        "factor": request.factor,
        "scores": scores.tolist(),
        "score_terms": dot_terms(query, key),
        "scale": scale,
        **{name: stage.tolist() for name, stage in stages._asdict().items()},
        "all_terms": softmax(scores * scale),
        "weight_terms": softmax(stages.masked * scale),
        "error": largest_difference(stages.renormalised, stages.weights),
        "mask": mask.int().tolist(),
        # Meant to mask what is above the diagonal, but 0 times infinity below it is not a number.
        "added": (scores + torch.ones_like(scores).triu(1) * -torch.inf).tolist(),
        "dropout": request.dropout,
        "dropped_from": request.dropped,
        "before": shown.tolist(),
        "drawn": drawn.tolist(),
        "keep_scale": 1 / (1 - request.dropout),
        "dropped": dropped.tolist(),
        "row_sums": dropped.sum(dim=-1).tolist(),
        "batch": batch.tolist(),
        "batch_terms": dot_terms(alone.weights, value.mT),
        "batch_error": largest_difference(batch[0], batch[1]),
        "lecture": lecture_head(),
        "peeking": loss_ladder()["peeking"],
    }


def changed_mask(request: CausalMaskingRequest, T: int) -> Tensor:
    """Where a query may look, ``(T, T)``: the causal mask with the visitor's changes. A word always sees itself."""
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    for query, key in request.flipped:
        if query != key and max(query, key) < T:
            mask[query, key] = not mask[query, key]
    return mask


def lecture_head() -> dict[str, object]:
    """One head of the lecture on tiny Shakespeare: from random tokens of 32 numbers to 16, with unscaled scores."""

    def make() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x = torch.randn(4, 8, 32)
        key, query, value = (nn.Linear(32, 16, bias=False) for _ in range(3))
        with torch.no_grad():
            return x, query(x), key(x), value(x)

    x, query, key, value = seeded(1337, make)
    scores = query @ key.mT
    weights = ladder.causal_by_minus_infinity(scores)
    return {
        "weights": weights[0].tolist(),
        "terms": softmax(ladder.mask_future(scores)[0]),
        "x": list(x.shape),
        "out": list((weights @ value).shape),
    }


def multi_head(served: ServedModels, request: ManyHeadsRequest) -> dict[str, object]:
    """Two stacked heads, the same as weight splits with an output projection, and the book's own splits."""
    sentence = parse_sentence(served, request)
    x = sentence.x
    stacked = seeded(123, lambda: ladder.StackedHeads(SIZE, 2, N_HEAD))
    same = seeded(123, lambda: ladder.WeightSplits(SIZE, 4, N_HEAD))
    a = torch.tensor([HEADS])
    with torch.inference_mode():
        ladder.transfer_heads(stacked, same)
        attention = same.attend(x)
        merged = ladder.merge_heads(attention.context)
        wide = same.W_query(x)
        query, key, value = same.project(x)
        return sentence.data | {
            "stacked": stacked(x).tolist(),
            "merged": merged.tolist(),
            "w_out": same.out_proj.weight.T.tolist(),
            "b_out": same.out_proj.bias.tolist(),
            "output": same(x).tolist(),
            "output_terms": dot_terms(merged, same.out_proj.weight),
            "wide": wide.tolist(),
            "wide_terms": dot_terms(x, same.W_query.weight),
            "split": query.tolist(),
            "trained": two_heads(served, request),
            "random": [
                {
                    "weights": weights.tolist(),
                    "score_terms": dot_terms(q, k),
                    "weight_terms": softmax(ladder.mask_future(q @ k.T) * same.scale),
                }
                for q, k, weights in zip(query, key, attention.weights, strict=True)
            ],
            "values": value.tolist(),
            "value_terms": [dot_terms(x, part) for part in same.W_value.weight.chunk(N_HEAD)],
            "merged_terms": [dot_terms(w, v.mT) for w, v in zip(attention.weights, value, strict=True)],
            "error": largest_difference(stacked(x), merged),
            "torch_error": difference_from_torch(merged),
            "heads": a[0].tolist(),
            "product": ladder.product_batched(a, a)[0].tolist(),
            "product_terms": [dot_terms(head, head) for head in a[0]],
            "product_error": largest_difference(ladder.product_batched(a, a), ladder.product_head_by_head(a, a)),
            **projected(x, request.d_out),
        }


def projected(x: Tensor, d_out: int) -> dict[str, object]:
    """Weight splits of ``d_out`` numbers in all, before and after the output projection."""
    splits = seeded(123, lambda: ladder.WeightSplits(SIZE, d_out, N_HEAD))
    attention = splits.attend(x)
    query, key, value = splits.project(x)
    context = ladder.merge_heads(attention.context)
    return {
        "d_out": d_out,
        "splits_scores": ladder.mask_future(attention.scores).tolist(),
        "splits_score_terms": [dot_terms(q, k) for q, k in zip(query, key, strict=True)],
        "splits_weights": attention.weights.tolist(),
        "splits_weight_terms": [
            softmax(ladder.mask_future(q @ k.T) * splits.scale) for q, k in zip(query, key, strict=True)
        ],
        "context": context.tolist(),
        "context_terms": [dot_terms(w, v.mT) for w, v in zip(attention.weights, value, strict=True)],
        "projected": splits(x).tolist(),
        "projected_terms": dot_terms(context, splits.out_proj.weight),
        "projection": splits.out_proj.weight.T.tolist(),
        "bias": splits.out_proj.bias.tolist(),
    }


def difference_from_torch(x: Tensor) -> float:
    """The difference of splits on ``x`` ``(T, C)`` from ``torch.nn.MultiheadAttention`` with the same weights."""
    T, C = x.shape
    splits = seeded(123, lambda: ladder.WeightSplits(C, C, N_HEAD))
    theirs = nn.MultiheadAttention(C, N_HEAD, bias=True, batch_first=True)
    layers = (splits.W_query, splits.W_key, splits.W_value)
    state = {
        "in_proj_weight": torch.cat([layer.weight for layer in layers]),
        "in_proj_bias": torch.zeros(3 * C),
        "out_proj.weight": splits.out_proj.weight,
        "out_proj.bias": splits.out_proj.bias,
    }
    theirs.load_state_dict(state)
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    context, _ = theirs(x[None], x[None], x[None], attn_mask=future, need_weights=False)
    return largest_difference(context[0], splits(x))


def running_times(request: TimesRequest) -> dict[str, object]:
    """The running time of each construction on this machine."""
    if TIMED_WIDTH % request.n_head:
        raise InputError("n_head", f"n_head must divide {TIMED_WIDTH}, found {request.n_head}")
    times = time_attention(request.n_head, TIMED_WIDTH, request.n_tokens)
    return times._asdict() | {"n_head": request.n_head, "n_embd": TIMED_WIDTH, "n_tokens": request.n_tokens}
