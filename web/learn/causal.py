"""Rung 7 as data: causal attention, dropout, a batch, and the head of Karpathy's lecture."""

import torch
from torch import Tensor, nn

from model import ladder
from model.ladder.terms import causal_stages, largest_difference, seeded

from ..serving.served_models import ServedModels
from .ask import Ask
from .sentence import SIZE, read_sentence
from .terms import dot_terms, softmax


def causal(served: ServedModels, ask: Ask) -> dict[str, object]:
    """Causal attention and dropout, on the scores of the linear layers of rung 6."""
    sentence = read_sentence(served, ask)
    x = sentence.x
    layers = seeded(789, lambda: ladder.SelfAttentionV2(SIZE, 2))
    attention = seeded(123, lambda: ladder.CausalAttention(SIZE, 2)).eval()
    with torch.inference_mode():
        query, key, _ = layers.project(x)
        scores = layers.attend(x).scores
        stages = causal_stages(scores, layers.scale)
        shown = torch.ones_like(scores) if ask.dropped == "ones" else stages.weights
        drawn = torch.rand(shown.shape, generator=torch.Generator().manual_seed(ask.seed))
        dropped = ladder.drop_weights(shown, ask.dropout, torch.Generator().manual_seed(ask.seed))
        batch = attention(torch.stack([x, x]))
        alone = attention.attend(x)
        value = attention.W_value(x)
    T = len(x)
    return sentence.data | {
        "scores": scores.tolist(),
        "score_terms": dot_terms(query, key),
        "scale": layers.scale,
        **{name: stage.tolist() for name, stage in stages._asdict().items()},
        "all_terms": softmax(scores * layers.scale),
        "weight_terms": softmax(ladder.mask_future(scores * layers.scale)),
        "error": largest_difference(stages.renormalised, stages.weights),
        "mask": torch.ones(T, T).tril().tolist(),
        # 0 times infinity is not a number, below the diagonal of the matrix that was meant to mask what is above it.
        "added": (scores + torch.ones(T, T).triu(1) * -torch.inf).tolist(),
        "dropout": ask.dropout,
        "dropped_from": ask.dropped,
        "before": shown.tolist(),
        "drawn": drawn.tolist(),
        "keep_scale": 1 / (1 - ask.dropout),
        "dropped": dropped.tolist(),
        "row_sums": dropped.sum(dim=-1).tolist(),
        "batch": batch.tolist(),
        "batch_terms": dot_terms(alone.weights, value.mT),
        "batch_error": largest_difference(batch[0], batch[1]),
        "lecture": lecture_head(),
    }


def lecture_head() -> dict[str, object]:
    """One head of the lecture on tiny Shakespeare: random tokens, 32 numbers each, to 16; scores without a scale."""

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
