"""Folders that ``LoadedModel.save`` wrote, opened by transformers as they are: no conversion, the same numbers."""

import json
import warnings
from pathlib import Path
from typing import cast

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel, PreTrainedTokenizerBase

from helpers.models import ALPHABET, PROSE, max_difference, prompt_ids, tiny_bpe, tiny_model, wide_alphabet
from helpers.oracles.gpt2_shapes import SHAPES, our_keys
from helpers.serve_once import ROOT
from model import LoadedModel, load
from model.tokenizer import CharTokenizer

TOLERANCE = 1e-4
CHECKPOINTS = ROOT / "checkpoints"


def open_with_transformers(folder: Path) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerBase]:
    """What a user writes, with warnings as errors and every weight accounted for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gpt, info = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(folder)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    return gpt.eval(), tokenizer


@torch.inference_mode()
def assert_same(gpt: GPT2LMHeadModel, loaded: LoadedModel) -> None:
    assert gpt.dtype == torch.float32
    ids = prompt_ids(loaded.config.context_length, loaded.config.vocab_size)
    theirs = gpt(torch.tensor([ids]), output_attentions=True)
    trace = loaded.trace(ids)
    assert max_difference(trace.logits, theirs.logits[0]) <= TOLERANCE
    assert max_difference(trace.attention, torch.cat(theirs.attentions)) <= TOLERANCE


@pytest.mark.parametrize("name", SHAPES)
def test_exported_logits_equal_for_every_shape(name: str, tmp_path: Path) -> None:
    keys = our_keys(name)
    loaded = tiny_model(tokenizer=CharTokenizer.train(wide_alphabet(cast(int, keys["vocab_size"]))), **keys)
    loaded.save(tmp_path / "saved")
    gpt, tokenizer = open_with_transformers(tmp_path / "saved")
    assert isinstance(gpt, GPT2LMHeadModel)
    assert_same(gpt, loaded)
    assert tokenizer.encode(ALPHABET) == loaded.tokenizer.encode(ALPHABET)
    again = load(tmp_path / "saved", device="cpu", dtype="float32")
    assert again.config == loaded.config
    assert_same(gpt, again)


def test_export_without_query_key_value_biases(tmp_path: Path) -> None:
    loaded = tiny_model(qkv_bias=False)
    loaded.save(tmp_path / "saved")
    gpt, _ = open_with_transformers(tmp_path / "saved")
    assert_same(gpt, loaded)
    assert load(tmp_path / "saved").gpt.h[0].attn.c_attn.bias is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("tied", [True, False])
def test_half_precision_on_disk_is_computed_in_float32(dtype: torch.dtype, tied: bool, tmp_path: Path) -> None:
    loaded = tiny_model(tie_word_embeddings=tied, qkv_bias=False)
    loaded.save(tmp_path / "full")
    loaded.save(tmp_path / "half", dtype=dtype)
    full, half = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("full", "half"))
    assert half < 0.75 * full
    gpt, _ = open_with_transformers(tmp_path / "half")
    assert_same(gpt, load(tmp_path / "half", device="cpu", dtype="float32"))
    # "dtype" in config.json is honoured when the user names none.
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "half").dtype == torch.float32


def test_greedy_text_equals_transformers(tmp_path: Path) -> None:
    loaded = tiny_model(seed=3, n_layer=3)
    loaded.save(tmp_path / "saved")
    gpt, tokenizer = open_with_transformers(tmp_path / "saved")
    prompt = "ROMEO: "
    reading = tokenizer(prompt, return_tensors="pt")
    theirs = gpt.generate(**reading, do_sample=False, max_new_tokens=25, pad_token_id=0)[0]
    steps = list(loaded.generate(prompt, 25, temperature=0))
    assert [step.token_id for step in steps] == theirs[len(prompt) :].tolist()
    assert prompt + "".join(step.text for step in steps) == tokenizer.decode(theirs)


def test_exported_character_folder_opens(tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "saved")
    gpt, tokenizer = open_with_transformers(tmp_path / "saved")
    assert (gpt.config.bos_token_id, gpt.config.eos_token_id) == (None, None)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.all_special_tokens) == (None, None, [])
    assert tokenizer.model_max_length == 32
    text = "  two  spaces\n\nand lines \n"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_exported_bpe_folder_opens(tmp_path: Path) -> None:
    bpe = tiny_bpe()
    loaded = tiny_model(tokenizer=bpe, eos_token_id=bpe.special_tokens["<|endoftext|>"])
    loaded.save(tmp_path / "saved")
    gpt, tokenizer = open_with_transformers(tmp_path / "saved")
    assert_same(gpt, loaded)
    assert (gpt.config.bos_token_id, gpt.config.eos_token_id) == (0, 0)
    assert tokenizer.bos_token == tokenizer.eos_token == tokenizer.unk_token == "<|endoftext|>"
    text = PROSE + "<|endoftext|>" + PROSE
    ids = bpe.encode(text)
    assert tokenizer(text)["input_ids"] == ids
    assert tokenizer.decode(ids) == bpe.decode(ids) == text
    assert tokenizer.decode(ids, skip_special_tokens=True) == PROSE * 2


def test_weights_and_config_are_gpt2s_own(tmp_path: Path) -> None:
    """The names another engine looks for: GPT-2's tensors, in its orientation, the tied head stored once."""
    from safetensors import safe_open

    loaded = tiny_model(n_inner=24)
    loaded.save(tmp_path / "saved")
    with safe_open(tmp_path / "saved" / "model.safetensors", "pt") as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 - not a dict
        assert file.metadata() == {"format": "pt"}
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path / "saved").state_dict()
    assert shapes == {name: list(tensor.shape) for name, tensor in theirs.items() if name != "lm_head.weight"}
    assert shapes["transformer.h.0.mlp.c_fc.weight"] == [16, 24]
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == ("gpt2", ["GPT2LMHeadModel"])
    assert config["n_positions"] == 32 and config["n_inner"] == 24


@pytest.mark.parametrize("folder", sorted(CHECKPOINTS.glob("*/config.json")), ids=lambda path: path.parent.name)
def test_shipped_checkpoints_open_in_transformers(folder: Path) -> None:
    gpt, tokenizer = open_with_transformers(folder.parent)
    loaded = load(folder.parent, dtype="float32")
    assert_same(gpt, loaded)
    text = "Once upon a time,\nsaid I to the king: what now?"
    assert tokenizer(text).input_ids == loaded.tokenizer.encode(text)
