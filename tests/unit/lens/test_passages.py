"""Where heads fire: strongest queries, histograms and shared patterns, compared with a search through full traces."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from helpers.models import max_difference, prompt_ids, tiny_bpe, tiny_model
from model import LoadedModel
from model.drawing.metrics import METRICS, metric_sums
from model.lens import passages as module
from model.lens.passages import (
    FIRING_MEASURES,
    MIN_DISTANCE,
    N_BINS,
    N_PASSAGES,
    PATTERNS,
    bin_edges,
    bin_indices,
    firing,
    head_map,
    mark_tokens,
    pattern_counts,
    patterns,
    windows,
)
from model.tokenizer import CharTokenizer


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model(n_layer=3, n_embd=24, n_head=4, context_length=48)


def test_every_token_is_a_new_query_once() -> None:
    for n_tokens, context in ((1, 48), (48, 48), (49, 48), (1000, 48), (1000, 256), (700, 1024), (5, 1), (9, 2)):
        found = list(windows(n_tokens, context))
        assert [q for w in found for q in range(w.first, w.stop)] == list(range(n_tokens))
        size = min(context, 256)
        assert all(w.stop - w.start <= size and 0 <= w.start <= w.first for w in found)
        assert all(w.first - w.start >= min(size // 4, w.first) for w in found)


def by_hand(loaded: LoadedModel, ids: list[int]) -> dict[str, Any]:
    """The value of every query by measure, and the key with its largest weight, not counting the first token."""
    n = len(ids)
    values = {measure: torch.zeros(3, 4, n) for measure in FIRING_MEASURES}
    keys = torch.zeros(3, 4, n, dtype=torch.long)
    for window in windows(n, loaded.config.context_length):
        part = ids[window.start : window.stop]
        contexts = [x[0].flatten(1) for x in loaded.run(part, names="z").cache.values()]
        attention = loaded.trace(part).attention
        for query in range(window.first, window.stop):
            row = attention[..., query - window.start, :]
            for layer in range(3):
                for head in range(4):
                    d = slice(6 * head, 6 * head + 6)
                    output = loaded.gpt.h[layer].attn.c_proj.weight[:, d] @ contexts[layer][query - window.start, d]
                    values["norm"][layer, head, query] = output.norm()
                    if query > window.start:
                        best = int(row[layer, head, 1:].argmax()) + 1
                        values["weight"][layer, head, query] = row[layer, head, best]
                        keys[layer, head, query] = window.start + best
    return {"values": values, "keys": keys}


@pytest.mark.parametrize("n", [1, 2, 40, 200])
def test_firing_by_hand(tiny: LoadedModel, n: int) -> None:
    ids, fractions = prompt_ids(n), list[float]()
    marks = mark_tokens(tiny.tokenizer, ids)
    found = firing(tiny.gpt, marks, progress=fractions.append)
    expected = by_hand(tiny, ids)
    for measure in FIRING_MEASURES:
        strongest, values = found.strongest[measure], expected["values"][measure]
        counts = torch.nn.functional.one_hot(bin_indices(measure, values), N_BINS).sum(2)
        # A value on the edge of a bin may fall to either side.
        assert (strongest.histogram - counts).abs().sum() <= 4 and strongest.histogram.sum() == 12 * n
        assert (strongest.value.diff(dim=-1) <= 0).all()
        for layer in range(3):
            for head in range(4):
                blocks = [
                    (float(values[layer, head, start : start + MIN_DISTANCE].clone()[: window.stop - start].max()))
                    for window in windows(n, 48)
                    for start in range(window.first, window.stop, MIN_DISTANCE)
                ]
                best = sorted(blocks, reverse=True)[:N_PASSAGES]
                shown = strongest.value[layer, head].tolist()
                assert shown[: len(best)] == pytest.approx(best, abs=1e-5) and not any(shown[len(best) :])
                for i in range(len(best)):
                    query, key = int(strongest.query[layer, head, i]), int(strongest.key[layer, head, i])
                    assert float(values[layer, head, query]) == pytest.approx(shown[i], abs=1e-5)
                    if expected["values"]["weight"][layer, head, query]:
                        assert key == int(expected["keys"][layer, head, query])
    assert fractions == sorted(fractions) and fractions[-1] == 1


def test_what_passages_share_and_what_all_queries_do(tiny: LoadedModel) -> None:
    ids = prompt_ids(100)
    marks = mark_tokens(tiny.tokenizer, ids)
    found = firing(tiny.gpt, marks)
    keys = by_hand(tiny, ids)["keys"]
    shares = torch.zeros(3, 4, len(PATTERNS))
    for query in range(100):
        shares += patterns(marks, torch.full((3, 4), query), keys[..., query]) / 100
    assert max_difference(found.everywhere, shares) < 1e-5
    counts = pattern_counts(found.strongest["weight"], marks)
    strongest = found.strongest["weight"]
    places = zip(strongest.value[1, 2], strongest.query[1, 2], strongest.key[1, 2], strict=True)
    has = [patterns(marks, query, key).long() for value, query, key in places if value > 0]
    assert 0 < len(has) <= N_PASSAGES and torch.equal(counts[1, 2], torch.stack(has).sum(0))


def test_metrics_are_those_of_a_recording(tiny: LoadedModel) -> None:
    ids = prompt_ids(30)
    found = firing(tiny.gpt, mark_tokens(tiny.tokenizer, ids))
    attention = tiny.trace(ids).attention
    expected = torch.stack([metric_sums(layer, 0) for layer in attention]) / 29
    assert found.metrics.shape == (3, 4, len(METRICS)) and max_difference(found.metrics, expected) < 1e-5


def test_memory_does_not_grow_with_the_text(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []
    read = module.read_window
    monkeypatch.setattr(module, "read_window", lambda gpt, ids: lengths.append(len(ids)) or read(gpt, ids))
    found = firing(tiny.gpt, mark_tokens(tiny.tokenizer, prompt_ids(500)))
    assert max(lengths) == 48
    assert found.strongest["norm"].value.shape == (3, 4, N_PASSAGES)


def test_bins_of_the_histogram() -> None:
    for measure in FIRING_MEASURES:
        bounds = bin_edges(measure)
        assert len(bounds) == N_BINS + 1 and bounds == sorted(bounds)
        middles = torch.tensor([(low * high) ** 0.5 or high / 2 for low, high in pairwise(bounds)])
        assert bin_indices(measure, middles).tolist() == list(range(N_BINS))
    assert bin_indices("norm", torch.tensor([0.0, 1e9])).tolist() == [0, N_BINS - 1]
    assert bin_indices("weight", torch.tensor([0.0, 1.0])).tolist() == [0, N_BINS - 1]


# ---- What there is to say about a query and its key ------------------------------------------------------------------

TEXT = 'Tom ran.\n"Hi, Tom!" said a big dog.'


def pattern(name: str, tokenizer: Any, query: int, key: int) -> bool:
    marks = mark_tokens(tokenizer, tokenizer.encode(TEXT))
    return bool(patterns(marks, torch.tensor(query), torch.tensor(key))[PATTERNS.index(name)])


@pytest.mark.parametrize(
    ("name", "query", "key", "expected"),
    [
        ("itself", 3, 3, True),
        ("previous_token", 4, 3, True),
        ("previous_token", 4, 2, False),
        ("same_token", TEXT.index("o", 5), 1, True),  # the o of the second "Tom"
        ("same_token", 1, 1, False),
        ("after_same_token", TEXT.rindex("T"), 1, True),  # after the first T comes "o"
        ("after_same_token", TEXT.rindex("T"), 2, False),
        ("same_word", 2, 0, True),
        ("same_word", 4, 0, False),
        ("previous_word", 5, 0, True),
        ("previous_word", 9, 5, True),  # across the line break
        ("previous_word", TEXT.index("said"), TEXT.index("Hi"), False),  # two words back
        ("previous_word", 3, 0, False),  # white space is in no word
        ("line_start", 12, 9, True),
        ("line_start", 12, 0, True),
        ("line_start", 12, 1, False),
        ("line_break", 12, 8, True),
        ("quote", 12, 9, True),
        ("capital", 12, 10, True),
        ("capital", 12, 11, False),
        ("punctuation", 12, 7, True),
        ("punctuation", 12, 9, True),
        ("punctuation", 12, 8, False),
        ("from_line_start", 9, 0, True),
        ("from_line_start", 10, 0, False),
    ],
)
def test_patterns_of_characters(name: str, query: int, key: int, expected: bool) -> None:
    assert pattern(name, CharTokenizer.train(TEXT), query, key) is expected


def test_words_of_a_byte_level_vocabulary() -> None:
    tokenizer = tiny_bpe()
    ids = tokenizer.encode(TEXT)
    marks = mark_tokens(tokenizer, ids)
    words: dict[int, str] = {}
    for token_id, word in zip(ids, marks.word.tolist(), strict=True):
        words[word] = words.get(word, "") + tokenizer.decode([token_id])
    assert [word.strip() for word in words.values()] == TEXT.split()


def test_a_map_is_the_principal_components() -> None:
    features = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 9, 0.1, 3, 1, 0])
    found = head_map(features)
    rows = features.double().reshape(12, 6).numpy()
    rows = (rows - rows.mean(0)) / np.where(rows.std(0) > 0, rows.std(0), 1)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    assert found.explained.tolist() == pytest.approx((values[::-1] / values.sum())[:2].tolist(), abs=1e-5)
    for axis, (points, loadings) in enumerate(zip(found.points.reshape(12, 2).T, found.axes, strict=True)):
        expected = vectors[:, -1 - axis] * np.sign(np.dot(vectors[:, -1 - axis], loadings.double().numpy()))
        assert loadings.tolist() == pytest.approx(expected.tolist(), abs=1e-5)
        assert points.tolist() == pytest.approx((rows @ expected).tolist(), abs=1e-4)
        assert loadings[loadings.abs().argmax()] > 0


def test_heads_that_are_all_alike_are_one_point() -> None:
    assert head_map(torch.ones(2, 3, 4)).points.abs().max() == 0
    assert head_map(torch.rand(1, 1, 4)).points.abs().max() == 0
    alike = torch.rand(2, 3, 1, generator=torch.Generator().manual_seed(1))
    assert head_map(alike).points[..., 1].abs().max() == 0  # one feature makes a line
    assert head_map(alike).explained.tolist() == [1, 0]
