"""Ask's caches in memory and on disk are bounded, and dropped entries are freed."""

import gc
import os
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from helpers.models import tiny_model
from model import LoadedModel
from model.gpt import GPT
from model.lens.float32 import float32_bytes, in_float32
from web.ask import disk_cache as module
from web.ask.disk_cache import DiskCache
from web.ask.service import AnswerService
from web.prometheus import Metrics
from web.serving.budget import MEGABYTE, NoRoom
from web.settings import Limits


def served(seed: int, dtype: torch.dtype = torch.bfloat16) -> LoadedModel:
    loaded = tiny_model(seed, n_embd=32)
    loaded.gpt, loaded.sha256, loaded.name = loaded.gpt.to(dtype), f"{seed:064}", f"model-{seed}"
    return loaded


def room_for(n_models: int) -> AnswerService:
    """An ``AnswerService`` that may keep copies of this many models."""
    questions = AnswerService(Limits(max_float32_mb=1), Metrics())
    questions.copies.max_bytes = n_models * float32_bytes(served(0).gpt)
    return questions


def test_float32_limit_is_in_megabytes() -> None:
    assert AnswerService(Limits(max_float32_mb=3), Metrics()).copies.max_bytes == 3 * MEGABYTE


def test_float32_copies_are_bounded_with_those_held_by_texts() -> None:
    questions, models = room_for(2), [served(seed) for seed in range(4)]
    copies: list[weakref.ref[GPT]] = []
    for loaded in models:
        questions.text_pass(loaded, (1, 2, 3), None)
        copies.append(weakref.ref(questions.gpt(loaded)))
    assert [copy() is not None for copy in copies] == [False, False, True, True]
    assert questions.copies.nbytes == questions.copies.max_bytes
    assert {key[0] for key in questions.text_passes.entries} == set(questions.copies.kept)  # type: ignore[index]
    assert questions.gpt(models[2]) is copies[2]()  # kept, and from now on the newer one
    questions.gpt(models[0])
    assert copies[2]() is not None and copies[3]() is None


def test_copies_in_use_count_until_they_are_freed() -> None:
    questions, models = room_for(2), [served(seed) for seed in range(3)]
    used = [questions.gpt(loaded) for loaded in models[:2]]
    with pytest.raises(NoRoom):
        questions.gpt(models[2])
    assert questions.copies.nbytes == questions.copies.max_bytes
    assert [questions.gpt(loaded) for loaded in models[:2]] == used  # the same, not another copy
    used.pop()
    questions.gpt(models[2])


def test_dropping_a_model_does_not_wait_for_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    questions, loaded = room_for(2), served(0)
    begun, go_on = threading.Event(), threading.Event()

    def convert(gpt: GPT) -> GPT:
        begun.set()
        assert go_on.wait(30)
        return in_float32(gpt)

    monkeypatch.setattr("web.ask.float32_copies.in_float32", convert)
    with ThreadPoolExecutor(1) as pool:
        copy = pool.submit(questions.gpt, loaded)
        assert begun.wait(30)
        questions.forget(loaded)  # as the event loop does when a visitor's model is forgotten
        go_on.set()
        assert copy.result().wte.weight.dtype == torch.float32
    assert not questions.copies.kept


def test_a_single_copy_may_exceed_the_limit() -> None:
    questions = room_for(0)
    first = weakref.ref(questions.gpt(served(0)))
    second = questions.gpt(served(1))
    assert first() is None and questions.copies.nbytes == float32_bytes(served(1).gpt)
    with pytest.raises(NoRoom):
        questions.gpt(served(2))
    assert second.wte.weight.dtype == torch.float32


def test_float32_models_are_not_copied() -> None:
    questions, loaded = room_for(0), served(0, torch.float32)
    questions.text_pass(loaded, (1, 2, 3), None)
    assert questions.gpt(loaded) is loaded.gpt and not questions.copies.nbytes
    gpt = weakref.ref(loaded.gpt)
    questions.forget(loaded)
    del loaded
    gc.collect()
    assert gpt() is None


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskCache:
    monkeypatch.setattr(module, "MAX_FILES", 3)
    return DiskCache(tmp_path)


def put(cache: DiskCache, name: str, n_bytes: int = 10, age: float = 0.0) -> None:
    cache.put(name, {"x": "y" * n_bytes})
    assert cache.folder is not None
    path = cache.folder / f"{name}.json"
    if path.exists():
        at = time.time() - age
        os.utime(path, (at, at))


def names(folder: Path) -> set[str]:
    return {path.name.removesuffix(".json") for path in folder.iterdir()}


def test_least_recently_used_files_are_removed(cache: DiskCache, tmp_path: Path) -> None:
    for i, name in enumerate(("roles-a", "roles-b", "roles-c")):
        put(cache, name, age=100 - i)
    assert cache.get("roles-a") is not None
    put(cache, "roles-d")
    assert names(tmp_path) == {"roles-a", "roles-c", "roles-d"}


def test_cached_bytes_are_bounded_and_the_newest_file_stays(
    cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ALL_BYTES", 250)
    put(cache, "roles-a", 100, age=100)
    put(cache, "roles-b", 100, age=50)
    put(cache, "roles-c", 100)
    assert names(tmp_path) == {"roles-b", "roles-c"}
    put(cache, "roles-d", 1_000)
    assert names(tmp_path) == {"roles-d"}


def test_foreign_files_are_not_removed(cache: DiskCache, tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "notes.json").write_text("{}")
    half, new = tmp_path / ".roles-x-half", tmp_path / ".roles-y-half"
    for path in (half, new):
        path.write_text("")
    at = time.time() - 2 * module.LEFT_SECONDS
    os.utime(half, (at, at))
    for i in range(5):
        put(cache, f"roles-{i}", age=100 - i)
    assert names(tmp_path) == {"kernels", "notes", new.name, "roles-2", "roles-3", "roles-4"}
