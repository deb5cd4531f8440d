"""What a run that is watched measures, against plain computations of the same."""

import itertools
import math
from collections import Counter

import pytest
import torch

from helpers.models import ALPHABET, tiny_model
from helpers.training import TRAINING_TEXT
from model.tokenizer import CharTokenizer
from model.train.live.baselines import SMOOTHING, bigram_loss, uniform_loss
from model.train.live.trainer import MAX_SENTENCE, sentence_of, spread_windows
from model.train.live.writing import write_text


def test_the_bigram_loss_is_that_of_counted_pairs() -> None:
    tokenizer = CharTokenizer.train(TRAINING_TEXT + "!")  # "!" is never seen
    train, held_out = TRAINING_TEXT[:2_000], TRAINING_TEXT[2_000:2_300] + "!t"
    pairs, firsts = Counter(itertools.pairwise(train)), Counter(train[:-1])
    V = tokenizer.vocab_size
    expected = 0.0
    for pair in itertools.pairwise(held_out):
        expected -= math.log((pairs[pair] + SMOOTHING) / (firsts[pair[0]] + SMOOTHING * V))
    ids = [torch.tensor(tokenizer.encode(text), dtype=torch.int32) for text in (train, held_out)]
    assert bigram_loss(*ids, V) == pytest.approx(expected / (len(held_out) - 1), rel=1e-9)
    assert uniform_loss(V) == math.log(V)


@pytest.mark.parametrize(("n_tokens", "count"), [(2, 1), (16, 1), (17, 1), (100, 6), (100_000, 64)])
def test_watched_windows_lie_evenly_in_the_text(n_tokens: int, count: int) -> None:
    inputs, targets = spread_windows(torch.arange(n_tokens), 16)
    assert len(inputs) == count and torch.equal(inputs + 1, targets)
    assert inputs[0, 0] == 0 and (count == 1 or targets[-1, -1] == n_tokens - 1)
    gaps = inputs[1:, 0] - inputs[:-1, 0]
    assert count == 1 or int(gaps.max() - gaps.min()) <= 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("of it.\n\nA short one\nThis line is long enough to be shown.\n", "This line is long enough to be shown."),
        ("x\n" + "word " * 30, "word " * 8 + "word"),
        ("n" * 100, "n" * MAX_SENTENCE),
        ("a\nb\nc\n", "a\nb\nc\n"),
    ],
)
def test_the_sentence_is_a_whole_line_or_whole_words(text: str, sentence: str) -> None:
    assert sentence_of(text) == sentence


def test_a_model_writes_as_much_as_it_is_asked_for() -> None:
    loaded = tiny_model(tokenizer=CharTokenizer.train(ALPHABET), context_length=32)
    told: list[tuple[int, str]] = []
    text = write_text(loaded, 3_000, seed=1, report=lambda *now: told.append(now))
    assert 3_000 <= len(text) < 3_000 + 64 * 33 and set(text) <= {*ALPHABET, "\n"}
    counts = [n for n, _ in told]
    assert counts == sorted(counts) and len(counts) == 4
    assert write_text(loaded, 3_000, seed=1, report=lambda *_: None) == text
    assert write_text(loaded, 3_000, seed=2, report=lambda *_: None) != text
