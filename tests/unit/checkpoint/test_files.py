"""Which files of a checkpoint are opened: regular ones inside its folder, or in the Hub cache that it belongs to."""

import os
import re
import shutil
from pathlib import Path

import pytest
import torch

import model
from helpers.files import refused
from helpers.models import tiny_bpe, tiny_model
from model.checkpoint.files import open_file
from model.train.state import is_finished
from web.page.model_list import about
from web.publish import CannotPublish, files_of

OUT = "found a link that leads out of the checkpoint"
TOO_LONG = "a" * 256  # a name that no file can have
FILES = ["config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json"]


def lead_out(path: Path) -> None:
    """Replace a file with a link to it in another place."""
    outside = path.parent.parent / f"outside-{path.name}"
    path.replace(outside)
    path.symlink_to(outside)


@pytest.mark.parametrize("name", FILES)
def test_links_out_of_the_folder_are_refused(folder: Path, name: str) -> None:
    lead_out(folder / name)
    refused(folder, name, OUT)


def test_a_chat_template_is_not_read_from_elsewhere(folder: Path) -> None:
    (folder / "chat_template.jinja").symlink_to("/proc/self/environ")
    refused(folder, "chat_template.jinja", OUT)


def test_shards_and_their_index_are_not_read_from_elsewhere(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"transformer.wte.weight": "one.safetensors"}}')
    model.load(folder)
    lead_out(index)
    refused(folder, index.name, OUT)
    index.unlink()
    index.write_text('{"weight_map": {"transformer.wte.weight": "one.safetensors"}}')
    lead_out(folder / "one.safetensors")
    refused(folder, "one.safetensors", OUT)


def test_the_pair_of_vocabulary_files_is_not_read_from_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    tokenizer = tiny_bpe()
    tiny_model(tokenizer=tokenizer).save(folder)
    spec = tokenizer.spec["model"]
    (folder / "tokenizer.json").unlink()
    import json

    (folder / "vocab.json").write_text(json.dumps(spec["vocab"] | tokenizer.special_tokens))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in spec["merges"]]
    (folder / "merges.txt").write_text("\n".join(merges))
    model.load(folder)
    for name in ("vocab.json", "merges.txt"):
        shutil.copytree(folder, tmp_path / name, symlinks=True)
        lead_out(tmp_path / name / name)
        refused(tmp_path / name, name, OUT)


def test_a_step_is_read_only_from_inside_the_folder(folder: Path) -> None:
    (folder / "steps").mkdir()
    (folder / "steps" / "000010.safetensors").symlink_to("../model.safetensors")  # a link that stays inside
    loaded = model.load(f"{folder}@000010")
    assert torch.equal(loaded.gpt.wte.weight, model.load(folder).gpt.wte.weight)
    (folder / "steps" / "000010.safetensors").unlink()
    shutil.copy(folder / "model.safetensors", folder.parent / "other.safetensors")
    (folder / "steps" / "000010.safetensors").symlink_to("../../other.safetensors")
    with pytest.raises(model.CheckpointError, match="000010.safetensors: " + OUT):
        model.load(f"{folder}@000010")


def test_a_folder_may_itself_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(folder)
    model.load(tmp_path / "linked")


def test_a_snapshot_in_the_cache_of_the_hub(folder: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--user--tiny" / "snapshots" / "0123abcd"
    blobs = snapshot.parent.parent / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, name in enumerate(FILES):
        shutil.copy(folder / name, blobs / str(number))
        (snapshot / name).symlink_to(f"../../blobs/{number}")
    model.load(snapshot)
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to(folder / "config.json")
    refused(snapshot, "config.json", OUT)
    # A folder that only looks like the cache gets no other folder's blobs.
    snapshot.parent.parent.rename(tmp_path / "user")
    refused(tmp_path / "user" / "snapshots" / "0123abcd", "config.json", OUT)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_named_pipes_are_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(model.CheckpointError, match=re.escape(name)):
        model.load(folder)
    with pytest.raises(model.CheckpointError, match="found a pipe or a device"):
        open_file(folder / name, "a file")


def test_folders_and_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(model.CheckpointError, match="found a folder"):
        open_file(tmp_path, "a file")
    with pytest.raises(model.CheckpointError, match="found a pipe or a device"):
        open_file(Path("/dev/zero"), "a file")


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer_config.json", "vocab.json", "pytorch_model.bin"])
def test_links_that_the_system_cannot_follow_count_as_missing(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(TOO_LONG)
    model.load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_required_links_that_the_system_cannot_follow_are_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to(TOO_LONG)
    refused(folder, name, "found an unreadable file")


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "config.json").unlink()
    refused(folder, "config.json", "found no file config.json, expected a JSON file")


def test_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(model.CheckpointError, match="nowhere: found no such file or folder, expected a checkpoint"):
        model.load(tmp_path / "nowhere")


def test_linked_card_or_report_outside_the_folder_is_not_shown(folder: Path) -> None:
    (folder / "README.md").write_text("Trained on plays.")
    assert about(folder) == "Trained on plays."
    lead_out(folder / "README.md")
    assert about(folder) == ""
    (folder / "training.json").write_text('{"finished": true}')
    assert is_finished(folder)
    lead_out(folder / "training.json")
    assert not is_finished(folder)


@pytest.mark.parametrize("name", ["README.md", "secrets.svg", "training.json"])
def test_linked_file_outside_the_folder_is_not_published(folder: Path, name: str) -> None:
    (folder / name).write_text("{}")
    assert name in files_of(folder)
    lead_out(folder / name)
    with pytest.raises(CannotPublish, match=f"{name}: {OUT}"):
        files_of(folder)
