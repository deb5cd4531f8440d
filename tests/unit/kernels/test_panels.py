"""Products with panels, for every type of stored weights and every number of rows."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.kernels import panels, sums
from model.kernels.inputs import (
    inputs_for,
    quantize_row,
    round_to_bfloat16,
    write_inputs,
)
from model.kernels.jit import EXACT, compiled
from model.kernels.linear import linear
from model.kernels.pack import aligned, fill_panels, scratch_for, stored
from model.kernels.panels import PREFETCH_BYTES, WIDTH, Matrix, PairRows, Rows, Share, in_groups, padded
from model.kernels.sums import GROUP, PAIR, UNSIGNED, has_pair_products

D_IN, D_OUT = 38, 9 * WIDTH - 10  # nine panels, the last not full: four together, two together and one alone


def multiply(
    weights: Any,
    depth: int,
    scale: Any,
    bias: Any,
    x: Any,
    scratch: Any,
    out: Any,
    add: bool,
    thread: int,
    n_threads: int,
) -> None:
    matrix = Matrix(weights, 0, depth * WIDTH, depth, D_OUT, scale, bias, PREFETCH_BYTES)
    n_rows = len(x) // D_IN
    inputs = inputs_for(weights, Rows(x, 0, D_IN), n_rows, D_IN, scratch, Share(thread, 0, 1))
    linear(matrix, inputs, n_rows, Rows(out, 0, padded(D_OUT)), add, thread, n_threads)


product = compiled(EXACT)(multiply)


class Case:
    """A matrix stored as ``kind``, and its value in float64."""

    def __init__(self, kind: str) -> None:
        rng = np.random.default_rng(1)
        weights = torch.from_numpy(rng.standard_normal((D_OUT, D_IN)).astype(np.float32))
        self.kind, self.scale, group = kind, np.ones(padded(D_OUT), np.float32), 1
        if kind == "float16":
            matrix, weights = stored(weights, np.dtype(np.int16)), weights.half()
        elif kind.startswith("bfloat16"):
            matrix, weights, group = stored(weights, np.dtype(np.uint32)), weights.bfloat16(), PAIR
        elif kind == "int8":
            integers = torch.from_numpy(rng.integers(-127, 128, (D_OUT, D_IN)).astype(np.int8))
            self.scale[:D_OUT] = rng.random(D_OUT).astype(np.float32) / 50
            matrix, weights, group = stored(integers, np.dtype(np.int32)), integers, GROUP
        else:
            matrix = weights.numpy()
        self.weights = weights.double().numpy() * self.scale[:D_OUT, None].astype(np.float64)
        self.group, self.depth = group, in_groups(D_IN, group)
        self.panels = aligned(padded(D_OUT) * self.depth, matrix.dtype)
        fill_panels(self.panels, matrix)
        self.bias = np.zeros(padded(D_OUT), np.float32)
        self.bias[:D_OUT] = rng.standard_normal(D_OUT)

    def expected(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The product in float64, with inputs rounded as the kind says."""
        read = x.astype(np.float64)
        if self.kind == "int8":
            scale = np.abs(read).max(1, keepdims=True) / 127
            read = np.round(read / scale) * scale
        if self.kind == "bfloat16 products":
            read = torch.from_numpy(x).bfloat16().double().numpy()
        return read @ self.weights.T + self.bias[:D_OUT]

    def run(
        self, x: NDArray[np.float32], add: bool = False, n_threads: int = 1, product: Any = product
    ) -> NDArray[np.float32]:
        """``(n_rows, D_OUT)``; what is added to are ones."""
        out = np.ones((len(x), padded(D_OUT)), np.float32)
        in_pairs = self.kind == "bfloat16 products"
        scratch = scratch_for(self.group, len(x), D_IN, n_threads, in_pairs=in_pairs)
        matrix = self.panels, self.depth, self.scale, self.bias
        for thread in range(n_threads):
            product(*matrix, x.reshape(-1), scratch, out.reshape(-1), add, thread, n_threads)
        return out[:, :D_OUT]


@pytest.fixture(scope="module", params=["float32", "float16", "bfloat16", "bfloat16 products", "int8"])
def case(request: pytest.FixtureRequest) -> Case:
    if request.param == "bfloat16 products" and not has_pair_products():
        pytest.skip("this processor cannot multiply pairs of bfloat16")
    return Case(request.param)


def rows(n: int) -> NDArray[np.float32]:
    return np.random.default_rng(2).standard_normal((n, D_IN)).astype(np.float32)


def test_products_equal_float64(case: Case) -> None:
    x = rows(15)  # eight and seven at a time, or five
    expected = case.expected(x)
    assert np.abs(case.run(x) - expected).max() < 1e-4
    assert np.abs(case.run(x, add=True) - expected - 1).max() < 1e-4


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 6, 7, 8, 14, 16])
def test_a_row_is_bit_identical_in_any_batch(case: Case, n_rows: int) -> None:
    x = rows(16)
    together = case.run(x)
    assert (case.run(x[:n_rows]) == together[:n_rows]).all()
    assert (case.run(x[:n_rows], n_threads=3) == together[:n_rows]).all()


INSTRUCTIONS: list[tuple[str, Callable[[], sums.IntegerSums]]] = [
    ("avx512vnni", lambda: sums.SumsOfFour(512)),
    ("avxvnni", lambda: sums.SumsOfFour(256)),
    ("avx2", sums.SumsOfTwo),
    ("", sums.IntegerSums),
]


@pytest.mark.slow
@pytest.mark.parametrize(("feature", "made"), INSTRUCTIONS)
def test_integers_are_multiplied_alike_with_any_instruction(
    monkeypatch: pytest.MonkeyPatch, feature: str, made: Callable[[], sums.IntegerSums]
) -> None:
    if feature and not sums.has_feature(feature):
        pytest.skip(f"this processor lacks {feature}")
    case, x = Case("int8"), rows(15)
    monkeypatch.setattr(panels, "integer_sums", made)
    anew = numba.njit(fastmath=EXACT, error_model="numpy", _nrt=False)  # what exists contains another instruction
    monkeypatch.setitem(globals(), "linear", anew(linear.py_func))
    assert (case.run(x, product=anew(multiply)) == case.run(x)).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_integers_do_not_overflow(sign: int) -> None:
    case = Case("int8")
    case.panels.view(np.uint8)[:] = sign * 127 + UNSIGNED
    x = np.full((2, D_IN), 3.0, np.float32)
    expected = sign * 127 * case.scale[:D_OUT] * 3 * D_IN + case.bias[:D_OUT]
    assert np.abs(case.run(x) - expected).max() < 1e-3


@pytest.mark.parametrize(("odd", "is_found"), [(np.nan, np.isnan), (np.inf, np.isinf), (-np.inf, np.isinf)])
def test_nan_and_infinity_propagate_through_integers(odd: float, is_found: Any) -> None:
    x, out = np.ones(9, np.float32), np.zeros(9, np.int8)
    x[4] = odd
    scale, _ = quantize_row(x, out)
    assert is_found(scale)


def test_a_row_of_zeros_stays_zero_in_integers() -> None:
    out = np.ones(9, np.int8)
    scale, total = quantize_row(np.zeros(9, np.float32), out)
    assert scale > 0 and total == 0 and not out.any()


def test_rounding_to_bfloat16_equals_torch() -> None:
    bits = np.arange(2**16, dtype=np.uint32) << 16
    x = (
        np.concatenate([bits + low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
        .astype(np.uint32)
        .view(np.float32)
    )
    found, expected = np.zeros(len(x), np.uint16), torch.from_numpy(x).bfloat16()
    round_to_bfloat16(x, found)
    assert torch.equal(torch.from_numpy(found).view(torch.bfloat16).nan_to_num(7), expected.nan_to_num(7))


@compiled(EXACT)
def write(panels: Any, index: int, n: int, n_known: int, rows: Any, width: int) -> None:
    write_inputs(panels, 0, len(panels), index, n, n_known, rows, width)


@pytest.mark.parametrize("index", [0, 1, 4, 7])
def test_rows_that_are_written_again_in_pairs_leave_later_ones_alone(index: int) -> None:
    """Threads whose heads share values all write them, some later than others."""
    n, block, panel = 21, 8, np.zeros(32 * WIDTH, np.uint32)
    rows = np.random.default_rng(1).integers(1, 1 << 16, (n, WIDTH), np.uint16)

    def write_block(first: int) -> None:
        here = min(block, n - first)
        write(panel, index + first, here, min(here + 1, n - first), PairRows(rows[first:].reshape(-1), 0, WIDTH), WIDTH)

    for first in range(0, n, block):
        write_block(first)
    pairs = panel.view(np.uint16).reshape(-1, WIDTH, PAIR).transpose(0, 2, 1).reshape(-1, WIDTH)
    expected = np.zeros_like(pairs)
    expected[index : index + n] = rows
    assert (pairs == expected).all()
    for first in range(0, n, block):
        before = panel.copy()
        write_block(first)
        assert (panel == before).all()
