"""Saving: the numbers survive, tied weights stay tied, and a model that could not be opened again is not written."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import model
from helpers.files import edit_json
from helpers.models import logits_of, max_difference, same_model, tiny_bpe, tiny_model

FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": False},
        {"qkv_bias": False, "n_inner": 7, "layer_norm_epsilon": 1e-3},
        {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True, "attn_pdrop": 0.25, "embd_pdrop": 0.5},
        {"n_embd": 1, "n_head": 1},
        {"n_embd": 15, "n_head": 5, "n_layer": 4},
    ],
)
def test_saved_model_loads_unchanged(changes: dict[str, Any], tmp_path: Path) -> None:
    loaded = tiny_model(**changes)
    loaded.save(tmp_path / "saved")
    again = model.load(tmp_path / "saved", device="cpu", dtype="float32")
    assert same_model(again, loaded)
    assert {path.name for path in (tmp_path / "saved").iterdir()} == FILES
    again.save(tmp_path / "again")
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()
    assert again.sha256 == model.load(tmp_path / "again").sha256


def test_bpe_vocabulary_and_end_token_are_saved(tmp_path: Path) -> None:
    loaded = tiny_model(tokenizer=tiny_bpe(), eos_token_id=0)
    loaded.save(tmp_path / "saved")
    again = model.load(tmp_path / "saved", device="cpu", dtype="float32")
    assert same_model(again, loaded)
    assert (again.bos_token_id, again.eos_token_id) == (0, 0)


@pytest.mark.parametrize("tied", [True, False])
def test_tied_head_stays_one_parameter(tied: bool, tmp_path: Path) -> None:
    tiny_model(tie_word_embeddings=tied).save(tmp_path / "saved")
    gpt = model.load(tmp_path / "saved").gpt
    assert (gpt.lm_head.weight is gpt.wte.weight) == tied
    assert (gpt.lm_head.weight.data_ptr() == gpt.wte.weight.data_ptr()) == tied
    assert sum(p.numel() for p in gpt.parameters()) == gpt.config.n_parameters
    assert ("lm_head.weight" in load_file(tmp_path / "saved" / "model.safetensors")) != tied


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_saving_in_half_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    loaded = tiny_model(qkv_bias=False)
    loaded.save(tmp_path / "saved", dtype=dtype)
    assert {tensor.dtype for tensor in load_file(tmp_path / "saved" / "model.safetensors").values()} == {dtype}
    again = model.load(tmp_path / "saved", device="cpu", dtype="float32")
    assert again.dtype == torch.float32
    rounded = tiny_model(qkv_bias=False)
    rounded.gpt.to(dtype).float()
    assert max_difference(logits_of(again), logits_of(rounded)) <= 1e-5
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["dtype"] == "float32"


def test_loading_in_bfloat16(tmp_path: Path) -> None:
    loaded = tiny_model()
    loaded.save(tmp_path / "saved")
    again = model.load(tmp_path / "saved", device="cpu", dtype="bfloat16")
    assert {p.dtype for p in again.gpt.parameters()} == {torch.bfloat16}
    assert model.load(tmp_path / "saved", device="cpu").dtype == torch.float32  # auto, below 50 M weights
    assert max_difference(logits_of(again).softmax(-1), logits_of(loaded).softmax(-1)) < 0.1


def test_saving_does_not_change_the_model(tmp_path: Path) -> None:
    loaded = tiny_model()
    before, mode = logits_of(loaded), loaded.gpt.training
    loaded.save(tmp_path / "saved", dtype=torch.float16)
    assert torch.equal(logits_of(loaded), before)
    assert (loaded.gpt.training, loaded.dtype) == (mode, torch.float32)


def test_parent_folders_are_created_and_readable(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "c"
    tiny_model().save(folder)
    assert folder.stat().st_mode & 0o777 == 0o755
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in folder.iterdir())


def test_nan_weights_are_not_saved(tmp_path: Path) -> None:
    """A run that diverged must not take the last good checkpoint with it."""
    folder, loaded = tmp_path / "saved", tiny_model()
    loaded.save(folder)
    loaded.gpt.ln_f.weight[3] = torch.nan
    with pytest.raises(ValueError, match="NaN or infinity in transformer.ln_f.weight"):
        loaded.save(folder)
    loaded.gpt.ln_f.weight[3] = 1e6
    with pytest.raises(ValueError, match="NaN or infinity in transformer.ln_f.weight"):
        loaded.save(folder, dtype=torch.float16)
    assert same_model(model.load(folder, device="cpu"), tiny_model())
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_hash_is_of_the_stored_weights(tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "saved")
    first = model.load(tmp_path / "saved").sha256
    path = tmp_path / "saved" / "model.safetensors"
    tensors = load_file(path)
    tensors["transformer.ln_f.bias"] += 1
    save_file(tensors, path)
    edit_json(tmp_path / "saved" / "config.json", attn_pdrop=0.5)
    assert model.load(tmp_path / "saved").sha256 not in (first, "")
