"""The forward pass of a GPT in plain loops, for any number of new tokens, each at its place in a text of its own.

Every function here is compiled. Threads share a pass by outputs: each computes its panels of every product for all
rows, and they meet where the next product needs all of them.
"""

from typing import NamedTuple

import numpy as np
from numba import carray

from . import atomic
from .functions import ONE, ZERO, embed, find, gelu_exact, gelu_tanh, layer_norm, log_sum_exp, scaled, softmax
from .jit import EXACT, compiled
from .panels import WIDTH, address_of, largest, multiply

QUERY_KEY_VALUE, ATTENTION_OUTPUT, MLP_INPUT, MLP_OUTPUT = range(4)  # the matrices of a layer
TURN, DONE, MET = 0, 8, 16  # places in ``control``, each in a cache line of its own
N_ROWS, N_WANTED, N_THREADS, IS_MASKED, RECORDED, N_RECORDED, N_KEYS = range(7)  # places in ``job``
TOKEN, SLOT, POSITION, IS_WANTED, RECORD = range(5)  # columns of ``rows``
PATIENCE = 4_000  # turns of waiting before a thread lets others have its core
IDLE_PATIENCE = 40_000  # turns of waiting for the next pass before a thread goes to sleep: about a millisecond
AT_ONCE = 4  # panels that a single row is multiplied with together, to keep enough sums going


class Shape(NamedTuple):
    """The sizes of the model, and of what is set aside for it."""

    n_layer: int
    n_head: int
    head_dim: int
    n_embd: int
    inner_dim: int
    vocab_size: int
    context_length: int
    n_slots: int
    is_tanh: bool


@compiled(EXACT)
def padded(count):  # type: ignore[no-untyped-def]
    """``count`` rounded up to whole panels."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@compiled(EXACT)
def meet(control, n_threads, met):  # type: ignore[no-untyped-def]
    """Wait until all threads are here; ``met`` counts those that came to all meetings so far, and is returned."""
    met += n_threads
    if n_threads > 1:
        atomic.add(control, MET, 1)
        turns = 0
        while atomic.read(control, MET) < met:
            atomic.pause()
            turns += 1
            if turns > PATIENCE:
                atomic.give_way()
    return met


@compiled(EXACT)
def linear(weights, start, depth, width, scale, bias, x, x_stride, n_rows, out, add, thread, n_threads):  # type: ignore[no-untyped-def]
    """This thread's share of ``out = x @ weights + bias``, or ``out += ...``: ``(n_rows, depth) -> (n_rows, width)``."""
    size, stride = depth * WIDTH, padded(width)
    n_groups = (stride // WIDTH + AT_ONCE - 1) // AT_ONCE
    panel = n_groups * thread // n_threads * AT_ONCE
    end = min(n_groups * (thread + 1) // n_threads * AT_ONCE, stride // WIDTH)
    while panel < end:
        at, to = start + panel * size, panel * WIDTH
        if n_rows == 1 and panel + AT_ONCE <= end:
            multiply(weights, at, size, depth, scale, bias, to, x, 0, x_stride, out, 0, stride, add, 1, 4)
            panel += AT_ONCE
            continue
        row = 0
        while row + 8 <= n_rows:
            multiply(weights, at, size, depth, scale, bias, to, x, row * x_stride, x_stride, out, row * stride, stride, add, 8, 1)
            row += 8
        if row + 4 <= n_rows:
            multiply(weights, at, size, depth, scale, bias, to, x, row * x_stride, x_stride, out, row * stride, stride, add, 4, 1)
            row += 4
        if row + 2 <= n_rows:
            multiply(weights, at, size, depth, scale, bias, to, x, row * x_stride, x_stride, out, row * stride, stride, add, 2, 1)
            row += 2
        if row < n_rows:
            multiply(weights, at, size, depth, scale, bias, to, x, row * x_stride, x_stride, out, row * stride, stride, add, 1, 1)
        panel += 1


@compiled(EXACT)
def remember(shape, layer, slot, position, qkv, start, keys, values, thread, n_threads):  # type: ignore[no-untyped-def]
    """Write this thread's share of one row's keys and values into the cache, both in panels."""
    H, D, T = shape.n_head, shape.head_dim, shape.context_length
    C = H * D
    for h in range(thread, H, n_threads):
        head = (layer * shape.n_slots + slot) * H + h
        at = head * padded(T) * D + position // WIDTH * WIDTH * D + position % WIDTH
        key, to = qkv[start + C + h * D :][:D], keys[at:]
        for d in range(D):
            to[d * WIDTH] = key[d]
        value, to = qkv[start + 2 * C + h * D :][:D], values[head * padded(D) * T + position * WIDTH :]
        for panel in range(padded(D) // WIDTH):
            scaled(value[panel * WIDTH :][:WIDTH], ONE, to[panel * T * WIDTH :])


@compiled(EXACT)
def attend(shape, head, n_keys, scale, qkv, query, keys, values, zeros, scores, context):  # type: ignore[no-untyped-def]
    """One head of one row: ``context`` becomes its attention weights, which are left in ``scores``, times the values."""
    D, T = shape.head_dim, shape.context_length
    panel, at = 0, head * padded(T) * D
    while panel * WIDTH < n_keys:
        multiply(keys, at + panel * WIDTH * D, WIDTH * D, D, zeros, zeros, 0, qkv, query, 0, scores, panel * WIDTH, 0, False, 1, 1)
        panel += 1
    softmax(scores[:n_keys], scale)
    at = head * padded(D) * T
    for panel in range(padded(D) // WIDTH):
        multiply(values, at + panel * WIDTH * T, WIDTH * T, n_keys, zeros, zeros, 0, scores, 0, 0, context, panel * WIDTH, 0, False, 1, 1)


@compiled(EXACT)
def forward(  # type: ignore[no-untyped-def]
    thread, shape, control, job, rows, mask, tokens, positions, weights, weights_at, scales, biases, biases_at, norms,
    epsilon, attention_scales, keys, values, x, qkv, contexts, hidden, logits, summary, own_normed, own_scores, own_context,
):  # fmt: skip
    """This thread's share of one pass over ``job[N_ROWS]`` rows; `CompiledGPT` says what the arrays hold."""
    L, H, D, C = shape.n_layer, shape.n_head, shape.head_dim, shape.n_embd
    normed, scores, context = own_normed[thread], own_scores[thread], own_context[thread]
    n_rows, n_threads, n_recorded, n_keys = job[N_ROWS], job[N_THREADS], job[N_RECORDED], job[N_KEYS]
    wide, stream = padded(3 * C), padded(C)
    zeros = biases[biases_at[L, 1] :]
    recorded = carray(address_of(job[RECORDED]), L * H * n_recorded * n_keys)
    met = 0
    for row in range(thread, n_rows, n_threads):
        embed(tokens, rows[row, TOKEN], positions, rows[row, POSITION], x[row * stream :][:C])
    met = meet(control, n_threads, met)

    for layer in range(L):
        for row in range(n_rows):
            layer_norm(x[row * stream :][:C], norms[layer, 0], norms[layer, 1], epsilon, normed[row * C :])
        at, b = weights_at[layer, QUERY_KEY_VALUE], biases_at[layer, QUERY_KEY_VALUE]
        linear(weights, at, C, 3 * C, scales[b:], biases[b:], normed, C, n_rows, qkv, False, thread, n_threads)
        met = meet(control, n_threads, met)

        for row in range(n_rows):
            remember(shape, layer, rows[row, SLOT], rows[row, POSITION], qkv, row * wide, keys, values, thread, n_threads)
        for h in range(thread, H, n_threads):
            for row in range(n_rows):
                n_seen = rows[row, POSITION] + 1
                head = (layer * shape.n_slots + rows[row, SLOT]) * H + h
                attend(shape, head, n_seen, attention_scales[layer], qkv, row * wide + h * D, keys, values, zeros, scores, context)
                factor = mask[(layer * n_rows + row) * H + h] if job[IS_MASKED] else ONE
                scaled(context[:D], factor, contexts[row * C + h * D :])
                if rows[row, RECORD] >= 0:
                    to = recorded[((layer * H + h) * n_recorded + rows[row, RECORD]) * n_keys :][:n_keys]
                    scaled(scores[:n_seen], ONE, to)
                    to[n_seen:] = ZERO
        met = meet(control, n_threads, met)

        at, b = weights_at[layer, ATTENTION_OUTPUT], biases_at[layer, ATTENTION_OUTPUT]
        linear(weights, at, C, C, scales[b:], biases[b:], contexts, C, n_rows, x, True, thread, n_threads)
        met = meet(control, n_threads, met)

        for row in range(n_rows):
            layer_norm(x[row * stream :][:C], norms[layer, 2], norms[layer, 3], epsilon, normed[row * C :])
        at, b, inner = weights_at[layer, MLP_INPUT], biases_at[layer, MLP_INPUT], shape.inner_dim
        linear(weights, at, C, inner, scales[b:], biases[b:], normed, C, n_rows, hidden, False, thread, n_threads)
        met = meet(control, n_threads, met)
        share = (inner + n_threads - 1) // n_threads
        first = min(thread * share, inner)
        for row in range(n_rows):
            part = hidden[row * padded(inner) + first :][: min(share, inner - first)]
            if shape.is_tanh:
                gelu_tanh(part)
            else:
                gelu_exact(part)
        met = meet(control, n_threads, met)
        at, b = weights_at[layer, MLP_OUTPUT], biases_at[layer, MLP_OUTPUT]
        linear(weights, at, inner, C, scales[b:], biases[b:], hidden, padded(inner), n_rows, x, True, thread, n_threads)
        met = meet(control, n_threads, met)

    n_wanted, V = job[N_WANTED], shape.vocab_size
    wanted = 0
    for row in range(n_rows):
        if rows[row, IS_WANTED]:
            layer_norm(x[row * stream :][:C], norms[L, 0], norms[L, 1], epsilon, normed[wanted * C :])
            wanted += 1
    if wanted:
        b = biases_at[L, 0]
        linear(weights, weights_at[L, 0], C, V, scales[b:], biases[b:], normed, C, wanted, logits, False, thread, n_threads)
    met = meet(control, n_threads, met)
    for row in range(thread, n_wanted, n_threads):
        found = logits[row * padded(V) :][:V]
        most = largest(found, 0, V)
        summary[row, 0], summary[row, 1], summary[row, 2] = find(found, most), most, log_sum_exp(found, most)
    meet(control, n_threads, met)


@compiled(EXACT)
def follow(thread, seen, *arguments):  # type: ignore[no-untyped-def]
    """Take part in every pass after number ``seen``, until none comes for a while; return the number of the last.

    A negative number announces the end.
    """
    control = arguments[1]
    turns = 0
    while turns < IDLE_PATIENCE:
        turn = atomic.read(control, TURN)
        if turn == seen:
            atomic.pause()
            turns += 1
            continue
        if turn < 0:
            return turn
        forward(thread, *arguments)
        atomic.add(control, DONE, 1)
        seen, turns = turn, 0
    return seen


@compiled(EXACT)
def lead(*arguments):  # type: ignore[no-untyped-def]
    """Run the pass that was announced, and return when all threads have done their share."""
    control, job = arguments[1], arguments[2]
    forward(0, *arguments)
    while atomic.read(control, DONE) < job[N_THREADS] - 1:
        atomic.pause()
