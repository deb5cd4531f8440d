"""Snapshots of a training: forgetting a model does not wait for one that is being loaded, and hashes find them."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from helpers.models import tiny_model
from model import LoadedModel
from web.serving import snapshots as module
from web.serving.served_models import NotServed, ServedModels
from web.serving.snapshots import Snapshots
from web.settings import Settings


def test_a_model_is_forgotten_while_a_snapshot_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = threading.Event(), threading.Event()
    released: list[LoadedModel] = []
    snapshots = Snapshots(ServedModels(Settings(checkpoints=("trained",))), released.append)
    monkeypatch.setattr(snapshots, "steps", lambda _: [10, 20])
    monkeypatch.setattr(module.model, "load", lambda *_, **__: tiny_model())
    kept = snapshots.get("trained", 10)

    def load(*_: Any, **__: Any) -> LoadedModel:
        started.set()
        assert go_on.wait(30)
        return tiny_model()

    monkeypatch.setattr(module.model, "load", load)
    with ThreadPoolExecutor(2) as pool:
        try:
            loading = pool.submit(snapshots.get, "trained", 20)
            assert started.wait(30)
            pool.submit(snapshots.forget, "trained").result(30)
        finally:
            go_on.set()
        assert loading.result(30).name == "trained@20"
    assert not snapshots.cache.entries and released == [kept]


def test_snapshots_are_found_by_hashes_and_their_beginnings(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = Snapshots(ServedModels(Settings(checkpoints=("trained",))))
    monkeypatch.setattr(snapshots, "steps", lambda name: [10] if name == "trained" else [])
    monkeypatch.setattr(module.model, "load", lambda *_, **__: replace(tiny_model(), sha256="a" * 64))
    for sha256, name in (("a" * 64, ""), ("a" * 64, "trained"), ("a" * 15, "trained@10"), ("b" * 16, "trained@10")):
        with pytest.raises(NotServed):  # none was loaded, or none of that name has the hash
            snapshots.with_hash(sha256, name)
    assert snapshots.with_hash("a" * 16, "trained@10").name == "trained@10"
    assert snapshots.with_hash("a" * 64) is snapshots.with_hash("a" * 16)
    for sha256 in ("", "a" * 15):
        with pytest.raises(NotServed):
            snapshots.with_hash(sha256)
    snapshots.served.private.names.add("trained")  # another visitor's
    with pytest.raises(NotServed):
        snapshots.with_hash("a" * 64)
