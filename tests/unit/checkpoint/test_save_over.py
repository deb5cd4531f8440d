"""Saving over a checkpoint: a reader sees the old one or the new one, never half of one or a mix of both."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import model
from helpers.models import ALPHABET, same_model, tiny_model
from model import LoadedModel
from model.checkpoint import source as checkpoint
from model.checkpoint import write
from model.tokenizer import CharTokenizer

FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
REVERSED = CharTokenizer({character: i for i, character in enumerate(sorted(ALPHABET, reverse=True))})

NEW_MODELS: dict[str, Callable[[], LoadedModel]] = {
    "same config and vocabulary": lambda: tiny_model(seed=1),
    "another vocabulary": lambda: tiny_model(seed=1, tokenizer=REVERSED),
    "another config": lambda: tiny_model(seed=1, n_layer=1),
    "another end token": lambda: tiny_model(seed=1, eos_token_id=3),
}


@pytest.mark.parametrize("kind", NEW_MODELS)
def test_overwriting_replaces_the_checkpoint(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    tiny_model().save(folder)
    (folder / "README.md").write_text("a card")
    NEW_MODELS[kind]().save(folder)
    assert same_model(model.load(folder, device="cpu"), NEW_MODELS[kind]())
    assert (folder / "README.md").read_text() == "a card"
    assert {path.name for path in folder.iterdir()} == FILES | {"README.md"}
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize("kind", NEW_MODELS)
def test_snapshots_stay_with_their_vocabulary(kind: str, tmp_path: Path) -> None:
    folder, old = tmp_path / "saved", tiny_model()
    old.save(folder)
    write.write_snapshot(folder, 7, old.config, old.gpt.state_dict())
    assert model.load(f"{folder}@000007").config == old.config
    NEW_MODELS[kind]().save(folder)
    if kind == "same config and vocabulary":
        assert model.load(f"{folder}@000007").config == old.config
    else:
        with pytest.raises(model.CheckpointError, match="no file"):
            model.load(f"{folder}@000007")


def test_overwriting_a_sharded_folder(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    for new in (tiny_model(seed=1), tiny_model(seed=1, tokenizer=REVERSED)):
        tiny_model().save(folder)
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-1.safetensors"}}')
        assert same_model(model.load(folder, device="cpu"), tiny_model())
        new.save(folder)
        assert same_model(model.load(folder, device="cpu"), new)
        assert not (folder / "model.safetensors.index.json").exists()


def test_overwriting_a_damaged_folder(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    tiny_model().save(folder)
    (folder / "config.json").write_bytes(b"\xff\xfe")
    (folder / "model.safetensors").write_bytes(b"")
    tiny_model(seed=1).save(folder)
    assert same_model(model.load(folder, device="cpu"), tiny_model(seed=1))


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk" / "saved"
    elsewhere.parent.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    for loaded in NEW_MODELS.values():
        loaded().save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert same_model(model.load(elsewhere, device="cpu"), loaded())
    assert [path.name for path in elsewhere.parent.iterdir()] == ["saved"]


class Breakdown(Exception):
    """The simulated failure."""


def breaking(function: Callable[..., Any], at: int) -> Callable[..., Any]:
    """``function``, which raises at its call number ``at`` and works before and after."""
    calls = 0

    def broken(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise Breakdown
        return function(*args, **options)

    return broken


@pytest.mark.parametrize("kind", NEW_MODELS)
@pytest.mark.parametrize("place", ["save_file", "sync", "write_text", "replace"])
def test_failure_at_any_step_keeps_the_old_checkpoint(
    kind: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old checkpoint still loads, nothing else is left behind, and the next attempt succeeds."""
    folder, failures = tmp_path / "saved", 0
    tiny_model().save(folder)
    write.write_snapshot(folder, 7, tiny_model().config, tiny_model().gpt.state_dict())
    os.unlink(folder / "tokenizer_config.json")  # a file that the new checkpoint has and the old one had not
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    target: Any = write if place in ("save_file", "sync") else Path
    for at in range(1, 20):
        with monkeypatch.context() as patch:
            patch.setattr(target, place, breaking(getattr(target, place), at))
            try:
                NEW_MODELS[kind]().save(folder)
                break
            except Breakdown:
                failures += 1
        assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
        assert [path.name for path in tmp_path.iterdir()] == ["saved"]
        assert same_model(model.load(folder, device="cpu"), tiny_model())
    assert failures >= 1
    assert same_model(model.load(folder, device="cpu"), NEW_MODELS[kind]())


@pytest.mark.parametrize("place", ["save_file", "rename"])
def test_failure_in_a_new_folder_leaves_nothing(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        target: Any = write if place == "save_file" else Path
        patch.setattr(target, place, breaking(getattr(target, place), 1))
        with pytest.raises(Breakdown):
            tiny_model().save(tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", NEW_MODELS)
def test_concurrent_reader_sees_old_or_new(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two renames a reader gets a whole checkpoint or a CheckpointError, never half of each."""
    folder, seen = tmp_path / "saved", []
    old, new = tiny_model(), NEW_MODELS[kind]()
    old.save(folder)
    replace = Path.replace

    def watched(path: Path, target: Path) -> Path:
        result = replace(path, target)
        try:
            found = model.load(folder, device="cpu")
        except model.CheckpointError:
            seen.append("none")
        else:
            assert same_model(found, old) or same_model(found, new)
            seen.append("new" if same_model(found, new) else "old")
        return result

    monkeypatch.setattr(Path, "replace", watched)
    new.save(folder)
    assert seen[-1] == "new"
    assert "none" not in seen or kind != "same config and vocabulary"


@pytest.mark.parametrize("moment", ["read_tokenizer", "weight_files", "read_weights", "file_hash"])
@pytest.mark.parametrize("kind", NEW_MODELS)
def test_concurrent_writer_does_not_disturb_a_reader(
    kind: str, moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is overwritten while it is read: the reader gets a whole checkpoint or a CheckpointError."""
    folder = tmp_path / "saved"
    old, new = tiny_model(), NEW_MODELS[kind]()
    old.save(folder)
    function = getattr(checkpoint, moment)

    def interrupted(*args: Any) -> Any:
        new.save(folder)
        return function(*args)

    monkeypatch.setattr(checkpoint, moment, interrupted)
    try:
        found = model.load(folder, device="cpu")
    except model.CheckpointError as error:
        assert kind != "same config and vocabulary", error
    else:
        assert same_model(found, old) or same_model(found, new)
