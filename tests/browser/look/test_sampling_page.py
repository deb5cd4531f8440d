"""The browser's sampling against model.sampling, on logits of every size, with ties."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from helpers import also_slow
from model.sampling import SamplingSettings, probabilities
from web.assets import URL

RUN = """async ([url, logits, settings]) => {
  const { probabilities, mostProbable } = await import(new URL(url + "/lib/sampling.mjs", document.baseURI));
  const values = Float32Array.from(logits);
  return [settings.map((one) => Array.from(probabilities(values, one))), mostProbable(values, 20)];
}"""


def settings(size: int) -> list[dict[str, Any]]:
    """Every knob alone and together."""
    temperatures = (0.0, 1e-6, 0.3, 0.8, 1.0, 2.0)
    others: list[dict[str, Any]] = [{}, {"top_k": 1}, {"top_k": 7}, {"top_p": 0.05}, {"top_p": 0.9}, {"min_p": 0.1}]
    others += [{"top_k": 40, "top_p": 0.7, "min_p": 0.02}, {"top_k": size, "top_p": 0.999}, {"min_p": 1.0}]
    pairs = itertools.product(temperatures, others)
    return [{"temperature": temperature} | other for temperature, other in pairs]


def many_logits(size: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(size)
    plain = 3 * torch.randn(size, generator=generator)
    return [plain, plain.mul(2).round().div(2), torch.zeros(size), 40 * plain]  # the second and third have ties


def check(page: Any, logits: Tensor, chosen: list[dict[str, Any]]) -> None:
    found, most = page.evaluate(RUN, [URL, logits.tolist(), chosen])
    for numbers, one in zip(found, chosen, strict=True):
        expected = probabilities(logits, SamplingSettings(**one))
        torch.testing.assert_close(
            torch.tensor(numbers, dtype=torch.float64), expected, atol=1e-6, rtol=0, msg=str(one)
        )
    ranked = sorted(range(len(logits)), key=lambda i: (-float(logits[i]), i))
    assert most == ranked[:20]


@pytest.mark.parametrize("size", [65, *also_slow(1, 4_096)])
def test_the_browser_draws_from_the_same_probabilities(page: Any, size: int) -> None:
    for logits in many_logits(size):
        check(page, logits, settings(size))


@pytest.mark.slow
def test_a_large_vocabulary(page: Any) -> None:
    for logits in many_logits(50_257)[:2]:
        check(page, logits, settings(50_257)[18:27:2] + settings(50_257)[2:6])


def test_none_means_all_tokens(page: Any) -> None:
    (zero, none), _ = page.evaluate(RUN, [URL, [1.0, 2.0, 3.0], [{"top_k": 0}, {"top_k": None}]])
    assert zero == none == pytest.approx(torch.softmax(torch.tensor([1.0, 2.0, 3.0]), 0).tolist(), abs=1e-6)
