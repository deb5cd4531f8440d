"""Damaged checkpoints at random: each is refused with a ``CheckpointError`` or is a model that works."""

import random
import struct

import pytest
import torch

import model
from helpers.siege.fuzz import (
    FILES,
    Damaged,
    any_value_in_any_place,
    any_value_in_the_safetensors_header,
    damaged_bytes,
    few,
)


@pytest.mark.parametrize("name", FILES)
def test_unchanged_checkpoint_loads(name: str, damaged: Damaged) -> None:
    assert damaged.check(name, damaged.content[name]) == "loaded"


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_mutated_json_values(name: str, damaged: Damaged) -> None:
    few(any_value_in_any_place(damaged, name))


@pytest.mark.parametrize("name", FILES)
def test_damaged_bytes_are_refused(name: str, damaged: Damaged) -> None:
    few(damaged_bytes(damaged, name))


def test_mutated_safetensors_header_values(damaged: Damaged) -> None:
    few(any_value_in_the_safetensors_header(damaged))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, 700, -1000, -4, -1])
def test_truncated_weights_are_refused(length: int, damaged: Damaged) -> None:
    assert damaged.check("model.safetensors", damaged.content["model.safetensors"][:length]) == "refused"


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**12, 100_000_001, 2])
def test_wrong_header_lengths_are_refused(length: int, damaged: Damaged) -> None:
    content = struct.pack("<Q", length) + damaged.content["model.safetensors"][8:]
    assert damaged.check("model.safetensors", content) == "refused"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", FILES)
def test_random_bytes_are_refused(name: str, seed: int, damaged: Damaged) -> None:
    assert damaged.check(name, random.Random(seed).randbytes(seed**4)) == "refused"


def test_a_file_overwritten_in_place_leaves_a_loaded_model_alone(damaged: Damaged) -> None:
    """The weights in use are copies, so changing or truncating the file cannot affect them."""
    path = damaged.folder / "model.safetensors"
    loaded = model.load(damaged.folder, device="cpu", dtype="float32")
    before = loaded.trace([0, 1, 2]).logits
    try:
        with path.open("r+b") as file:
            file.write(b"\0" * len(damaged.content["model.safetensors"]))
        assert torch.equal(loaded.trace([0, 1, 2]).logits, before)
        with path.open("r+b") as file:
            file.truncate(0)
        assert torch.equal(loaded.trace([0, 1, 2]).logits, before)
    finally:
        path.write_bytes(damaged.content["model.safetensors"])
