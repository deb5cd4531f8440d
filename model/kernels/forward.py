"""The forward pass of a GPT in plain loops, for any number of new tokens from different texts.

Every function here is compiled. Threads divide a pass by outputs: each computes its share of the panels of every
product for all rows, and they synchronise wherever the next step needs all outputs.
"""

from .attention import attention
from .functions import (
    ONE,
    embed,
    find,
    gelu_exact,
    gelu_tanh,
    layer_norm,
    log_sum_exp,
    multiply_by,
    relu,
    rms_norm,
    scaled,
    silu,
)
from .inputs import inputs_for, rounded_or, rows_of, scale_into
from .intrinsics import atomic_add, atomic_read, atomic_store, largest, pause, yield_core
from .jit import EXACT, compiled
from .linear import ADD, SET, linear_for, matrix_at
from .panels import Rows, Share
from .state import (
    ARRIVED,
    ATTENTION_OUTPUT,
    BEFORE_ATTENTION,
    BEFORE_MLP,
    DONE,
    FINAL,
    GELU_NEW,
    IS_WANTED,
    LEADER,
    MLP_INPUT,
    MLP_OUTPUT,
    N_ROWS,
    N_THREADS,
    N_WANTED,
    OUTPUT_HEAD,
    PASS,
    POSITION,
    QUERY_KEY_VALUE,
    RELU,
    SILU,
    TOKEN,
)

PATIENCE = 4_000  # spins before a waiting thread yields its core
IDLE_PATIENCE = 40_000  # spins before a thread that waits for the next pass goes to sleep: about a millisecond
MIN_SHARED_ROWS = 32  # with fewer, every thread prepares all inputs for itself, which is faster than waiting


@compiled(EXACT)
def barrier(control, n_threads, arrived):
    """Wait until all threads arrive. ``arrived`` counts the arrivals at all barriers so far; returns the new count."""
    arrived += n_threads
    if n_threads > 1:
        atomic_add(control, ARRIVED, 1)
        spins = 0
        while atomic_read(control, ARRIVED) < arrived:
            pause()
            spins += 1
            if spins > PATIENCE:
                yield_core()
    return arrived


@compiled(EXACT)
def share_of(n_rows, thread, n_threads):
    """Which rows a thread prepares for a product: its share, which others read, or all."""
    if n_rows < MIN_SHARED_ROWS:
        return Share(thread, 0, 1)
    return Share(int(LEADER), thread, n_threads)


@compiled(EXACT)
def project(weights, memory, layer, index, x, n_rows, depth, width, out, add, thread, n_threads, arrived):
    """The product of ``x`` and matrix ``index`` of a layer, by all threads together; see ``linear`` and ``barrier``."""
    share = share_of(n_rows, thread, n_threads)
    inputs = inputs_for(weights.panels, x, n_rows, depth, memory.scratch, share)
    if share.step > 1:
        arrived = barrier(memory.control, n_threads, arrived)
    matrix = matrix_at(weights, layer, index, depth, width)
    linear_for(inputs, memory.scratch)(matrix, inputs, n_rows, out, add, thread, n_threads)
    return barrier(memory.control, n_threads, arrived)


@compiled(EXACT)
def project_normed(shape, weights, memory, layer, which, index, n_rows, width, out, thread, n_threads, arrived):
    """``project`` of norm ``which`` of the first ``n_rows`` rows of the residual stream."""
    C, share = shape.n_embd, share_of(n_rows, thread, n_threads)
    normed, stride = memory.normed[share.place], rows_of(memory.x, C).stride
    gain, shift = weights.norms[layer, which], weights.norms[layer, which + 1]
    for row in range(share.first, n_rows, share.step):
        x = memory.x[row * stride :][:C]
        if shape.is_rms:
            rms_norm(x, gain, weights.epsilon, normed[row * C :])
        else:
            layer_norm(x, gain, shift, weights.epsilon, normed[row * C :])
    inputs = Rows(normed, 0, C)
    return project(weights, memory, layer, index, inputs, n_rows, C, width, out, SET, thread, n_threads, arrived)


@compiled(EXACT)
def keep_wanted(shape, memory):
    """Move the residual streams of the rows whose logits are needed to the front."""
    C, stride, n = shape.n_embd, rows_of(memory.x, shape.n_embd).stride, 0
    for row in range(memory.job[N_ROWS]):
        if memory.rows[row, IS_WANTED]:
            scaled(memory.x[row * stride :][:C], ONE, memory.x[n * stride :])
            n += 1


@compiled(EXACT)
def activate(shape, memory, n_rows, thread, n_threads):
    """This thread's share of the activations between the two products of an MLP, in place."""
    inner = shape.inner_dim
    stride = rows_of(memory.hidden, 2 * inner if shape.is_gated else inner).stride
    activated = rows_of(memory.activated, inner)
    first, end = inner * thread // n_threads, inner * (thread + 1) // n_threads
    for row in range(n_rows):
        part = memory.hidden[row * stride + first :][: end - first]
        if shape.activation == GELU_NEW:
            gelu_tanh(part)
        elif shape.activation == SILU:
            silu(part)
        elif shape.activation == RELU:
            relu(part)
        else:
            gelu_exact(part)
        if shape.is_gated:
            multiply_by(part, memory.hidden[row * stride + inner + first :])
        if len(memory.activated):
            scale_into(part, ONE, memory.activated[row * activated.stride + first :])


@compiled(EXACT)
def forward(thread, shape, weights, memory):
    """This thread's share of one pass over ``job[N_ROWS]`` rows."""
    L, C, inner, V = shape.n_layer, shape.n_embd, shape.inner_dim, shape.vocab_size
    E, n_qkv = shape.n_head * shape.head_dim, (shape.n_head + 2 * shape.n_kv_head) * shape.head_dim
    wide = 2 * inner if shape.is_gated else inner
    job, control, rows = memory.job, memory.control, memory.rows
    n_rows, n_threads = job[N_ROWS], job[N_THREADS]
    x, qkv, contexts = rows_of(memory.x, C), rows_of(memory.qkv, n_qkv), rows_of(memory.contexts, E)
    hidden, logits = rows_of(memory.hidden, wide), rows_of(memory.logits, V)
    activated = rounded_or(rows_of(memory.activated, inner), hidden)

    for row in range(thread, n_rows, n_threads):
        stream = memory.x[row * x.stride :][:C]
        embed(weights.tokens, rows[row, TOKEN], weights.positions, rows[row, POSITION], stream)
    arrived = barrier(control, n_threads, 0)

    n_kept = n_rows  # rows that go on after attention: the keys and values of the others are all that is needed
    for layer in range(L):
        which = BEFORE_ATTENTION
        arrived = project_normed(
            shape, weights, memory, layer, which, QUERY_KEY_VALUE, n_rows, n_qkv, qkv, thread, n_threads, arrived
        )
        attention(shape, weights, memory, layer, thread, n_threads)
        if layer == L - 1:
            n_kept = job[N_WANTED]
            if thread == LEADER:
                keep_wanted(shape, memory)
        arrived = barrier(control, n_threads, arrived)
        index = ATTENTION_OUTPUT
        if not shape.is_parallel:  # otherwise the MLP reads the same stream as attention
            arrived = project(weights, memory, layer, index, contexts, n_kept, E, C, x, ADD, thread, n_threads, arrived)
        arrived = project_normed(
            shape, weights, memory, layer, BEFORE_MLP, MLP_INPUT, n_kept, wide, hidden, thread, n_threads, arrived
        )
        activate(shape, memory, n_kept, thread, n_threads)
        arrived = barrier(control, n_threads, arrived)
        if shape.is_parallel:
            arrived = project(weights, memory, layer, index, contexts, n_kept, E, C, x, ADD, thread, n_threads, arrived)
        index = MLP_OUTPUT
        arrived = project(
            weights, memory, layer, index, activated, n_kept, inner, C, x, ADD, thread, n_threads, arrived
        )

    arrived = project_normed(
        shape, weights, memory, L, FINAL, OUTPUT_HEAD, n_kept, V, logits, thread, n_threads, arrived
    )
    for row in range(thread, n_kept, n_threads):
        numbers, summary = memory.logits[row * logits.stride :][:V], memory.summary[row]
        most = largest(numbers)
        summary[0], summary[1], summary[2] = find(numbers, most), most, log_sum_exp(numbers, most)
    barrier(control, n_threads, arrived)


@compiled(EXACT)
def take_part(thread, seen, shape, weights, memory):
    """Take part in every pass after number ``seen``; after ``IDLE_PATIENCE`` idle spins, return the last one's number.

    A negative number means that the thread must stop. The leader takes part in one pass, and returns once all threads
    have done their share. All threads call this one function, because LLVM may sum up in another order in another copy.
    """
    spins = 0
    while spins < IDLE_PATIENCE:
        number = atomic_read(memory.control, PASS)
        if number == seen:
            pause()
            spins += 1
            continue
        if number < 0 and thread != LEADER:
            return number
        forward(thread, shape, weights, memory)
        if thread == LEADER:
            while atomic_read(memory.control, DONE) < memory.job[N_THREADS] - 1:
                pause()
            return number
        atomic_add(memory.control, DONE, 1)
        seen, spins = number, 0
    return seen


@compiled(EXACT)
def announce(control, number):
    """Start pass ``number``, or stop all followers if negative. Followers that see it see all earlier writes."""
    atomic_store(control, PASS, number)
