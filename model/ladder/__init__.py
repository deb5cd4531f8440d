"""The ladder: every construction that leads to the attention of a GPT, each one idea away from the one before.

    1  text to tokens             WordTokenizer, CharacterTokenizer, BytePairEncoding, learn_merges
    2  tokens to batches          sliding_windows, random_batch, TokenAndPositionEmbedding
    3  the bigram model           BigramModel, train_bigram, counted_bigram_loss
    4  averages of the past       average_by_loop, average_by_matrix, average_by_softmax
    5  attention without weights  sum_normalise, naive_softmax, stable_softmax, attention_without_weights
    6  trainable attention        SelfAttentionV1, SelfAttentionV2, transfer_weights, scale_demonstration
    7  causal attention           causal_by_renormalising, causal_by_minus_infinity, drop_weights, CausalAttention
    8  many heads                 StackedHeads, WeightSplits, transfer_heads, product_batched, product_head_by_head
    9  the GPT's own              pack_weight_splits -> model.attention.MultiHeadAttention

Rungs 1 to 3 are in ``text.py`` and ``bpe.py``, 4 and 5 in ``averages.py``, 6 to 9 in ``attention.py``. The order
follows Raschka 2024, chapters 2 and 3; rungs 3 and 4 are those of Karpathy's tiny-Shakespeare lecture.
"""

from ..attention import MultiHeadAttention
from .attention import (
    CausalAttention,
    ScoreSpread,
    SelfAttention,
    SelfAttentionV1,
    SelfAttentionV2,
    StackedHeads,
    WeightSplits,
    causal_by_minus_infinity,
    causal_by_renormalising,
    drop_weights,
    merge_heads,
    pack_weight_splits,
    product_batched,
    product_head_by_head,
    scale_demonstration,
    split_heads,
    transfer_heads,
    transfer_weights,
)
from .averages import (
    JOURNEY,
    Attention,
    attention_without_weights,
    average_by_loop,
    average_by_matrix,
    average_by_softmax,
    mask_future,
    naive_softmax,
    stable_softmax,
    sum_normalise,
)
from .bpe import END_OF_TEXT, BytePairEncoding, LearnedMerge, MergeStep, learn_merges, visible
from .text import (
    UNKNOWN,
    BigramModel,
    CharacterTokenizer,
    TokenAndPositionEmbedding,
    WordTokenizer,
    counted_bigram_loss,
    random_batch,
    sliding_windows,
    train_bigram,
)

# fmt: off
# A line per idea, in the order of the ladder, reads better than a line per name.
__all__ = [
    "END_OF_TEXT", "UNKNOWN", "WordTokenizer", "CharacterTokenizer",
    "BytePairEncoding", "LearnedMerge", "MergeStep", "learn_merges", "visible",
    "sliding_windows", "random_batch", "TokenAndPositionEmbedding",
    "BigramModel", "train_bigram", "counted_bigram_loss",
    "average_by_loop", "average_by_matrix", "average_by_softmax", "mask_future",
    "JOURNEY", "Attention", "sum_normalise", "naive_softmax", "stable_softmax", "attention_without_weights",
    "SelfAttention", "SelfAttentionV1", "SelfAttentionV2", "transfer_weights", "ScoreSpread", "scale_demonstration",
    "causal_by_renormalising", "causal_by_minus_infinity", "drop_weights", "CausalAttention",
    "StackedHeads", "WeightSplits", "transfer_heads", "split_heads", "merge_heads",
    "product_batched", "product_head_by_head", "MultiHeadAttention", "pack_weight_splits",
]
# fmt: on
