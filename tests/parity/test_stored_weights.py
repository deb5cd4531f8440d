"""The ways in which weights of every family are stored: the logits of transformers, which ``save`` keeps."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file, save_model
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

import model
from helpers.files import edit_json, refused, write_json
from helpers.models import max_difference, prompt_ids, tiny_bpe
from helpers.oracles import families

TOLERANCE = 1e-4
IDS = prompt_ids(20)
WEIGHTS, INDEX = "model.safetensors", "pytorch_model.bin.index.json"
PAD = {"id": 400, "content": "<pad>", "special": True}
PAD |= dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
NAMES = families.one_of_each_kind(["gpt2, plain", *families.ONE_OF_EACH])


def write(name: str, folder: Path, **changes: Any) -> PreTrainedModel:
    """Write a random model of a family with transformers, and return it."""
    gpt = families.reference(name, **changes)
    families.write(gpt, folder)
    return gpt


def write_shards(folder: Path, tensors: dict[str, Tensor]) -> None:
    """``tensors`` in two pickles with an index, as transformers wrote them, in place of the safetensors file."""
    (folder / WEIGHTS).unlink(missing_ok=True)
    file_of = {each: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, each in enumerate(tensors)}
    for file in set(file_of.values()):
        torch.save({each: tensors[each] for each in tensors if file_of[each] == file}, folder / file)
    write_json(folder / INDEX, {"metadata": {"total_size": 1}, "weight_map": file_of})


@torch.inference_mode()
def logits(folder: Path) -> Tensor:
    """Those of transformers."""
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found: Tensor = theirs(torch.tensor([IDS])).logits[0]
    return found


def assert_same(folder: Path, expected: Tensor, saved: Path) -> model.LoadedModel:
    """The logits of a folder, and of what ``save`` writes of it, which transformers opens too."""
    loaded = model.load(folder, device="cpu", dtype="float32")
    assert max_difference(loaded.trace(IDS).logits, expected) <= TOLERANCE
    loaded.save(saved)
    again = model.load(saved, device="cpu", dtype="float32")
    assert again.config == loaded.config
    assert max_difference(again.trace(IDS).logits, expected) <= TOLERANCE
    assert max_difference(logits(saved), expected) <= TOLERANCE
    return loaded


@pytest.mark.parametrize("name", NAMES)
def test_shards_in_pickles(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gpt = write(name, tmp_path / "theirs")
    write_shards(tmp_path / "theirs", gpt.state_dict())
    assert_same(tmp_path / "theirs", logits(tmp_path / "theirs"), tmp_path / "ours")
    assert "theirs: weights in a pickle; `python -m model.checkpoint convert` writes" in caplog.text


@pytest.mark.parametrize("stored", ["safetensors", "pickles"])
@pytest.mark.parametrize("name", NAMES)
def test_a_stored_head_is_kept_although_the_config_ties_it(
    name: str, stored: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "theirs"
    gpt = write(name, folder, tie_word_embeddings=False)
    expected = logits(folder)
    edit_json(folder / "config.json", tie_word_embeddings=True)
    if stored == "pickles":
        write_shards(folder, gpt.state_dict())
    assert max_difference(logits(folder), expected) <= TOLERANCE
    loaded = assert_same(folder, expected, tmp_path / "ours")
    assert loaded.gpt.lm_head.weight is not loaded.gpt.wte.weight
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["tie_word_embeddings"] is False
    assert "theirs: config.json ties the output head to the token embeddings, but a different one" in caplog.text


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_a_stored_copy_of_the_embeddings_stays_tied(
    name: str, dtype: torch.dtype, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the copy is in another precision that holds the same numbers."""
    folder = tmp_path / "theirs"
    write(name, folder, tie_word_embeddings=True)
    tensors = load_file(folder / WEIGHTS)
    tokens = next(each for each in tensors if each.endswith(("wte.weight", "embed_tokens.weight", "embed_in.weight")))
    copy = "embed_out.weight" if name == "pythia" else "lm_head.weight"
    tensors[tokens] = tensors[tokens].half().float()
    save_file(tensors | {copy: tensors[tokens].to(dtype, copy=True)}, folder / WEIGHTS)
    loaded = assert_same(folder, logits(folder), tmp_path / "ours")
    assert loaded.gpt.lm_head.weight is loaded.gpt.wte.weight
    assert "ties" not in caplog.text


@pytest.mark.parametrize("name", NAMES)
def test_a_head_stored_in_place_of_the_embeddings(name: str, tmp_path: Path) -> None:
    """``safetensors.torch.save_model`` keeps one of two tied tensors, the first in the order of their names."""
    folder = tmp_path / "theirs"
    gpt = write(name, folder, tie_word_embeddings=True)
    expected = logits(folder)
    save_model(gpt, str(folder / WEIGHTS))
    assert_same(folder, expected, tmp_path / "ours")


@pytest.mark.parametrize("name", NAMES)
def test_wrapped_names(name: str, tmp_path: Path) -> None:
    """transformers does not open these; the oracle is the folder with plain names."""
    folder = tmp_path / "theirs"
    write(name, folder)
    expected, tensors = logits(folder), load_file(folder / WEIGHTS)
    for prefix in ("_orig_mod.", "module.", "module._orig_mod."):
        save_file({prefix + each: tensor for each, tensor in tensors.items()}, folder / WEIGHTS)
        loaded = model.load(folder, device="cpu", dtype="float32")
        assert max_difference(loaded.trace(IDS).logits, expected) <= TOLERANCE
    save_file({"module." + each: t.clone() for each, t in tensors.items()} | tensors, folder / WEIGHTS)
    refused(folder, WEIGHTS, "twice, expected each tensor once")


@pytest.mark.parametrize("name", NAMES)
def test_a_token_without_a_row(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The tokenizer has a pad token for which the model has no row: every text without it is read."""
    folder, tokenizer = tmp_path / "theirs", tiny_bpe(400)
    gpt = write(name, folder, vocab_size=400)
    spec = tokenizer.spec | {"added_tokens": [*tokenizer.spec["added_tokens"], PAD]}
    write_json(folder / "tokenizer.json", spec)
    # transformers' own class of Gemma's vocabularies needs tokens of theirs
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"})
    ids = AutoTokenizer.from_pretrained(folder)("Hello there").input_ids
    loaded = model.load(folder, device="cpu", dtype="float32")
    assert "theirs: the model has no row for 1 token; prompts with one are refused" in caplog.text
    loaded.save(tmp_path / "ours")
    for again in (loaded, model.load(tmp_path / "ours", device="cpu", dtype="float32")):
        assert again.parse_prompt("Hello there") == ids
        with torch.inference_mode():
            assert max_difference(again.trace("Hello there").logits, gpt(torch.tensor([ids])).logits[0]) <= TOLERANCE
        with pytest.raises(
            model.UnknownTokens, match="from 0 to 399, found 400, the token '<pad>', which the tokenizer"
        ):
            again.trace("Hello<pad>")
        assert [step.token_id < 400 for step in again.generate("Hello", 5, seed=1)] == [True] * 5
