"""Products with panels, for every type of stored weights and every number of rows."""

from typing import Any

import numba
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.kernels import panels
from model.kernels.forward import linear, padded
from model.kernels.jit import EXACT, compiled
from model.kernels.pack import aligned, fill_panels, in_groups
from model.kernels.panels import GROUP, UNSIGNED, WIDTH, Integers, Matrix, Rows, inputs_for, quantize

D_IN, D_OUT = 37, 150  # five panels, the last not full: four together and one alone


def multiply(
    weights: Any, depth: int, scale: Any, bias: Any, x: Any, room: Any, out: Any, add: bool, thread: int, n_threads: int
) -> None:
    matrix = Matrix(weights, 0, len(weights) // padded(D_OUT) * WIDTH, depth, D_OUT, scale, bias)
    n_rows = len(x) // D_IN
    inputs = inputs_for(weights, Rows(x, 0, D_IN), n_rows, D_IN, room, thread)
    linear(matrix, inputs, n_rows, Rows(out, 0, padded(D_OUT)), add, thread, n_threads)


product = compiled(EXACT)(multiply)


class Case:
    """A matrix stored as ``kind``, and its value in float64."""

    def __init__(self, kind: str) -> None:
        rng = np.random.default_rng(1)
        weights = rng.standard_normal((D_OUT, D_IN)).astype(np.float32)
        self.scale, stored = np.ones(padded(D_OUT), np.float32), weights
        if kind == "float16":
            stored = weights.astype(np.float16)
            weights, stored = stored.astype(np.float32), stored.view(np.int16)
        elif kind == "bfloat16":
            narrow = torch.from_numpy(weights).bfloat16()
            weights, stored = narrow.float().numpy(), narrow.view(torch.uint16).numpy()
        elif kind == "int8":
            integers = rng.integers(-127, 128, (D_OUT, D_IN))
            self.scale[:D_OUT] = rng.random(D_OUT).astype(np.float32) / 50
            weights, stored = integers * self.scale[:D_OUT, None], (integers + UNSIGNED).astype(np.uint8)
        self.is_integer = kind == "int8"
        self.weights = weights.astype(np.float64)
        group = GROUP if self.is_integer else 1
        self.depth = in_groups(D_IN, group) // group
        self.panels = aligned(padded(D_OUT) * self.depth * group, stored.dtype)
        fill_panels(self.panels, stored)
        self.bias = np.zeros(padded(D_OUT), np.float32)
        self.bias[:D_OUT] = rng.standard_normal(D_OUT)

    def expected(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The product in float64, with rounded inputs for a matrix of integers."""
        read = x.astype(np.float64)
        if self.is_integer:
            scale = np.abs(read).max(1, keepdims=True) / 127
            read = np.round(read / scale) * scale
        return read @ self.weights.T + self.bias[:D_OUT]

    def run(
        self, x: NDArray[np.float32], add: bool = False, n_threads: int = 1, product: Any = product
    ) -> NDArray[np.float32]:
        """``(n_rows, D_OUT)``; what is added to are ones."""
        out = np.ones((len(x), padded(D_OUT)), np.float32)
        n, stride = len(x), in_groups(D_IN, GROUP)
        room = Integers(*(np.zeros((n_threads, size), t) for size, t in ((n * stride, "i1"), (n, "f4"), (n, "i4"))))
        matrix = self.panels, self.depth, self.scale, self.bias
        for thread in range(n_threads):
            product(*matrix, x.reshape(-1), room, out.reshape(-1), add, thread, n_threads)
        return out[:, :D_OUT]


@pytest.fixture(scope="module", params=["float32", "float16", "bfloat16", "int8"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def rows(n: int) -> NDArray[np.float32]:
    return np.random.default_rng(2).standard_normal((n, D_IN)).astype(np.float32)


def test_products_equal_float64(case: Case) -> None:
    x = rows(15)  # eight, four and three at a time
    expected = case.expected(x)
    assert np.abs(case.run(x) - expected).max() < 1e-4
    assert np.abs(case.run(x, add=True) - expected - 1).max() < 1e-4


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 8, 14, 16])
def test_a_row_is_bit_identical_in_any_batch(case: Case, n_rows: int) -> None:
    x = rows(16)
    together = case.run(x)
    assert (case.run(x[:n_rows]) == together[:n_rows]).all()
    assert (case.run(x[:n_rows], n_threads=3) == together[:n_rows]).all()


def test_integers_are_multiplied_alike_without_an_instruction_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    case, x = Case("int8"), rows(15)
    monkeypatch.setattr(panels, "has_integer_products", lambda: False)
    plain = numba.njit(multiply)
    assert (case.run(x, product=plain) == case.run(x)).all()


def test_the_largest_integers_do_not_overflow() -> None:
    case = Case("int8")
    case.panels[:] = 127 + UNSIGNED
    x = np.full((2, D_IN), 3.0, np.float32)
    expected = 127 * case.scale[:D_OUT] * 3 * D_IN + case.bias[:D_OUT]
    assert np.abs(case.run(x) - expected).max() < 1e-3


@pytest.mark.parametrize(("odd", "is_found"), [(np.nan, np.isnan), (np.inf, np.isinf), (-np.inf, np.isinf)])
def test_nan_and_infinity_propagate_through_integers(odd: float, is_found: Any) -> None:
    x, out = np.ones(9, np.float32), np.zeros(9, np.int8)
    x[4] = odd
    scale, _ = quantize(x, out)
    assert is_found(scale)


def test_a_row_of_zeros_stays_zero_in_integers() -> None:
    out = np.ones(9, np.int8)
    scale, total = quantize(np.zeros(9, np.float32), out)
    assert scale > 0 and total == 0 and not out.any()
