"""Weights that do not fit the config, or are not safetensors at all, give one ``CheckpointError`` that names them."""

import json
import pickle
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import model
from helpers.files import edit_json, refused, write_json

CONFIG, WEIGHTS, TOKENIZER, INDEX = "config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json"


@pytest.mark.parametrize(
    "changes",
    [{"n_layer": 500, "n_embd": 1600}, {"vocab_size": 4_000_000, "n_embd": 4096}, {"n_positions": 1_048_576}],
)
def test_oversized_configs_allocate_nothing(changes: dict[str, int], folder: Path) -> None:
    """The config describes up to 60 GB, the file has a few kB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    edit_json(folder / CONFIG, **changes)
    refused(folder, WEIGHTS, "of shape .* as config.json implies")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def with_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


LN, QKV = "transformer.h.1.ln_2.weight", "transformer.h.0.attn.c_attn.weight"
BAD_TENSORS: list[tuple[str, Callable[[dict[str, torch.Tensor]], object], str]] = [
    ("missing", lambda t: t.pop(LN), r"no tensor h.1.ln_2.weight \(1 missing\)"),
    ("all missing", lambda t: [t.pop(name) for name in list(t)[1:]], r"no tensor .* missing\)"),
    ("extra", lambda t: t.update({"transformer.h.2.ln_1.weight": torch.ones(16)}), "the tensor transformer.h.2.ln_1"),
    (
        "another's",
        lambda t: t.update({"score.weight": torch.ones(2, 16)}),
        "tensor score.weight, expected only the tensors",
    ),
    ("without prefix too", lambda t: t.update({LN[12:]: torch.ones(16)}), "h.1.ln_2.weight twice"),
    ("transposed", lambda t: t.update({QKV: t[QKV].t().contiguous()}), r"shape \[48, 16\], expected \[16, 48\]"),
    ("flat", lambda t: t.update({LN: torch.ones(1, 16)}), r"shape \[1, 16\], expected \[16\]"),
    ("empty", lambda t: t.update({LN: torch.ones(0)}), r"shape \[0\], expected \[16\]"),
    ("int8", lambda t: t.update({LN: torch.ones(16, dtype=torch.int8)}), "dtype I8, expected one of F32, F16, BF16"),
    ("double", lambda t: t.update({LN: torch.ones(16).double()}), "dtype F64, expected one of"),
    ("bool", lambda t: t.update({LN: torch.ones(16) > 0}), "dtype BOOL, expected one of"),
    ("NaN", lambda t: t[LN].__setitem__(3, torch.nan), f"NaN or infinity in {LN}, expected finite"),
    ("inf", lambda t: t[QKV].__setitem__((0, 0), -torch.inf), f"NaN or infinity in {QKV}"),
    ("half inf", lambda t: t.update({LN: torch.full((16,), 1e6).half()}), f"NaN or infinity in {LN}"),
    (
        "head too small",
        lambda t: t.update({"lm_head.weight": torch.ones(64, 16)}),
        r"lm_head.weight of shape \[64, 16\]",
    ),
]


@pytest.mark.parametrize(("change", "message"), [pytest.param(*case[1:], id=case[0]) for case in BAD_TENSORS])
def test_bad_tensors_are_refused(
    change: Callable[[dict[str, torch.Tensor]], object], message: str, folder: Path
) -> None:
    with_tensors(folder, change)
    refused(folder, WEIGHTS, message)


def test_missing_untied_head_is_refused(folder: Path) -> None:
    edit_json(folder / CONFIG, tie_word_embeddings=False)
    refused(folder, WEIGHTS, "no tensor lm_head.weight")


class Trap:
    """Its pickle creates a file when opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", ["torch", 2, 4, 5])
def test_pickles_are_never_opened(protocol: str | int, folder: Path, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    if protocol == "torch":
        torch.save({"wte.weight": Trap(sprung)}, folder / WEIGHTS)
    else:
        (folder / WEIGHTS).write_bytes(pickle.dumps(Trap(sprung), protocol=protocol))
    refused(folder, WEIGHTS, "a pickle, which is never opened")
    assert not sprung.exists()
    pickle.loads(pickle.dumps(Trap(sprung))).close()
    assert sprung.exists()  # the trap works


BAD_INDEX: list[tuple[Any, str]] = [
    ({"weight_map": {"wte.weight": "../tiny/model.safetensors"}}, r"file name '\.\./tiny"),
    ({"weight_map": {"wte.weight": "/etc/passwd"}}, "file name '/etc/passwd'"),
    ({"weight_map": {"wte.weight": "model.bin"}}, "file name 'model.bin'"),
    ({"weight_map": {"wte.weight": "steps/1.safetensors"}}, "file name 'steps/1"),
    ({"weight_map": {"wte.weight": None}}, "file name 'None'"),
    ({"weight_map": {"wte.weight": ["a.safetensors"]}}, "file name"),
    ({"weight_map": {}}, "no weight_map"),
    ({"weight_map": ["a.safetensors"]}, "no weight_map"),
    ({}, "no weight_map"),
    ([], "no weight_map"),
]


@pytest.mark.parametrize(("content", "message"), BAD_INDEX)
def test_bad_shard_index_is_refused(content: Any, message: str, folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    write_json(folder / INDEX, content)
    refused(folder, INDEX, message)


@pytest.mark.parametrize("name", ["../tiny/a.bin", "/etc/passwd", "model.safetensors", "steps/1.bin", "a.pt"])
def test_bad_index_of_pickles_is_refused(name: str, folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    write_json(folder / "pytorch_model.bin.index.json", {"weight_map": {"wte.weight": name}})
    message = f"the file name '{name}', expected names of .bin files in the same folder"
    refused(folder, "pytorch_model.bin.index.json", message)


def test_missing_weights_are_named(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    refused(folder, WEIGHTS, f"no file {WEIGHTS}, expected the weights: one of .*pytorch_model.bin.index.json")


@pytest.mark.parametrize("name", ["gone.safetensors", "x" * 300 + ".safetensors", "a\0.safetensors"])
def test_missing_shard_is_refused(name: str, folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "one.safetensors")
    write_json(folder / INDEX, {"weight_map": {"wte.weight": "one.safetensors", "wpe.weight": name}})
    refused(folder, name, "no file|an unreadable file")
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}))
    assert model.load(folder).config.n_layer == 2
