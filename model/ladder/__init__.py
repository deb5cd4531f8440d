"""The ladder: the steps that lead to the attention of a GPT, each adding one idea to the one before.

    1  text to tokens             WordTokenizer, CharacterTokenizer, BytePairEncoding, learn_merges
    2  tokens to batches          sliding_windows, random_batch, TokenAndPositionEmbedding
    3  the bigram model           BigramModel, train_bigram, counted_bigram_loss
    4  averages of the past       average_by_loop, average_by_matrix, average_by_softmax
    5  attention without weights  sum_normalise, naive_softmax, stable_softmax, attention_without_weights
    6  trainable attention        SelfAttentionV1, SelfAttentionV2, transfer_weights, scale_demonstration
    7  causal attention           causal_by_renormalising, causal_by_minus_infinity, drop_weights, CausalAttention
    8  many heads                 StackedHeads, WeightSplits, transfer_heads, product_batched, product_head_by_head
    9  the rest of a block        layer_norm, gelu, block_by_ladder; loss_ladder.MODELS, train_one
    10 the whole model            pack_weight_splits -> model.attention.MultiHeadAttention, block_by_ladder
    11 induction                  read_twice, scores_without

Rungs 1 and 2 are in ``text.py`` and ``bpe.py``, 3 in ``bigram.py``, 4 and 5 in ``averages.py``, 6 to 8 in
``trainable_attention.py``, 9 and 10 in ``block.py``, 11 in ``induction.py``. The order follows Raschka 2024, chapters 2
and 3; rungs 3 and 4 are from Karpathy's lecture on tiny Shakespeare. ``terms.py`` (intermediate results) and
``timing.py`` (running times) serve the pages that show the ladder.
"""

from ..attention import MultiHeadAttention
from ..tokenizer import END_OF_TEXT
from .averages import (
    JOURNEY,
    SHINY,
    Attention,
    attention_without_weights,
    average_by_loop,
    average_by_matrix,
    average_by_softmax,
    mask_future,
    naive_softmax,
    scores_by_loop,
    stable_softmax,
    sum_normalise,
)
from .bigram import BigramModel, counted_bigram_loss, train_bigram
from .block import block_by_ladder, gelu, layer_norm
from .bpe import BytePairEncoding, LearnedMerge, MergeStep, learn_merges, visible
from .induction import TwiceRead, read_twice, scores_without
from .text import UNKNOWN, CharacterTokenizer, TokenAndPositionEmbedding, WordTokenizer, random_batch, sliding_windows
from .trainable_attention import (
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

# fmt: off
# One line per idea, in the order of the ladder, reads better than one line per name.
__all__ = [  # noqa: RUF022
    "END_OF_TEXT", "UNKNOWN", "WordTokenizer", "CharacterTokenizer",
    "BytePairEncoding", "LearnedMerge", "MergeStep", "learn_merges", "visible",
    "sliding_windows", "random_batch", "TokenAndPositionEmbedding",
    "BigramModel", "train_bigram", "counted_bigram_loss",
    "average_by_loop", "average_by_matrix", "average_by_softmax", "mask_future",
    "JOURNEY", "SHINY", "Attention", "scores_by_loop",
    "sum_normalise", "naive_softmax", "stable_softmax", "attention_without_weights",
    "SelfAttention", "SelfAttentionV1", "SelfAttentionV2", "transfer_weights", "ScoreSpread", "scale_demonstration",
    "causal_by_renormalising", "causal_by_minus_infinity", "drop_weights", "CausalAttention",
    "StackedHeads", "WeightSplits", "transfer_heads", "split_heads", "merge_heads",
    "product_batched", "product_head_by_head", "layer_norm", "gelu", "block_by_ladder",
    "MultiHeadAttention", "pack_weight_splits", "TwiceRead", "read_twice", "scores_without",
]
# fmt: on
