"""The cache that everything kept in memory uses."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from web.serving.bounded_cache import BoundedCache

SECONDS = 30


def test_the_least_recently_used_is_evicted_and_never_the_newest() -> None:
    evicted: list[str] = []
    cache = BoundedCache[str, str](max_bytes=10, size=len, on_evict=evicted.append)
    for key in "abc":
        cache.put(key, 4 * key)
    assert list(cache.entries) == ["b", "c"] and evicted == ["aaaa"] and cache.nbytes == 8
    assert cache.get("b") == "bbbb" and cache.get("a") is None
    cache.put("d", "dddd")
    assert list(cache.entries) == ["b", "d"]
    cache.put("e", 100 * "e")
    assert cache.values() == [100 * "e"]


def test_the_number_of_entries_can_be_bounded_too() -> None:
    cache = BoundedCache[int, int](max_entries=2)
    assert [cache.get_or_compute(i, lambda i=i: i * i) for i in range(4)] == [0, 1, 4, 9]
    assert dict(cache.entries) == {2: 4, 3: 9} and len(cache) == 2


def test_a_protected_value_is_kept_until_it_may_be_evicted() -> None:
    in_use = {"a"}
    cache = BoundedCache[str, str](max_entries=1, can_evict=lambda value: value not in in_use)
    for key in "abc":
        cache.put(key, key)
    assert cache.values() == ["a", "c"]
    in_use.clear()
    cache.trim()
    assert cache.values() == ["c"]


def test_a_value_is_computed_once_without_blocking_other_keys() -> None:
    cache = BoundedCache[str, int](max_entries=8)
    started, go_on, computed = threading.Event(), threading.Event(), []

    def slow() -> int:
        computed.append("slow")
        started.set()
        assert go_on.wait(SECONDS)
        return 1

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(cache.get_or_compute, "slow", slow)
        assert started.wait(SECONDS)
        others = [pool.submit(cache.get_or_compute, "slow", slow) for _ in range(2)]
        assert cache.get_or_compute("quick", lambda: 2) == 2  # in this thread, which must not have to wait
        assert cache.get("slow") is None and not first.done()
        cache.put("another", 3)
        cache.remove(lambda key, _: key == "another")
        go_on.set()
        assert [future.result(SECONDS) for future in (first, *others)] == [1, 1, 1]
    assert computed == ["slow"] and dict(cache.entries) == {"quick": 2, "slow": 1}


def test_a_result_removed_before_it_is_there_is_not_cached() -> None:
    cache = BoundedCache[tuple[str, int], str](max_entries=8)
    started, go_on = threading.Event(), threading.Event()

    def compute() -> str:
        started.set()
        assert go_on.wait(SECONDS)
        return "old"

    cache.put(("gone", 2), "kept until now")
    cache.put(("other", 1), "stays")
    with ThreadPoolExecutor(1) as pool:
        old = pool.submit(cache.get_or_compute, ("gone", 1), compute)
        assert started.wait(SECONDS)
        cache.remove(lambda key, _: key[0] == "gone")
        assert cache.get_or_compute(("gone", 1), lambda: "new") == "new"  # no caller waits for the old one any more
        go_on.set()
        assert old.result(SECONDS) == "old"
    assert dict(cache.entries) == {("other", 1): "stays", ("gone", 1): "new"}


def test_one_that_waits_computes_for_itself_where_the_other_fails() -> None:
    cache = BoundedCache[str, int](max_entries=8)
    started, go_on = threading.Event(), threading.Event()

    def fail() -> int:
        started.set()
        assert go_on.wait(SECONDS)
        raise MemoryError

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get_or_compute, "a", fail)
        assert started.wait(SECONDS)
        second = pool.submit(cache.get_or_compute, "a", lambda: 7)
        go_on.set()
        with pytest.raises(MemoryError):
            first.result(SECONDS)
        assert second.result(SECONDS) == 7
    assert dict(cache.entries) == {"a": 7} and not cache.computations


def test_a_value_that_does_not_suffice_is_computed_again() -> None:
    cache = BoundedCache[str, list[int]](max_entries=8)
    cache.put("a", [1, 2])
    assert cache.get_or_compute("a", lambda: [1, 2, 3], lambda value: len(value) >= 2) == [1, 2]
    assert cache.get_or_compute("a", lambda: [1, 2, 3], lambda value: len(value) >= 3) == [1, 2, 3]
    assert cache.get("a") == [1, 2, 3]
