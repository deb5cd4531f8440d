"""The forward pass of a GPT in plain loops, for any number of new tokens from different texts.

Every function here is compiled. Threads divide a pass by outputs: each computes its share of the panels of every
product for all rows, and they synchronise wherever the next step needs all outputs.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from .functions import (
    ONE,
    ZERO,
    embed,
    find,
    gelu_exact,
    gelu_tanh,
    layer_norm,
    log_sum_exp,
    multiply_by,
    rms_norm,
    rotate,
    scaled,
    silu,
    softmax,
)
from .inputs import (
    filled,
    inputs_for,
    rounded_or,
    scale_into,
    write_inputs,
    write_outputs,
)
from .intrinsics import LANES, atomic_add, atomic_read, atomic_store, floats_at, largest, pause, yield_core
from .jit import EXACT, compiled
from .panels import (
    PREFETCH_BYTES,
    WIDTH,
    IntegerScratch,
    Matrix,
    PairRows,
    PairScratch,
    Rows,
    TileScratch,
    in_groups,
    multiply,
    padded,
)
from .tiles import linear_in_tiles

# NumPy integers, because Numba would compile the functions again for each Python integer passed to them.
QUERY_KEY_VALUE, ATTENTION_OUTPUT, MLP_INPUT, MLP_OUTPUT = (np.int64(i) for i in range(4))  # the matrices of a layer
OUTPUT_HEAD, ZEROS = np.int64(0), np.int64(1)  # the matrices after those of the last layer
SET, ADD = np.bool_(False), np.bool_(True)  # whether a product overwrites its output or adds to it
BEFORE_ATTENTION, BEFORE_MLP = np.int64(0), np.int64(2)  # the norms of a layer: gain, followed by shift
FINAL = np.int64(0)  # the norm after the last layer
QUERY, KEY = np.int64(0), np.int64(1)  # the gains of the norms of queries and keys
LEADER, ALONE = np.int64(0), np.int64(1)  # the thread that announces a pass; the number of threads without others
TURN, DONE, ARRIVED = 0, 8, 16  # indices in ``control``, each in a separate cache line
N_ROWS, N_WANTED, N_THREADS, IS_MASKED, RECORDED, N_RECORDED, N_KEYS = range(7)  # indices in ``job``
TOKEN, SLOT, POSITION, IS_WANTED, RECORD = range(5)  # columns of ``rows``
PATIENCE = 4_000  # spins before a waiting thread yields its core
IDLE_PATIENCE = 40_000  # spins before a thread that waits for the next pass goes to sleep: about a millisecond
Array = NDArray[Any]
GELU_NEW, GELU, SILU = range(3)
ACTIVATIONS = {"gelu_new": GELU_NEW, "gelu": GELU, "silu": SILU}
PANELS_AT_ONCE = 4  # panels multiplied together with a single row, so that enough independent sums are in flight
MIN_TILE_ROWS = 4  # of 8-bit integers; fewer are multiplied in vectors, with the same sums
BLOCK_ROWS = 32  # tokens of a text whose attention is computed together


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


@compiled(EXACT)
def score_stride(context_length):
    """The distance between rows of attention scores: not a power of 2, or a cache would hold only few of them."""
    return padded(context_length) + LANES


@compiled(EXACT)
def barrier(control, n_threads, arrived):
    """Wait until all threads arrive. ``arrived`` counts the arrivals at all barriers so far; returns the new count."""
    arrived += n_threads
    if n_threads > 1:
        atomic_add(control, ARRIVED, 1)
        turns = 0
        while atomic_read(control, ARRIVED) < arrived:
            pause()
            turns += 1
            if turns > PATIENCE:
                yield_core()
    return arrived


@compiled(EXACT)
def linear(matrix, x, n_rows, out, add, thread, n_threads):
    """This thread's share of ``out = x @ matrix + bias``, or ``out += ...``: ``(n_rows, depth) -> (n_rows, width)``."""
    n_panels = padded(matrix.width) // WIDTH
    at_once = PANELS_AT_ONCE if n_rows == 1 else 1
    n_groups = (n_panels + at_once - 1) // at_once
    panel = n_groups * thread // n_threads * at_once
    end = min(n_groups * (thread + 1) // n_threads * at_once, n_panels)
    while panel < end:
        if n_rows == 1 and panel + PANELS_AT_ONCE <= end:
            multiply(matrix, panel, x, out, 0, add, 1, 4)
            panel += PANELS_AT_ONCE
            continue
        if n_rows == 1 and panel + 2 <= end:
            multiply(matrix, panel, x, out, 0, add, 1, 2)
            panel += 2
            continue
        row = 0
        while row + 8 <= n_rows:
            multiply(matrix, panel, x, out, row, add, 8, 1)
            row += 8
        if row + 4 <= n_rows:
            multiply(matrix, panel, x, out, row, add, 4, 1)
            row += 4
        if row + 3 == n_rows:
            multiply(matrix, panel, x, out, row, add, 3, 1)
        elif row + 2 == n_rows:
            multiply(matrix, panel, x, out, row, add, 2, 1)
        elif row < n_rows:
            multiply(matrix, panel, x, out, row, add, 1, 1)
        panel += 1


@compiled(EXACT)
def linear_in_either(matrix, x, n_rows, out, add, thread, n_threads):
    """``linear`` of 8-bit integers, in tiles unless the rows are few."""
    if n_rows < MIN_TILE_ROWS:
        linear(matrix, x, n_rows, out, add, thread, n_threads)
    else:
        linear_in_tiles(matrix, x, n_rows, out, add, thread, n_threads)


def linear_for(inputs, scratch):
    """The function that multiplies ``inputs``, which ``inputs_for`` made with ``scratch``: ``linear``, or in tiles."""


@overload(linear_for)
def choose_linear(inputs, scratch):
    if inputs.instance_class is Rows or not issubclass(scratch.instance_class, TileScratch):
        return lambda inputs, scratch: linear
    if inputs.instance_class is PairRows:
        return lambda inputs, scratch: linear_in_tiles
    return lambda inputs, scratch: linear_in_either


@compiled(EXACT)
def project(weights, layer, index, x, n_rows, depth, width, out, add, scratch, thread, n_threads):
    """This thread's share of the product of ``x`` and matrix ``index`` of a layer; see ``linear``."""
    groups = in_groups(depth, weights.group)
    start, bias = weights.panels_at[layer, index], weights.biases_at[layer, index]
    scale, bias = weights.scales[bias:], weights.biases[bias:]
    matrix = Matrix(weights.panels, start, groups * WIDTH, groups, width, scale, bias, PREFETCH_BYTES)
    inputs = inputs_for(weights.panels, x, n_rows, depth, scratch, thread)
    linear_for(inputs, scratch)(matrix, inputs, n_rows, out, add, thread, n_threads)


@compiled(EXACT)
def remember(shape, head, position, n, n_known, keys, values, memory, thread):
    """Write one head's ``keys`` and ``values``, ``n`` rows of ``head_dim``, into a text's cache, from ``position`` on.

    ``n_known`` is that of ``write_inputs``.
    """
    D, T = shape.head_dim // memory.group, in_groups(shape.context_length, memory.group)
    rounded = inputs_for(memory.keys, keys, n, shape.head_dim, memory.scratch, thread)
    write_outputs(memory.keys, head * padded(shape.context_length) * D, position, n, rounded, D)
    rounded = inputs_for(memory.values, values, n_known, shape.head_dim, memory.scratch, thread)
    start = head * padded(shape.head_dim) * T
    write_inputs(memory.values, start, T * WIDTH, position, n, n_known, rounded, shape.head_dim)


@compiled(EXACT)
def attend(shape, head, next_head, position, n, scale, queries, zeros, memory, scores, contexts, thread):
    """Write one head's context vectors into ``contexts`` and its attention weights into ``scores``.

    The ``n`` queries are those of the tokens from ``position`` on. The weights of later keys are 0, which is exact.
    Meanwhile, the keys and values of ``next_head`` are prefetched.
    """
    D, T = shape.head_dim // memory.group, in_groups(shape.context_length, memory.group)
    n_keys, scratch = position + n, memory.scratch
    size = padded(shape.context_length) * D
    ahead = (next_head - head) * size * memory.keys.itemsize
    keys = Matrix(memory.keys, head * size, WIDTH * D, D, n_keys, zeros, zeros, ahead)
    inputs = inputs_for(memory.keys, queries, n, shape.head_dim, scratch, thread)
    linear_for(inputs, scratch)(keys, inputs, n, scores, SET, LEADER, ALONE)
    n_groups = in_groups(n_keys, memory.group)
    for i in range(n):
        softmax(scores.numbers[scores.start + i * scores.stride :][: padded(n_keys)], position + i + 1, scale)
    size = padded(shape.head_dim) * T
    ahead = (next_head - head) * size * memory.values.itemsize
    values = Matrix(memory.values, head * size, WIDTH * T, n_groups, shape.head_dim, zeros, zeros, ahead)
    inputs = inputs_for(memory.values, scores, n, n_groups * memory.group, scratch, thread)
    linear_for(inputs, scratch)(values, inputs, n, contexts, SET, LEADER, ALONE)


@compiled(EXACT)
def block_of(rows, first, end):
    """How many rows from ``first`` on are successive tokens of the same text, at most ``BLOCK_ROWS``.

    Their attention weights are recorded in successive rows, or not at all.
    """
    recorded = rows[first, RECORD] >= 0
    n = 1
    while (
        n < BLOCK_ROWS
        and first + n < end
        and rows[first + n, SLOT] == rows[first, SLOT]
        and rows[first + n, POSITION] == rows[first, POSITION] + n
        and rows[first + n, RECORD] == rows[first, RECORD] + n * recorded
    ):
        n += 1
    return n


@compiled(EXACT)
def norm_and_rotate(shape, weights, layer, which, position, vector):
    """Normalise and rotate a head's query (``which`` is ``QUERY``) or key (``KEY``) in place, if the model does so."""
    if shape.has_qk_norm:
        rms_norm(vector, weights.qk_gains[layer, which], weights.epsilon, vector)
    half = shape.n_rotated // 2
    if half:
        angles = position * half
        rotate(vector, weights.cosines[angles:][:half], weights.sines[angles:][:half])


@compiled(EXACT)
def attention(shape, weights, memory, layer, thread, n_threads):
    """This thread's heads of a layer: from queries, keys and values to context vectors, for all rows in order.

    The last layer writes only the context vectors of the rows whose logits are needed.
    """
    H, K, D = shape.n_head, shape.n_kv_head, shape.head_dim
    job, rows, qkv, wide = memory.job, memory.rows, memory.qkv, padded((H + 2 * K) * D)
    n_recorded, n_keys = job[N_RECORDED], padded(job[N_KEYS])
    recorded = floats_at(job[RECORDED], shape.n_layer * H * n_recorded * n_keys)
    zeros = weights.biases[weights.biases_at[shape.n_layer, ZEROS] :]
    context, scale = memory.context[thread], weights.attention_scales[layer]
    all_contexts, wide_contexts = Rows(context, 0, padded(D)), filled(H * D)
    changed = shape.has_qk_norm or shape.n_rotated > 0
    all_needed = layer < shape.n_layer - 1
    for h in range(thread, H, n_threads):
        # Threads whose heads share a key and a value all write it, with the same bits, and need not wait for another.
        shared = h * K // H
        first = kept = 0
        while first < job[N_ROWS]:
            start, n = rows[first, POSITION], block_of(rows, first, job[N_ROWS])
            record = rows[first, RECORD]
            is_needed = all_needed or record >= 0
            scores = Rows(memory.scores[thread], 0, score_stride(shape.context_length))
            if record >= 0:  # the weights are computed where they are recorded
                scores = Rows(recorded, ((layer * H + h) * n_recorded + record) * n_keys, n_keys)
            head = (layer * shape.n_slots + rows[first, SLOT]) * K + shared
            query = first * wide + h * D
            keys = Rows(qkv, query + (H + shared - h) * D, wide)
            values = Rows(qkv, keys.start + K * D, wide)
            if changed:  # in a copy of the keys, which heads may share
                keys = Rows(memory.key[thread], 0, D)
            for i in range(n):
                row, position = first + i, start + i
                is_needed |= rows[row, IS_WANTED] > 0
                if changed:
                    key = memory.key[thread][i * D :][:D]
                    scaled(qkv[row * wide + (H + shared) * D :][:D], ONE, key)
                    norm_and_rotate(shape, weights, layer, QUERY, position, qkv[row * wide + h * D :][:D])
                    norm_and_rotate(shape, weights, layer, KEY, position, key)
            end = first + n
            goes_on = end < job[N_ROWS] and rows[end, SLOT] == rows[first, SLOT] and rows[end, POSITION] == start + n
            remember(shape, head, start, n, n + goes_on, keys, values, memory, thread)
            if is_needed:
                last = end == job[N_ROWS]
                slot = rows[0 if last else end, SLOT]
                next_shared = min(h + n_threads, H - 1) * K // H if last else shared
                next_head = (layer * shape.n_slots + slot) * K + next_shared
                queries = Rows(qkv, query, wide)
                attend(shape, head, next_head, start, n, scale, queries, zeros, memory, scores, all_contexts, thread)
            for i in range(n):
                row, n_seen = first + i, start + i + 1
                if all_needed or rows[row, IS_WANTED]:
                    factor = memory.mask[(layer * job[N_ROWS] + row) * H + h] if job[IS_MASKED] else ONE
                    scale_into(context[i * padded(D) :][:D], factor, memory.contexts[kept * wide_contexts + h * D :])
                    kept += 1
                if record >= 0:
                    recorded[scores.start + i * n_keys :][n_seen:n_keys] = ZERO
            first = end


@compiled(EXACT)
def norm(shape, weights, memory, layer, which, n_rows, wanted_only, normed):
    """Write the norm of ``n_rows`` rows of the residual stream into ``normed``, or of those whose logits are needed."""
    C, n = shape.n_embd, 0
    gain, shift = weights.norms[layer, which], weights.norms[layer, which + 1]
    for row in range(n_rows):
        if memory.rows[row, IS_WANTED] or not wanted_only:
            x = memory.x[row * padded(C) :][:C]
            if shape.is_rms:
                rms_norm(x, gain, weights.epsilon, normed[n * C :])
            else:
                layer_norm(x, gain, shift, weights.epsilon, normed[n * C :])
            n += 1


@compiled(EXACT)
def keep_wanted(shape, memory):
    """Move the residual streams of the rows whose logits are needed to the front."""
    C, n = shape.n_embd, 0
    for row in range(memory.job[N_ROWS]):
        if memory.rows[row, IS_WANTED]:
            scaled(memory.x[row * padded(C) :][:C], ONE, memory.x[n * padded(C) :])
            n += 1


@compiled(EXACT)
def activate(shape, memory, n_rows, thread, n_threads):
    """This thread's share of the activations between the two products of an MLP, in place."""
    inner = shape.inner_dim
    width = padded(2 * inner if shape.is_gated else inner)
    first, end = inner * thread // n_threads, inner * (thread + 1) // n_threads
    for row in range(n_rows):
        part = memory.hidden[row * width + first :][: end - first]
        if shape.activation == GELU_NEW:
            gelu_tanh(part)
        elif shape.activation == SILU:
            silu(part)
        else:
            gelu_exact(part)
        if shape.is_gated:
            multiply_by(part, memory.hidden[row * width + inner + first :])
        if len(memory.activated):
            scale_into(part, ONE, memory.activated[row * filled(inner) + first :])


@compiled(EXACT)
def forward(thread, shape, weights, memory):
    """This thread's share of one pass over ``job[N_ROWS]`` rows."""
    L, C, inner, V = shape.n_layer, shape.n_embd, shape.inner_dim, shape.vocab_size
    E, n_qkv = shape.n_head * shape.head_dim, (shape.n_head + 2 * shape.n_kv_head) * shape.head_dim
    wide = 2 * inner if shape.is_gated else inner
    job, control, rows, scratch = memory.job, memory.control, memory.rows, memory.scratch
    n_rows, n_threads = job[N_ROWS], job[N_THREADS]
    own = memory.normed[thread]  # every thread normalises for itself, which is faster than waiting for another
    normed = Rows(own, 0, C)
    x, qkv, hidden = (
        Rows(memory.x, 0, padded(C)),
        Rows(memory.qkv, 0, padded(n_qkv)),
        Rows(memory.hidden, 0, padded(wide)),
    )
    contexts = rounded_or(memory.contexts, filled(E), Rows(memory.contexts, 0, filled(E)))
    activated = rounded_or(memory.activated, filled(inner), hidden)

    for row in range(thread, n_rows, n_threads):
        stream = memory.x[row * padded(C) :][:C]
        embed(weights.tokens, rows[row, TOKEN], weights.positions, rows[row, POSITION], stream)
    arrived = barrier(control, n_threads, 0)

    n_kept = n_rows  # rows that go on after attention: the keys and values of the others are all that is needed
    for layer in range(L):
        norm(shape, weights, memory, layer, BEFORE_ATTENTION, n_rows, False, own)
        project(weights, layer, QUERY_KEY_VALUE, normed, n_rows, C, n_qkv, qkv, SET, scratch, thread, n_threads)
        is_last = layer == L - 1
        if is_last:
            n_kept = job[N_WANTED]
        if shape.is_parallel:  # the MLP reads the same stream as attention
            norm(shape, weights, memory, layer, BEFORE_MLP, n_rows, is_last, own)
            project(weights, layer, MLP_INPUT, normed, n_kept, C, wide, hidden, SET, scratch, thread, n_threads)
        arrived = barrier(control, n_threads, arrived)
        attention(shape, weights, memory, layer, thread, n_threads)
        if is_last and thread == LEADER:
            keep_wanted(shape, memory)
        if shape.is_parallel:
            activate(shape, memory, n_kept, thread, n_threads)
        arrived = barrier(control, n_threads, arrived)
        project(weights, layer, ATTENTION_OUTPUT, contexts, n_kept, E, C, x, ADD, scratch, thread, n_threads)
        arrived = barrier(control, n_threads, arrived)

        if not shape.is_parallel:
            norm(shape, weights, memory, layer, BEFORE_MLP, n_kept, False, own)
            project(weights, layer, MLP_INPUT, normed, n_kept, C, wide, hidden, SET, scratch, thread, n_threads)
            arrived = barrier(control, n_threads, arrived)
            activate(shape, memory, n_kept, thread, n_threads)
            arrived = barrier(control, n_threads, arrived)
        project(weights, layer, MLP_OUTPUT, activated, n_kept, inner, C, x, ADD, scratch, thread, n_threads)
        arrived = barrier(control, n_threads, arrived)

    norm(shape, weights, memory, L, FINAL, n_kept, False, own)
    logits = Rows(memory.logits, 0, padded(V))
    project(weights, L, OUTPUT_HEAD, normed, n_kept, C, V, logits, SET, scratch, thread, n_threads)
    arrived = barrier(control, n_threads, arrived)
    for row in range(thread, n_kept, n_threads):
        logits, summary = memory.logits[row * padded(V) :][:V], memory.summary[row]
        most = largest(logits)
        summary[0], summary[1], summary[2] = find(logits, most), most, log_sum_exp(logits, most)
    barrier(control, n_threads, arrived)


@compiled(EXACT)
def follow(thread, seen, shape, weights, memory):
    """Take part in every pass after number ``seen`` until none has come for a while; return the last pass number.

    A negative number means that the thread must stop.
    """
    turns = 0
    while turns < IDLE_PATIENCE:
        turn = atomic_read(memory.control, TURN)
        if turn == seen:
            pause()
            turns += 1
            continue
        if turn < 0:
            return turn
        forward(thread, shape, weights, memory)
        atomic_add(memory.control, DONE, 1)
        seen, turns = turn, 0
    return seen


@compiled(EXACT)
def announce(control, turn):
    """Start pass number ``turn``, or stop all followers if negative. Followers that see it see all earlier writes."""
    atomic_store(control, TURN, turn)


@compiled(EXACT)
def lead(shape, weights, memory):
    """Run the announced pass, and return once all threads have done their share."""
    forward(LEADER, shape, weights, memory)
    while atomic_read(memory.control, DONE) < memory.job[N_THREADS] - 1:
        pause()
