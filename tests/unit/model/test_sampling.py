"""Sampling compared with an independent implementation in plain Python, its edge cases, and all refused values."""

import math
import random
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from model.sampling import MAX_TOP_K, SamplingSettings, probabilities, random_generator, sample


def expected_probabilities(
    logits: list[float], s: SamplingSettings, prompt: list[int], written: list[int]
) -> list[float]:
    """The documented order with lists and floats only: bias, penalties, temperature, top-k, top-p, min-p."""
    values = [float(value) for value in logits]
    for token_id, bias in s.logit_bias.items():
        values[token_id] += bias
    for token_id in {*prompt, *written}:
        factor = s.repetition_penalty
        values[token_id] = values[token_id] / factor if values[token_id] > 0 else values[token_id] * factor
    for token_id, count in Counter(written).items():
        values[token_id] -= s.presence_penalty + s.frequency_penalty * count
    if s.temperature == 0:
        best = max(range(len(values)), key=lambda i: (values[i], -i))
        return [float(i == best) for i in range(len(values))]
    values = [value / s.temperature for value in values]
    kept = set(range(len(values)))
    if s.top_k:  # 0 means all, too
        smallest = sorted(values, reverse=True)[: s.top_k][-1]
        kept = {i for i in kept if values[i] >= smallest}

    def renormalised() -> dict[int, float]:
        largest = max(values[i] for i in kept)
        powers = {i: math.exp(values[i] - largest) for i in kept}
        total = math.fsum(powers.values())
        return {i: power / total for i, power in powers.items()}

    if s.top_p < 1:
        shares, total, nucleus = renormalised(), 0.0, set()
        for i in sorted(kept, key=lambda i: (-shares[i], i)):
            if total >= s.top_p:
                break
            nucleus.add(i)
            total += shares[i]
        kept = nucleus
    if s.min_p > 0:
        shares = renormalised()
        kept = {i for i in kept if shares[i] >= s.min_p * max(shares.values()) * (1 - 1e-12)}
    shares = renormalised()
    return [shares.get(i, 0.0) for i in range(len(values))]


def random_settings(rng: random.Random, vocab_size: int) -> SamplingSettings:
    def sometimes(value: Any, neutral: Any) -> Any:
        return value if rng.random() < 0.5 else neutral

    return SamplingSettings(
        temperature=rng.choice([0, 0.3, 0.7, 1.0, 1.0, 1.9, 10.0]),
        top_k=sometimes(rng.randint(0, vocab_size + 2), None),
        top_p=sometimes(rng.uniform(0.01, 1), 1.0),
        min_p=sometimes(rng.random() ** 2, 0.0),
        presence_penalty=sometimes(rng.uniform(-2, 2), 0.0),
        frequency_penalty=sometimes(rng.uniform(-2, 2), 0.0),
        repetition_penalty=sometimes(rng.uniform(0.5, 2), 1.0),
        logit_bias=sometimes({rng.randrange(vocab_size): rng.uniform(-5, 5) for _ in range(3)}, {}),
    )


@pytest.mark.parametrize("seed", range(300))
def test_filters_equal_plain_python(seed: int) -> None:
    rng = random.Random(seed)
    vocab_size = rng.choice([1, 2, 5, 65])
    # Multiples of a half, so that ties are common, or any numbers.
    numbers = [rng.randint(-6, 6) / 2 if seed % 2 else rng.gauss(0, 3) for _ in range(vocab_size)]
    logits = torch.tensor(numbers, dtype=torch.float32)
    settings = random_settings(rng, vocab_size)
    prompt, written = ([rng.randrange(vocab_size) for _ in range(rng.randint(0, 6))] for _ in range(2))
    expected = expected_probabilities(logits.tolist(), settings, prompt, written)
    found = probabilities(logits, settings, prompt, written)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), atol=1e-9, rtol=0)
    drawn = rng.random()
    total, token_id = 0.0, 0
    for token_id, share in enumerate(expected):  # noqa: B007 - the last one is the answer
        total += share
        if total > drawn:
            break
    if abs(total - drawn) > 1e-9 and abs(total - expected[token_id] - drawn) > 1e-9:
        assert sample(logits, settings, Always(drawn), prompt, written) == token_id


class Always(random.Random):
    """A generator that gives one number."""

    def __init__(self, value: float) -> None:
        super().__init__(0)
        self.value = value

    def random(self) -> float:
        return self.value


def kept(shares: list[float], **settings: Any) -> list[int]:
    """The token ids that stay possible where the model's probabilities are ``shares``."""
    logits = torch.tensor(shares, dtype=torch.float64).log()
    return probabilities(logits, SamplingSettings(**settings)).nonzero().flatten().tolist()


def test_top_k_keeps_ties() -> None:
    assert kept([0.1, 0.3, 0.2, 0.2, 0.2], top_k=1) == [1]
    assert kept([0.1, 0.3, 0.2, 0.2, 0.2], top_k=2) == [1, 2, 3, 4]
    assert kept([0.1, 0.3, 0.2, 0.2, 0.2], top_k=5) == [0, 1, 2, 3, 4]
    assert kept([0.5, 0.5], top_k=100) == kept([0.5, 0.5], top_k=0) == kept([0.5, 0.5], top_k=None) == [0, 1]


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    """Sums of powers of two are exact, so the boundary is too."""
    shares = [0.125, 0.5, 0.25, 0.125]
    for top_p, expected in {
        1e-9: [1],
        0.5: [1],
        0.5000001: [1, 2],
        0.75: [1, 2],
        0.7500001: [0, 1, 2],  # of equal ones the lower id comes first
        0.875: [0, 1, 2],
        0.8750001: [0, 1, 2, 3],
        1.0: [0, 1, 2, 3],
    }.items():
        assert kept(shares, top_p=top_p) == expected, top_p


@pytest.mark.parametrize("vocab_size", [1000, 3000, 50_257])
@pytest.mark.parametrize("top_p", [0.001, 0.3, 0.9, 0.999999])
def test_top_p_of_a_flat_wide_vocabulary(vocab_size: int, top_p: float) -> None:
    flat = kept([1 / vocab_size] * vocab_size, top_p=top_p)
    assert flat == list(range(len(flat)))
    assert abs(len(flat) - math.ceil(top_p * vocab_size)) <= 1


def test_min_p_keeps_tokens_above_its_share() -> None:
    shares = [0.1, 0.5, 0.25, 0.15]
    assert kept(shares, min_p=0.0) == [0, 1, 2, 3]
    assert kept(shares, min_p=0.29) == [1, 2, 3]
    assert kept(shares, min_p=0.49) == [1, 2]
    assert kept(shares, min_p=0.51) == [1]
    assert kept([0.4, 0.4, 0.2], min_p=1.0) == [0, 1]


def test_filters_renormalise_in_order() -> None:
    """Top-p looks at what top-k left, made to sum to 1 again; min-p at what top-p left."""
    shares = [0.4, 0.3, 0.2, 0.1]
    assert kept(shares, top_p=0.55) == [0, 1]
    assert kept(shares, top_k=2, top_p=0.55) == [0]  # 0.4 / 0.7 is enough
    assert kept(shares, temperature=0.25, top_p=0.7) == [0]  # after the temperature


def test_penalties_follow_their_formulas() -> None:
    logits = torch.tensor([2.0, -2.0, 1.0, 0.0])

    def changed(**settings: Any) -> list[float]:
        found = probabilities(logits, SamplingSettings(**settings), prompt=[0], written=[1, 1, 2]).log()
        return (found - found[3]).tolist()  # token 3 was neither read nor written

    assert changed(presence_penalty=0.5) == pytest.approx([2, -2.5, 0.5, 0])
    assert changed(frequency_penalty=0.5) == pytest.approx([2, -3, 0.5, 0])
    assert changed(repetition_penalty=2.0) == pytest.approx([1, -4, 0.5, 0])
    assert changed(logit_bias={0: -1, 1: 3}) == pytest.approx([1, 1, 1, 0])
    assert changed(logit_bias={1: 3}, repetition_penalty=2.0) == pytest.approx([1, 0.5, 0.5, 0])
    assert logits.tolist() == [2.0, -2.0, 1.0, 0.0]  # the model's own stay as they are


def test_temperature_zero_takes_the_largest_penalised() -> None:
    logits = torch.tensor([1.0, 3.0, 3.0, 2.9])
    cold = SamplingSettings(temperature=0)
    assert sample(logits, cold, Always(0.999)) == 1
    assert probabilities(logits, cold).tolist() == [0, 1, 0, 0]
    biased = SamplingSettings(temperature=0, logit_bias={3: 0.2}, presence_penalty=1)
    assert sample(logits, biased, Always(0.5)) == 3
    assert sample(logits, biased, Always(0.5), written=[3]) == 1
    assert probabilities(logits, biased, written=[3, 1]).tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("temperature", [1e-6, 1e-300, 5e-324])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e30])
def test_a_tiny_temperature_is_nearly_zero(temperature: float, scale: float) -> None:
    logits = torch.tensor([1.0, 3.0, 3.0, 2.9]) * scale
    found = probabilities(logits, SamplingSettings(temperature=temperature, top_p=0.9, min_p=0.1, top_k=3))
    assert found.tolist() == [0, 0.5, 0.5, 0]


def test_a_huge_temperature_is_nearly_uniform() -> None:
    found = probabilities(torch.tensor([1.0, 3.0, -2.0, 0.0]), SamplingSettings(temperature=100))
    assert float((found - 0.25).abs().max()) < 0.01


def test_draws_have_the_right_frequencies() -> None:
    """The inverse of the cumulative sum on a grid of uniform numbers: every token its share, to within one draw."""
    logits = torch.tensor([0.3, -1.0, 2.0, 0.0, -torch.inf, 1.5])
    settings = SamplingSettings(temperature=0.8, top_p=0.97)
    shares = probabilities(logits, settings).tolist()
    n = 2000
    counts = Counter(sample(logits, settings, Always((i + 0.5) / n)) for i in range(n))
    for token_id, share in enumerate(shares):
        assert abs(counts[token_id] - share * n) <= 1
    assert shares[4] == 0 and counts[4] == 0


@pytest.mark.parametrize("logits", [[0.0, -60.0, -torch.inf], [-torch.inf, 0.0, -40.0], [0.1] * 7, [5.0]])
def test_the_extreme_draws_hit_possible_tokens(logits: list[float]) -> None:
    values = torch.tensor(logits)
    shares = probabilities(values, SamplingSettings())
    for drawn in (0.0, 5e-324, 0.5, 1 - 2**-53):
        assert shares[sample(values, SamplingSettings(), Always(drawn))] > 0
    assert sample(values, SamplingSettings(), Always(0.0)) == int((shares > 0).nonzero()[0])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0, 0.7, 1.0])
def test_nan_logits_are_refused(bad: float, temperature: float) -> None:
    """Never an id beyond the vocabulary, which a search among NaN would give."""
    for settings in (SamplingSettings(temperature=temperature), SamplingSettings(temperature=temperature, top_p=0.9)):
        with pytest.raises(FloatingPointError, match="logits contain NaN or infinity"):
            sample(torch.tensor([0.0, bad, 1.0]), settings, Always(0.5))


def test_one_uniform_number_a_token() -> None:
    """This makes a choice's text depend on its own generator only."""
    generator, twin = random.Random(5), random.Random(5)
    logits: Tensor = torch.tensor([0.0, 1.0, 2.0])
    for _ in range(10):
        sample(logits, SamplingSettings(top_k=2, min_p=0.1), generator)
        twin.random()
    assert generator.getstate() == twin.getstate()


def test_generator_is_seeded_per_choice() -> None:
    first = random_generator(1).random()
    assert first == random_generator(1, 0, 0).random() == 0.563966871680517
    others = [random_generator(*key).random() for key in [(2,), (1, 1), (1, 0, 1), (-1,), (0,), (11,), (1, 11)]]
    assert len({first, *others}) == 8


NUMBERS = [math.nan, math.inf, -math.inf, True, False, "1", None, [1], 1j, 10**400]
BAD = {
    "temperature": [-0.1, 100.1, *NUMBERS],
    "top_k": [-1, MAX_TOP_K + 1, 1.0, math.nan, math.inf, True, "1", [1]],
    "top_p": [0, -0.1, 1.1, *NUMBERS],
    "min_p": [-0.1, 1.1, *NUMBERS],
    "presence_penalty": [-2.1, 2.1, *NUMBERS],
    "frequency_penalty": [-2.1, 2.1, *NUMBERS],
    "repetition_penalty": [0, -1, 100.1, *NUMBERS],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_bad_settings_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be .* found "):
        SamplingSettings(**{name: value})


@pytest.mark.parametrize(
    ("bias", "named"),
    [({"1": 1}, "'1'"), ({-1: 1}, "-1"), ({True: 1}, "true"), ({1.0: 1}, "1.0"), ({None: 1}, "null")]
    + [({3: value}, "{3: ") for value in (100.1, -101, *NUMBERS)],
)
def test_bad_logit_bias_is_refused(bias: dict[Any, Any], named: str) -> None:
    with pytest.raises(ValueError, match="logit_bias") as caught:
        SamplingSettings(logit_bias=bias)
    assert named in str(caught.value)


def test_values_at_the_limits_are_allowed() -> None:
    SamplingSettings(temperature=0, top_k=1, top_p=1, min_p=1, presence_penalty=-2, frequency_penalty=2)
    SamplingSettings(temperature=100, top_p=5e-324, repetition_penalty=100, logit_bias={0: -100, 1: 100})
