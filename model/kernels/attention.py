"""Attention of the tokens that a pass reads: from queries, keys and values to context vectors."""

from .functions import ONE, ZERO, rms_norm, rotate, scaled
from .inputs import inputs_for, rows_of, scale_into, weights_for, write_inputs, write_outputs
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
def attend(shape, head, next_head, position, n, scale, queries, zeros, memory, scores, is_recorded, contexts, own):
    """Write one head's context vectors into ``contexts`` and, if they are recorded, its weights into ``scores``.

    The ``n`` queries are those of the tokens from ``position`` on. The weights of later keys are 0, which is exact.
    Meanwhile, the keys and values of ``next_head`` are prefetched. ``own`` is this thread's share of inputs: all.
    """
    D, T = shape.head_dim // memory.group, in_groups(shape.context_length, memory.group)
    n_keys, scratch = position + n, memory.scratch
    size = padded(shape.context_length) * D
    ahead = (next_head - head) * size * memory.keys.itemsize
    keys = Matrix(memory.keys, head * size, WIDTH * D, D, n_keys, zeros, zeros, ahead)
    inputs = inputs_for(memory.keys, queries, n, shape.head_dim, scratch, own)
    linear_for(inputs, scratch)(keys, inputs, n, scores, SET, LEADER, ALONE)
    n_groups = in_groups(n_keys, memory.group)
    size = padded(shape.head_dim) * T
    ahead = (next_head - head) * size * memory.values.itemsize
    values = Matrix(memory.values, head * size, WIDTH * T, n_groups, shape.head_dim, zeros, zeros, ahead)
    inputs = weights_for(memory.values, scores, n, n_keys, scale, is_recorded, scratch, own)
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
    job, rows, qkv = memory.job, memory.rows, memory.qkv
    wide = rows_of(qkv, (H + 2 * K) * D).stride
    n_recorded, stride = job[N_RECORDED], stride_for(job[N_KEYS], memory.scores.itemsize)
    recorded = floats_at(job[RECORDED], shape.n_layer * H * n_recorded * stride)
    zeros = weights.biases[weights.biases_at[shape.n_layer, ZEROS] :]
    context, scale = memory.context[thread], weights.attention_scales[layer]
    found, contexts = rows_of(context, D), rows_of(memory.contexts, H * D)
    changed = shape.has_qk_norm or shape.n_rotated > 0
    own, all_needed = Share(thread, 0, 1), layer < shape.n_layer - 1
    for h in range(thread, H, n_threads):
        # Threads whose heads share a key and a value all write it, with the same bits, and need not wait for another.
        shared = h * K // H
        first = kept = 0
        while first < job[N_ROWS]:
            start, n = rows[first, POSITION], block_of(rows, first, job[N_ROWS])
            record = rows[first, RECORD]
            is_recorded = record >= 0
            is_needed = all_needed or is_recorded
            scores = rows_of(memory.scores[thread], shape.context_length)
            if is_recorded:  # the weights are computed where they are recorded
                scores = Rows(recorded, ((layer * H + h) * n_recorded + record) * stride, stride)
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
            remember(shape, head, start, n, n + goes_on, keys, values, memory, own)
            if is_needed:
                last = end == job[N_ROWS]
                slot = rows[0 if last else end, SLOT]
                next_shared = min(h + n_threads, H - 1) * K // H if last else shared
                next_head = (layer * shape.n_slots + slot) * K + next_shared
                queries = Rows(qkv, query, wide)
                attend(shape, head, next_head, start, n, scale, queries, zeros, memory, scores, is_recorded, found, own)
            for i in range(n):
                row = first + i
                if all_needed or rows[row, IS_WANTED]:
                    factor = memory.mask[(layer * job[N_ROWS] + row) * H + h] if job[IS_MASKED] else ONE
                    numbers = context[i * found.stride :][:D]
                    scale_into(numbers, factor, memory.contexts[kept * contexts.stride + h * D :])
                    kept += 1
                if is_recorded and padded(start + n) < job[N_KEYS]:  # another text has more keys
                    recorded[scores.start + i * stride :][padded(start + n) : job[N_KEYS]] = ZERO
            first = end
