"""What a forward pass in loops reads and writes, and the indices of its parts."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .panels import IntegerScratch, PairScratch, TileScratch

# NumPy integers, because Numba would compile the functions again for each Python integer passed to them.
QUERY_KEY_VALUE, ATTENTION_OUTPUT, MLP_INPUT, MLP_OUTPUT = (np.int64(i) for i in range(4))  # the matrices of a layer
OUTPUT_HEAD, ZEROS = np.int64(0), np.int64(1)  # the matrices after those of the last layer
BEFORE_ATTENTION, BEFORE_MLP = np.int64(0), np.int64(2)  # the norms of a layer: gain, followed by shift
FINAL = np.int64(0)  # the norm after the last layer
QUERY, KEY = np.int64(0), np.int64(1)  # the gains of the norms of queries and keys
LEADER, ALONE = np.int64(0), np.int64(1)  # the thread that announces a pass; the number of threads without others
PASS, DONE, ARRIVED = 0, 8, 16  # indices in ``control``, each in a separate cache line
N_ROWS, N_WANTED, N_THREADS, IS_MASKED, RECORDED, N_RECORDED, N_KEYS = range(7)  # indices in ``job``
TOKEN, SLOT, POSITION, IS_WANTED, RECORD = range(5)  # columns of ``rows``
GELU_NEW, GELU, SILU, RELU = range(4)
ACTIVATIONS = {"gelu_new": GELU_NEW, "gelu": GELU, "silu": SILU, "relu": RELU}
Array = NDArray[Any]


class Shape(NamedTuple):
    """The sizes and choices of the model, and the number of texts it has room for."""

    n_layer: int
    n_head: int
    n_kv_head: int
    head_dim: int
    n_embd: int
    inner_dim: int
    vocab_size: int
    context_length: int
    n_slots: int
    n_rotated: int  # numbers of each head; 0 if positions are learned
    activation: int
    is_gated: bool
    is_parallel: bool
    is_rms: bool  # RMSNorm instead of LayerNorm
    has_qk_norm: bool


class Weights(NamedTuple):
    """The weights packed by ``pack``; the arrays are described there."""

    tokens: Array
    positions: Array
    panels: Array
    group: int
    panels_at: Array
    scales: Array
    biases: Array
    biases_at: Array
    norms: Array
    epsilon: float
    attention_scales: Array
    windows: Array
    qk_gains: Array
    cosines: Array
    sines: Array


class Memory(NamedTuple):
    """Everything that a pass reads and writes apart from the weights, as flat float32 arrays unless stated otherwise.

    ``control`` and ``job`` int64, ``rows`` ``(max_rows, 5)`` int64, ``mask`` ``(n_layer, rows, n_head)``, ``summary``
    ``(max_rows, 3)`` float64; the last ones have a row for each thread.
    """

    control: Array
    job: Array
    rows: Array
    mask: Array
    group: int  # how many numbers of a key, or of all values, are stored as one
    keys: Array  # (n_layer, n_slots, n_kv_head) panels of (context_length / WIDTH, head_dim / group, WIDTH)
    values: Array  # (n_layer, n_slots, n_kv_head) panels of (head_dim / WIDTH, context_length / group, WIDTH)
    x: Array  # the residual stream
    qkv: Array
    contexts: Array  # uint16 if they are rounded to bfloat16, like the next array
    hidden: Array
    activated: Array  # rounded; empty if the activations are multiplied where they are computed, in ``hidden``
    logits: Array
    summary: Array  # per row of logits: the largest, its token, and the log-sum-exp
    normed: Array
    scores: Array
    context: Array
    key: Array
    scratch: IntegerScratch | PairScratch | TileScratch  # for the rounded inputs of a product
