"""Products with panels, in every type that weights are stored in and for every number of rows."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.kernels.forward import linear, padded
from model.kernels.jit import EXACT, compiled
from model.kernels.pack import aligned, fill_panels
from model.kernels.panels import WIDTH, Matrix, Rows

D_IN, D_OUT = 37, 150  # five panels, the last not full: four together and one alone


@compiled(EXACT)
def product(
    panels: Any, scale: Any, bias: Any, x: Any, out: Any, n_rows: int, add: bool, thread: int, n_threads: int
) -> None:
    matrix = Matrix(panels, 0, D_IN * WIDTH, D_IN, D_OUT, scale, bias)
    linear(matrix, Rows(x, 0, D_IN), n_rows, Rows(out, 0, padded(D_OUT)), add, thread, n_threads)


class Case:
    """A matrix stored as ``kind``, with what it means in float64."""

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
            stored = rng.integers(-127, 128, (D_OUT, D_IN)).astype(np.int8)
            self.scale[:D_OUT] = rng.random(D_OUT).astype(np.float32) / 50
            weights = stored * self.scale[:D_OUT, None]
        self.weights = weights.astype(np.float64)
        self.panels = aligned(padded(D_OUT) * D_IN, stored.dtype)
        fill_panels(self.panels, stored)
        self.bias = np.zeros(padded(D_OUT), np.float32)
        self.bias[:D_OUT] = rng.standard_normal(D_OUT)

    def run(self, x: NDArray[np.float32], add: bool = False, n_threads: int = 1) -> NDArray[np.float32]:
        """``(n_rows, D_OUT)``; what is added to are ones."""
        out = np.ones((len(x), padded(D_OUT)), np.float32)
        for thread in range(n_threads):
            product(self.panels, self.scale, self.bias, x.reshape(-1), out.reshape(-1), len(x), add, thread, n_threads)
        return out[:, :D_OUT]


@pytest.fixture(scope="module", params=["float32", "float16", "bfloat16", "int8"])
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def rows(n: int) -> NDArray[np.float32]:
    return np.random.default_rng(2).standard_normal((n, D_IN)).astype(np.float32)


def test_a_product_is_that_of_float64(case: Case) -> None:
    x = rows(15)  # eight, four, two and one at a time
    expected = x.astype(np.float64) @ case.weights.T + case.bias[:D_OUT]
    assert np.abs(case.run(x) - expected).max() < 1e-4
    assert np.abs(case.run(x, add=True) - expected - 1).max() < 1e-4


@pytest.mark.parametrize("n_rows", [1, 2, 3, 8, 16])
def test_a_row_is_the_same_to_the_last_bit_whatever_is_beside_it(case: Case, n_rows: int) -> None:
    x = rows(16)
    together = case.run(x)
    assert (case.run(x[:n_rows]) == together[:n_rows]).all()
    assert (case.run(x[:n_rows], n_threads=3) == together[:n_rows]).all()
