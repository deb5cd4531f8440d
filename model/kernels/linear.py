"""The product of rows of inputs and a matrix, divided among threads by panels."""

import numpy as np
from numba.extending import overload

from .inputs import inputs_for
from .jit import EXACT, compiled
from .panels import (
    PANELS_AT_ONCE,
    PREFETCH_BYTES,
    WIDTH,
    Matrix,
    PairRows,
    Rows,
    Share,
    TileScratch,
    in_groups,
    multiply,
    padded,
    rows_at_once,
    with_panel_ahead,
)
from .tiles import linear_in_tiles

SET, ADD = np.bool_(False), np.bool_(True)  # whether a product overwrites its output or adds to it
ROWS_OF_A_PANEL, ROWS_OF_TWO_PANELS = rows_at_once(1), rows_at_once(2)
MIN_TILE_ROWS = 4  # of 8-bit integers; fewer are multiplied in vectors, with the same sums


@compiled(EXACT)
def linear(matrix, x, n_rows, out, add, thread, n_threads):
    """This thread's share of ``out = x @ matrix + bias``, or ``out += ...``: ``(n_rows, depth) -> (n_rows, width)``."""
    n_panels = padded(matrix.width) // WIDTH
    at_once = PANELS_AT_ONCE if n_rows == 1 else 2 if n_rows <= ROWS_OF_TWO_PANELS else 1
    n_groups = in_groups(n_panels, at_once)
    panel = n_groups * thread // n_threads * at_once
    end = min(n_groups * (thread + 1) // n_threads * at_once, n_panels)
    n_blocks = in_groups(n_rows, ROWS_OF_A_PANEL)
    if n_blocks > 1:  # there is time to prefetch a whole panel
        matrix = with_panel_ahead(matrix)
    while panel < end:
        if at_once == PANELS_AT_ONCE and panel + PANELS_AT_ONCE <= end:
            multiply(matrix, panel, x, out, 0, add, n_rows, 0, 1, PANELS_AT_ONCE)
            panel += PANELS_AT_ONCE
        elif at_once > 1 and panel + 2 <= end:
            multiply(matrix, panel, x, out, 0, add, n_rows, 0, 1, 2)
            panel += 2
        else:
            row = 0
            for block in range(n_blocks):  # of nearly as many rows each
                n = in_groups(n_rows - row, n_blocks - block)
                multiply(matrix, panel, x, out, row, add, n, block, n_blocks, 1)
                row += n
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
def matrix_at(weights, layer, index, depth, width):
    """Matrix ``index`` of a layer, ``(width, depth)``."""
    groups = in_groups(depth, weights.group)
    start, bias = weights.panels_at[layer, index], weights.biases_at[layer, index]
    scale, bias = weights.scales[bias:], weights.biases[bias:]
    return Matrix(weights.panels, start, groups * WIDTH, groups, width, scale, bias, PREFETCH_BYTES)


@compiled(EXACT)
def project_alone(matrix, x, n_rows, depth, out, add, scratch, thread, n_threads):
    """``linear`` of inputs that every thread rounds for itself, ``depth`` numbers in a row."""
    inputs = inputs_for(matrix.weights, x, n_rows, depth, scratch, Share(thread, 0, 1))
    linear_for(inputs, scratch)(matrix, inputs, n_rows, out, add, thread, n_threads)


@compiled(EXACT)
def project_from(weights, layer, index, x, n_rows, depth, width, out, add, scratch, thread, n_threads):
    """``project_alone`` with matrix ``index`` of a layer, ``(width, depth)``."""
    matrix = matrix_at(weights, layer, index, depth, width)
    project_alone(matrix, x, n_rows, depth, out, add, scratch, thread, n_threads)
