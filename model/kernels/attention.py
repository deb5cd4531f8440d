"""Attention of the tokens that a pass reads: from queries, keys and values to context vectors."""

from .functions import ONE, ZERO, rms_norm, rotate, scaled
from .inputs import Queries, inputs_for, rows_of, scale_into, weights_for, write_inputs, write_outputs
from .intrinsics import floats_at
from .jit import EXACT, compiled
from .linear import SET, linear_for
from .panels import WIDTH, Matrix, Rows, Share, in_groups, padded, stride_for
from .state import (
    ALONE,
    IS_MASKED,
    IS_WANTED,
    KEY,
    LEADER,
    N_KEYS,
    N_RECORDED,
    N_ROWS,
    POSITION,
    QUERY,
    RECORD,
    RECORDED,
    SLOT,
    ZEROS,
)

BLOCK_ROWS = 32  # tokens of a text whose attention is computed together


@compiled(EXACT)
def remember(shape, head, position, n, n_known, keys, values, memory, own):
    """Write one head's ``keys`` and ``values``, ``n`` rows of ``head_dim``, into a text's cache, from ``position`` on.

    ``n_known`` is that of ``write_inputs``.
    """
    D, T = shape.head_dim // memory.group, in_groups(shape.context_length, memory.group)
    rounded = inputs_for(memory.keys, keys, n, shape.head_dim, memory.scratch, own)
    write_outputs(memory.keys, head * padded(shape.context_length) * D, position, n, rounded, D)
    rounded = inputs_for(memory.values, values, n_known, shape.head_dim, memory.scratch, own)
    start = head * padded(shape.head_dim) * T
    write_inputs(memory.values, start, T * WIDTH, position, n, n_known, rounded, shape.head_dim)


@compiled(EXACT)
def attend(shape, head, next_head, queries, scale, zeros, memory, scores, is_recorded, contexts, own):
    """Write the context vectors of ``Queries`` into ``contexts``, and their weights into ``scores`` if recorded.

    They attend to the keys and values of ``head``; the weights of later keys are 0, which is exact. Meanwhile, the keys
    and values of ``next_head`` are prefetched. ``own`` is this thread's share of inputs: all.
    """
    D, T = shape.head_dim // memory.group, in_groups(shape.context_length, memory.group)
    n, n_keys, scratch = queries.n, queries.n_keys, memory.scratch
    size = padded(shape.context_length) * D
    ahead = (next_head - head) * size * memory.keys.itemsize
    keys = Matrix(memory.keys, head * size, WIDTH * D, D, n_keys, zeros, zeros, ahead)
    inputs = inputs_for(memory.keys, queries.vectors, n, shape.head_dim, scratch, own)
    linear_for(inputs, scratch)(keys, inputs, n, scores, SET, LEADER, ALONE)
    n_groups = in_groups(n_keys, memory.group)
    size = padded(shape.head_dim) * T
    ahead = (next_head - head) * size * memory.values.itemsize
    values = Matrix(memory.values, head * size, WIDTH * T, n_groups, shape.head_dim, zeros, zeros, ahead)
    inputs = weights_for(memory.values, scores, queries, scale, is_recorded, scratch, own)
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
def changed_keys(shape, weights, memory, layer, thread, first, n, h, n_heads):
    """``norm_and_rotate`` the queries of ``n_heads`` from ``h`` on, in ``n`` rows from ``first`` on, and their keys.

    Returns a copy of the keys, which other threads may read, too.
    """
    H, K, D = shape.n_head, shape.n_kv_head, shape.head_dim
    wide = rows_of(memory.qkv, (H + 2 * K) * D).stride
    for i in range(n):
        vectors, position = memory.qkv[(first + i) * wide :], memory.rows[first + i, POSITION]
        key = memory.key[thread][i * D :][:D]
        scaled(vectors[(H + h * K // H) * D :][:D], ONE, key)
        norm_and_rotate(shape, weights, layer, KEY, position, key)
        for g in range(h, h + n_heads):
            norm_and_rotate(shape, weights, layer, QUERY, position, vectors[g * D :][:D])
    return Rows(memory.key[thread], 0, D)


@compiled(EXACT)
def attention(shape, weights, memory, layer, thread, n_threads):
    """This thread's heads of a layer: from queries, keys and values to context vectors, for all rows in order.

    The last layer writes only the context vectors of the rows whose logits are needed.
    """
    H, K, D = shape.n_head, shape.n_kv_head, shape.head_dim
    job, rows, qkv = memory.job, memory.rows, memory.qkv
    wide = rows_of(qkv, (H + 2 * K) * D).stride
    n_recorded, stride = job[N_RECORDED], stride_for(job[N_KEYS], memory.scores.itemsize)
    recorded = floats_at(job[RECORDED], shape.n_layer * H * n_recorded * stride)
    zeros = weights.biases[weights.biases_at[shape.n_layer, ZEROS] :]
    context, scale, window = memory.context[thread], weights.attention_scales[layer], weights.windows[layer]
    found, contexts = rows_of(context, D), rows_of(memory.contexts, H * D)
    own, all_needed = Share(thread, 0, 1), layer < shape.n_layer - 1
    h, end_head = H * thread // n_threads, H * (thread + 1) // n_threads
    while h < end_head:
        # Threads whose heads share a key and a value all write it, with the same bits, and need not wait for another.
        shared = h * K // H
        n_heads = min((shared + 1) * H // K, end_head) - h
        first = kept = 0
        while first < job[N_ROWS]:
            start, n, record = rows[first, POSITION], block_of(rows, first, job[N_ROWS]), rows[first, RECORD]
            end, is_recorded = first + n, record >= 0
            head = (layer * shape.n_slots + rows[first, SLOT]) * K + shared
            keys = Rows(qkv, first * wide + (H + shared) * D, wide)
            values = Rows(qkv, keys.start + K * D, wide)
            if shape.has_qk_norm or shape.n_rotated > 0:
                keys = changed_keys(shape, weights, memory, layer, thread, first, n, h, n_heads)
            goes_on = end < job[N_ROWS] and rows[end, SLOT] == rows[first, SLOT] and rows[end, POSITION] == start + n
            remember(shape, head, start, n, n + goes_on, keys, values, memory, own)

            last = end == job[N_ROWS]
            slot, next_shared = (rows[0, SLOT], min(shared + 1, K - 1)) if last else (rows[end, SLOT], shared)
            next_head = (layer * shape.n_slots + slot) * K + next_shared
            # The queries of one token's heads are multiplied together, those of several tokens head by head.
            at_once, apart, records_apart = 1, wide, stride
            if n == 1:
                at_once, apart, records_apart = min(n_heads, BLOCK_ROWS), D, n_recorded * stride
            is_needed, before = all_needed or is_recorded or rows[first:end, IS_WANTED].any(), kept
            for g in range(h, h + n_heads if is_needed else h, at_once):
                n_together, kept = min(h + n_heads - g, at_once), before
                vectors = Rows(qkv, first * wide + g * D, apart)
                queries = Queries(vectors, n * n_together, n, start + n, window)
                scores = rows_of(memory.scores[thread], shape.context_length)
                if is_recorded:  # the weights are computed where they are recorded
                    scores = Rows(recorded, ((layer * H + g) * n_recorded + record) * stride, records_apart)
                attend(shape, head, next_head, queries, scale, zeros, memory, scores, is_recorded, found, own)
                if is_recorded and padded(start + n) < job[N_KEYS]:  # another text has more keys
                    for i in range(queries.n):
                        recorded[scores.start + i * records_apart :][padded(start + n) : job[N_KEYS]] = ZERO
                for i in range(n):
                    row = first + i
                    if all_needed or rows[row, IS_WANTED]:
                        for j in range(n_together):  # i or j is always 0
                            factor = memory.mask[(layer * job[N_ROWS] + row) * H + g + j] if job[IS_MASKED] else ONE
                            numbers = context[(i + j) * found.stride :][:D]
                            scale_into(numbers, factor, memory.contexts[kept * contexts.stride + (g + j) * D :])
                        kept += 1
            first = end
        h += n_heads
