"""The functions between the matrix products, compared with float64 and torch."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.kernels import functions
from model.kernels.functions import exp
from model.kernels.jit import EXACT, compiled


@compiled(EXACT)
def exp_all(x: NDArray[np.float32]) -> None:
    for i in range(len(x)):
        x[i] = exp(x[i])


@compiled(EXACT)
def run_once(which: int, x: NDArray[np.float32], scale: float, ones: NDArray[np.float32], zeros: NDArray[Any]) -> None:
    """One compilation for all functions that work in place."""
    if which == 0:
        functions.gelu_tanh(x)
    elif which == 1:
        functions.gelu_exact(x)
    elif which == 2:
        functions.scaled(x, functions.exponentials(x, len(x), np.float32(scale)), x)
    elif which == 3:
        functions.layer_norm(x, ones, zeros, np.float32(1e-5), x)


def run(which: int, x: NDArray[np.float32], scale: float) -> None:
    run_once(which, x, scale, np.ones_like(x), np.zeros_like(x))


@compiled(EXACT)
def softmax_of(x: NDArray[np.float32], count: int, scale: float) -> None:
    functions.scaled(x, functions.exponentials(x, count, scale), x)


def numbers(n: int, seed: int = 0, spread: float = 3.0) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(n) * spread).astype(np.float32)


def test_exp_is_right_to_two_units_in_the_last_place() -> None:
    x = np.linspace(-87, 88, 200_001, dtype=np.float32)
    expected, found = np.exp(x.astype(np.float64)), x.copy()
    exp_all(found)
    assert np.max(np.abs(found - expected) / np.spacing(expected.astype(np.float32))) <= 2


def test_exp_where_float32_ends() -> None:
    x = np.array([-math.inf, -1e30, -88, 0, 89, math.inf, math.nan], np.float32)
    exp_all(x)
    assert x[:3].max() < 2e-38 and x[3] == 1 and np.isinf(x[4:6]).all() and np.isnan(x[6])


@pytest.mark.parametrize("which", [0, 1], ids=["tanh", "exact"])
def test_gelu_equals_torch(which: int) -> None:
    x = np.concatenate([numbers(1_003), np.linspace(-12, 12, 4_001, dtype=np.float32)])
    expected = torch.nn.functional.gelu(torch.from_numpy(x).double(), approximate=["tanh", "none"][which]).numpy()
    found = x.copy()
    run(which, found, 1.0)
    assert np.abs(found - expected).max() < 2e-6


@pytest.mark.parametrize("n", [1, 15, 16, 17, 250])
def test_softmax_and_layer_norm_of_any_length(n: int) -> None:
    x = numbers(n, seed=n)
    weights = x.copy()
    run(2, weights, 0.3)
    expected = torch.from_numpy(x).double().mul(0.3).softmax(-1).numpy()
    assert np.abs(weights - expected).max() < 1e-6
    followed = np.concatenate([x, [math.nan, math.inf, 1e9]]).astype(np.float32)
    softmax_of(followed, n, np.float32(0.3))
    assert np.abs(followed[:n] - expected).max() < 1e-6 and (followed[n:] == 0).all()
    normed = x.copy()
    run(3, normed, 1.0)
    assert np.abs(normed - torch.nn.functional.layer_norm(torch.from_numpy(x).double(), [n]).numpy()).max() < 1e-5


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("which", [2, 3], ids=["softmax", "layer norm"])
def test_nan_and_infinity_propagate(which: int, bad: float) -> None:
    """An overflow is detected by its NaN."""
    x = numbers(40)
    x[7] = bad
    run(which, x, 1.0)
    assert np.isnan(x).any()
