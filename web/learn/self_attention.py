"""Rungs 4 to 8 as data: every stage as rows of numbers, each with the terms that produced it."""

import torch
from torch import Tensor

from model import InputError, ladder
from model.ladder.terms import (
    causal_stages,
    dot_product_terms,
    largest_difference,
    naive_terms,
    scaled_softmax,
    seeded,
    softmax_terms,
    weights_of_random_query,
)
from model.ladder.timing import time_attention

from .ask import Ask
from .sentence import Sentence, read_sentence

# The scores whose softmax Karpathy's lecture sharpens, and the heads whose batched product the book prints.
DIFFUSE = (0.1, -0.2, 0.3, -0.2, 0.5)
HEADS = (
    ((0.2745, 0.6584, 0.2775, 0.8573), (0.8993, 0.0390, 0.9268, 0.7388), (0.7179, 0.7058, 0.9156, 0.4340)),
    ((0.0772, 0.3565, 0.1479, 0.5331), (0.4066, 0.2318, 0.4545, 0.9737), (0.4606, 0.5159, 0.4220, 0.5786)),
)
KEYS_OF_ONE_QUERY = 12
SPREAD_TOKENS = 256  # enough for the variance to be close to its expectation
CURVE_DIMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TIMED_WIDTH = 256  # n_embd of the constructions that are timed


def dot_terms(a: Tensor, b: Tensor) -> dict[str, object]:
    """The terms of ``a b^T``, for each cell ``[row of a][row of b]``."""
    return {"left": a.tolist(), "right": b.tolist(), "products": dot_product_terms(a, b).tolist()}


def softmax(attn_scores: Tensor) -> dict[str, object]:
    """The terms of a softmax. Minus infinity is sent as null."""
    largest, exponentials, sums = softmax_terms(attn_scores)
    return {
        "scores": attn_scores.tolist(),
        "largest": largest.tolist(),
        "exponentials": exponentials.tolist(),
        "sums": sums.tolist(),
    }


def sentence_data(sentence: Sentence) -> dict[str, object]:
    """What every rung sends about the sentence itself."""
    return {"words": sentence.words, "note": sentence.note, "is_book": sentence.is_book, "x": sentence.x.tolist()}


def averages_of_the_past(ask: Ask) -> dict[str, object]:
    """Rung 4: the average of the past, three ways."""
    sentence = read_sentence(ask.sentence)
    x, labels = sentence.x, sentence.words
    if ask.lecture:
        x = seeded(1337, lambda: torch.randn(4, 8, 2))[0]
        labels = [f"t{t}" for t in range(len(x))]
    by_loop = ladder.average_by_loop(x)
    by_matrix, by_softmax = ladder.average_by_matrix(x), ladder.average_by_softmax(x)
    weights = ladder.average_by_matrix(torch.eye(len(x)))
    return {
        "words": labels,
        "note": "" if ask.lecture else sentence.note,
        "lecture": ask.lecture,
        "x": x.tolist(),
        "weights": weights.tolist(),
        "masked": ladder.mask_future(torch.zeros(len(x), len(x))).tolist(),
        "by_loop": by_loop.tolist(),
        "by_matrix": by_matrix.tolist(),
        "by_softmax": by_softmax.tolist(),
        "terms": dot_terms(weights, x.mT),
        "error": max(largest_difference(by_loop, by_matrix), largest_difference(by_loop, by_softmax)),
    }


def without_weights(ask: Ask) -> dict[str, object]:
    """Rung 5: self-attention without weights; a ``factor`` on the scores can make the naive softmax fail."""
    sentence = read_sentence(ask.sentence)
    x = sentence.x
    scores, weights, context = ladder.attention_without_weights(x)
    larger, naive, stable = scaled_softmax(scores, ask.factor)
    exponentials, sums = naive_terms(larger)
    return sentence_data(sentence) | {
        "scores": scores.tolist(),
        "score_terms": dot_terms(x, x),
        "sums": scores.sum(dim=-1).tolist(),
        "sum_normalised": ladder.sum_normalise(scores).tolist(),
        "negative": bool((scores < 0).any()),
        "weights": weights.tolist(),
        "weight_terms": softmax(scores),
        "context": context.tolist(),
        "context_terms": dot_terms(weights, x.mT),
        "factor": ask.factor,
        "largest": larger.max().item(),
        "larger": larger.tolist(),
        "naive": naive.tolist(),
        "naive_terms": {"exponentials": exponentials.tolist(), "sums": sums.tolist()},
        "stable": stable.tolist(),
        "stable_terms": softmax(larger),
        "error": largest_difference(ladder.naive_softmax(scores), weights),
    }


def with_trainable_weights(ask: Ask) -> dict[str, object]:
    """Rung 6: self-attention with trainable weights, as parameters (seed 123) or linear layers (seed 789)."""
    sentence = read_sentence(ask.sentence)
    x = sentence.x
    parameters = seeded(123, lambda: ladder.SelfAttentionV1(3, 2))
    layers = seeded(789, lambda: ladder.SelfAttentionV2(3, 2))
    with torch.inference_mode():
        shown: ladder.SelfAttention = layers if ask.linear else parameters
        query, key, value = shown.project(x)
        scores, weights, context = shown.attend(x)
        linear = (layers.W_query.weight, layers.W_key.weight, layers.W_value.weight)
        transposed = (parameters.W_query.T, parameters.W_key.T, parameters.W_value.T)
        matrices = dict(zip(("query", "key", "value"), linear if ask.linear else transposed, strict=True))
        data = sentence_data(sentence) | {
            "linear": ask.linear,
            "matrices": {name: matrix.T.tolist() for name, matrix in matrices.items()},
            "projections": {name: dot_terms(x, matrix) for name, matrix in matrices.items()},
            "query": query.tolist(),
            "key": key.tolist(),
            "value": value.tolist(),
            "scale": shown.scale,
            "scores": scores.tolist(),
            "score_terms": dot_terms(query, key),
            "weights": weights.tolist(),
            "weight_terms": softmax(scores * shown.scale),
            "context": context.tolist(),
            "context_terms": dot_terms(weights, value.mT),
        }
        ladder.transfer_weights(layers, parameters)
        return data | {"error": largest_difference(parameters(x), layers(x))}


def scaled_scores(ask: Ask) -> dict[str, object]:
    """Rung 6: why scores are scaled, shown on random queries and keys, and what sharpens a softmax."""
    generator = torch.Generator()
    curve = []
    for head_dim in sorted({*CURVE_DIMS, ask.head_dim}):
        unscaled, scaled = ladder.scale_demonstration(head_dim, SPREAD_TOKENS, generator.manual_seed(ask.seed))
        curve.append({"head_dim": head_dim, "unscaled": unscaled._asdict(), "scaled": scaled._asdict()})
    raw, divided = weights_of_random_query(ask.head_dim, KEYS_OF_ONE_QUERY, generator.manual_seed(ask.seed))
    diffuse = torch.tensor(DIFFUSE)
    return {
        "head_dim": ask.head_dim,
        "at": next(point for point in curve if point["head_dim"] == ask.head_dim),
        "curve": [point for point in curve if point["head_dim"] in CURVE_DIMS],
        "unscaled": raw.tolist(),
        "scaled": divided.tolist(),
        "sharpness": ask.sharpness,
        "diffuse": DIFFUSE,
        "softmax": ladder.stable_softmax(diffuse * ask.sharpness).tolist(),
    }


def causal(ask: Ask) -> dict[str, object]:
    """Rung 7: causal attention and dropout, on the scores of the linear layers of rung 6."""
    sentence = read_sentence(ask.sentence)
    layers = seeded(789, lambda: ladder.SelfAttentionV2(3, 2))
    with torch.inference_mode():
        query, key, _ = layers.project(sentence.x)
        scores = layers.attend(sentence.x).scores
        stages = causal_stages(scores, layers.scale)
        dropped = ladder.drop_weights(stages.weights, ask.dropout, torch.Generator().manual_seed(ask.seed))
    return sentence_data(sentence) | {
        "scores": scores.tolist(),
        "score_terms": dot_terms(query, key),
        "scale": layers.scale,
        **{name: stage.tolist() for name, stage in stages._asdict().items()},
        "all_terms": softmax(scores * layers.scale),
        "weight_terms": softmax(ladder.mask_future(scores * layers.scale)),
        "error": largest_difference(stages.renormalised, stages.weights),
        "dropout": ask.dropout,
        "keep_scale": 1 / (1 - ask.dropout),
        "dropped": dropped.tolist(),
        "row_sums": dropped.sum(dim=-1).tolist(),
    }


def multi_head(ask: Ask) -> dict[str, object]:
    """Rung 8: two stacked heads, the same as weight splits, and the book's splits with an output projection."""
    sentence = read_sentence(ask.sentence)
    x = sentence.x
    stacked = seeded(123, lambda: ladder.StackedHeads(3, 2, 2))
    same = seeded(123, lambda: ladder.WeightSplits(3, 4, 2))
    splits = seeded(123, lambda: ladder.WeightSplits(3, 2, 2))
    a = torch.tensor([HEADS])
    with torch.inference_mode():
        ladder.transfer_heads(stacked, same)
        attention = same.attend(x)
        merged = ladder.merge_heads(attention.context)
        context = ladder.merge_heads(splits.attend(x).context)
        return sentence_data(sentence) | {
            "stacked": stacked(x).tolist(),
            "merged": merged.tolist(),
            "head_weights": attention.weights.tolist(),
            "merged_terms": [dot_terms(w, v.mT) for w, v in zip(attention.weights, same.project(x)[2], strict=True)],
            "error": largest_difference(stacked(x), merged),
            "context": context.tolist(),
            "projected": splits(x).tolist(),
            "projected_terms": dot_terms(context, splits.out_proj.weight),
            "bias": splits.out_proj.bias.tolist(),
            "heads": a[0].tolist(),
            "product": ladder.product_batched(a, a)[0].tolist(),
            "product_terms": [dot_terms(head, head) for head in a[0]],
            "product_error": largest_difference(ladder.product_batched(a, a), ladder.product_head_by_head(a, a)),
        }


def running_times(ask: Ask) -> dict[str, object]:
    """Rung 8: how long each construction takes on this machine."""
    if TIMED_WIDTH % ask.n_head:
        raise InputError("n_head", f"n_head must divide {TIMED_WIDTH}, found {ask.n_head}")
    times = time_attention(ask.n_head, TIMED_WIDTH, ask.n_tokens)
    return times._asdict() | {"n_head": ask.n_head, "n_embd": TIMED_WIDTH, "n_tokens": ask.n_tokens}
