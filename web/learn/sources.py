"""The lines of the ladder that a rung shows, read from the files themselves so that they can't drift."""

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from model import attention, ladder
from model.ladder import bpe as ladder_bpe
from model.ladder import text as ladder_text

ROOT = Path(__file__).parents[2]

# What computes each rung, in the order of reading.
SHOWN: dict[int, list[Callable[..., Any]]] = {
    1: [
        ladder_text.WordTokenizer,
        ladder_text.CharacterTokenizer,
        ladder_bpe.learn_merges,
        ladder_bpe.merge_pair,
        ladder_bpe.BytePairEncoding._merge,
    ],
    2: [ladder.sliding_windows, ladder.TokenAndPositionEmbedding],
    3: [ladder.BigramModel, ladder.train_bigram, ladder.counted_bigram_loss],
    4: [ladder.average_by_loop, ladder.average_by_matrix, ladder.average_by_softmax, ladder.mask_future],
    5: [ladder.attention_without_weights, ladder.sum_normalise, ladder.naive_softmax, ladder.stable_softmax],
    6: [
        ladder.SelfAttention,
        ladder.SelfAttentionV1,
        ladder.SelfAttentionV2,
        ladder.transfer_weights,
        ladder.scale_demonstration,
    ],
    7: [ladder.causal_by_renormalising, ladder.causal_by_minus_infinity, ladder.drop_weights, ladder.CausalAttention],
    8: [
        ladder.StackedHeads,
        ladder.WeightSplits,
        ladder.split_heads,
        ladder.merge_heads,
        ladder.transfer_heads,
        ladder.product_batched,
        ladder.product_head_by_head,
    ],
    9: [attention.MultiHeadAttention, ladder.pack_weight_splits],
}


@cache
def sources(rung: int) -> list[dict[str, Any]]:
    """``name``, ``file``, the ``line`` it begins at, and the ``code`` of what computes a rung."""
    found = []
    for shown in SHOWN[rung]:
        lines, first = inspect.getsourcelines(shown)
        file = Path(inspect.getsourcefile(shown) or "").relative_to(ROOT)
        code = inspect.cleandoc("\n" + "".join(lines))
        found.append({"name": shown.__qualname__, "file": file.as_posix(), "line": first, "code": code})
    return found
