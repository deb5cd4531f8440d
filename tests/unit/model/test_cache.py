"""Reading with the cache equals reading without it; the cache is made once and never grows."""

import pytest
import torch

from helpers.models import batch, max_difference, tiny_config, tiny_gpt
from model.gpt import GPT
from model.modules.cache import KVCache


@pytest.fixture(scope="module")
def gpt() -> GPT:
    return tiny_gpt(n_layer=3, n_embd=12, n_head=3)


@pytest.mark.parametrize("chunks", [[1] * 20, [20], [7, 13], [5, 1, 2, 8, 4], [19, 1]])
def test_cached_logits_equal_uncached(chunks: list[int], gpt: GPT) -> None:
    ids = batch(2, 20)
    expected = gpt(ids).logits
    cache = KVCache(gpt.config, capacity=20, batch_size=2)
    found = torch.cat([gpt(chunk, cache=cache).logits for chunk in ids.split(chunks, dim=1)], dim=1)
    assert max_difference(found, expected) <= 1e-5
    assert cache.length == 20


def test_cached_attention_equals_uncached(gpt: GPT) -> None:
    ids = batch(2, 12)
    expected = gpt(ids, record=range(3)).attention
    cache = KVCache(gpt.config, batch_size=2)
    for start, end in ((0, 6), (6, 7), (7, 12)):
        found = gpt(ids[:, start:end], cache=cache, record=(0, 2)).attention
        assert set(found) == {0, 2}
        for layer, weights in found.items():
            assert max_difference(weights, expected[layer][:, :, start:end, :end]) <= 1e-5


def test_only_the_last_logits_are_computed(gpt: GPT) -> None:
    ids = batch(2, 9)
    assert max_difference(gpt(ids, last_only=True).logits, gpt(ids).logits[:, -1:]) <= 1e-5


def test_cache_is_preallocated(gpt: GPT) -> None:
    """The same memory from the first token to the last, and views of it, not copies, for attention."""
    cache = KVCache(gpt.config)
    places = cache.keys.data_ptr(), cache.values.data_ptr()
    shape = (3, 1, 3, 32, 4)
    for token in batch(1, 32).split(1, dim=1):
        gpt(token, cache=cache)
        assert (cache.keys.data_ptr(), cache.values.data_ptr()) == places
        assert cache.keys.shape == cache.values.shape == shape
    assert cache.length == cache.capacity == 32
    key = torch.zeros(1, 3, 2, 4)
    fresh = KVCache(gpt.config)
    keys, values = fresh.write(1, key, key)
    assert keys.data_ptr() == fresh.keys[1].data_ptr() and values.data_ptr() == fresh.values[1].data_ptr()


def test_write_counts_only_on_advance() -> None:
    cache = KVCache(tiny_config(), capacity=4)
    key = torch.ones(1, 2, 3, 8)
    assert cache.write(0, key, key)[0].shape == (1, 2, 3, 8)
    assert cache.write(1, key, key * 2)[1].shape == (1, 2, 3, 8)
    assert cache.length == 0
    cache.advance(3)
    keys, values = cache.write(0, key[:, :, :1] * 5, key[:, :, :1] * 6)
    assert keys[0, 0, :, 0].tolist() == [1, 1, 1, 5]
    assert values[0, 0, :, 0].tolist() == [1, 1, 1, 6]


@pytest.mark.parametrize("capacity", [0, -1, 33, 10**9])
def test_capacity_outside_the_context_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=f"capacity must be from 1 to 32, found {capacity}"):
        KVCache(tiny_config(), capacity=capacity)


@pytest.mark.parametrize(("filled", "more"), [(4, 1), (3, 2), (0, 5), (4, 4)])
def test_writing_beyond_the_capacity_is_refused(filled: int, more: int, gpt: GPT) -> None:
    """One token beyond a full cache is the dangerous case: torch would broadcast it into an empty slice."""
    cache = KVCache(gpt.config, capacity=4)
    if filled:
        gpt(batch(1, filled), cache=cache)
    with pytest.raises(ValueError, match=f"{filled + more} positions do not fit into a cache of capacity 4"):
        gpt(batch(1, more), cache=cache)
    assert cache.length == filled


def test_cache_ends_at_the_context_length(gpt: GPT) -> None:
    with pytest.raises(ValueError, match="33 tokens do not fit into a context_length of 32"):
        gpt(batch(1, 33))
    cache = KVCache(gpt.config)
    gpt(batch(1, 32), cache=cache)
    with pytest.raises(ValueError, match="33 tokens do not fit"):
        gpt(batch(1, 1), cache=cache)


def test_precision_and_owners_are_separate(gpt: GPT) -> None:
    """Two requests on one model, with alternating steps, do not affect each other."""
    assert KVCache(gpt.config, dtype=torch.bfloat16).keys.dtype == torch.bfloat16
    ids = batch(2, 10)
    caches = [KVCache(gpt.config), KVCache(gpt.config)]
    expected = gpt(ids).logits
    for position in range(10):
        for row, cache in enumerate(caches):
            found = gpt(ids[row : row + 1, position : position + 1], cache=cache).logits
            assert max_difference(found[0, 0], expected[row, position]) <= 1e-5
