"""Folders that transformers wrote, opened by ``model.load``: the same logits, attention weights and greedy text."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2LMHeadModel

import model
from helpers.files import edit_json, write_json
from helpers.models import batch, char_spec, max_difference, prompt_ids
from helpers.oracles.gpt2_shapes import reference, transformers_keys, write

TOLERANCE = 1e-4


@torch.inference_mode()
def assert_same(gpt: GPT2LMHeadModel, loaded: model.LoadedModel) -> None:
    """Logits, and every head's attention weights, on random tokens as long as the context."""
    config = loaded.config
    ids = prompt_ids(config.context_length, config.vocab_size)
    theirs = gpt(torch.tensor([ids]), output_attentions=True)
    trace = loaded.trace(ids)
    assert max_difference(trace.logits, theirs.logits[0]) <= TOLERANCE
    assert max_difference(trace.attention, torch.cat(theirs.attentions)) <= TOLERANCE
    fused = loaded.gpt(batch(3, 7, vocab_size=config.vocab_size)).logits if config.context_length >= 7 else None
    if fused is not None:
        assert max_difference(fused, gpt(batch(3, 7, vocab_size=config.vocab_size)).logits) <= TOLERANCE


def test_oldest_gpt2_files_open(tmp_path: Path) -> None:
    """Names without ``transformer.``, the causal mask stored as buffers, and a second copy of the tied head."""
    gpt = reference(**transformers_keys("plain"))
    write(gpt, tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
        tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["lm_head.weight"] = tensors["wte.weight"].clone()
    save_file(tensors, path)
    loaded = model.load(tmp_path, device="cpu")
    assert_same(gpt, loaded)
    assert loaded.gpt.lm_head.weight is loaded.gpt.wte.weight


def test_buffers_of_other_types_are_ignored_too(tmp_path: Path) -> None:
    gpt = reference(**transformers_keys("plain"))
    path = write(gpt, tmp_path) / "model.safetensors"
    tensors = load_file(path) | {"transformer.h.1.attn.bias": torch.ones(1, 1, 32, 32, dtype=torch.uint8).tril()}
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 32, 32, dtype=torch.bool).tril()
    save_file(tensors, path)
    assert_same(gpt, model.load(tmp_path, device="cpu"))


def test_a_tied_head_that_differs_is_kept(tmp_path: Path) -> None:
    gpt = reference(**transformers_keys("untied head"))
    write(gpt, tmp_path)
    edit_json(tmp_path / "config.json", tie_word_embeddings=True)
    loaded = model.load(tmp_path, device="cpu")
    assert not loaded.config.tie_word_embeddings
    assert_same(gpt, loaded)


@pytest.mark.parametrize("stored", ["zeros", "left out"])
def test_import_without_query_key_value_biases(stored: str, tmp_path: Path) -> None:
    gpt = reference(**transformers_keys("plain"))
    for block in gpt.transformer.h:
        torch.nn.init.zeros_(block.attn.c_attn.bias)
    path = write(gpt, tmp_path) / "model.safetensors"
    edit_json(tmp_path / "config.json", qkv_bias=False)
    if stored == "left out":
        save_file({name: t for name, t in load_file(path).items() if not name.endswith("c_attn.bias")}, path)
    loaded = model.load(tmp_path, device="cpu")
    assert loaded.gpt.h[0].attn.c_attn.bias is None
    assert_same(gpt, loaded)


def test_biases_where_the_config_says_none_are_refused(tmp_path: Path) -> None:
    write(reference(**transformers_keys("plain")), tmp_path)
    edit_json(tmp_path / "config.json", qkv_bias=False)
    with pytest.raises(model.CheckpointError, match="c_attn.bias that is not zero"):
        model.load(tmp_path)


def test_default_end_token_outside_the_vocabulary(tmp_path: Path) -> None:
    """``GPT2Config(vocab_size=65)`` says 50256 for bos and eos: an id that can never occur counts as none."""
    gpt = reference(**transformers_keys("plain"))
    write(gpt, tmp_path)
    edit_json(tmp_path / "config.json", bos_token_id=50256, eos_token_id=50256)
    loaded = model.load(tmp_path, device="cpu")
    assert (loaded.bos_token_id, loaded.eos_token_id) == (None, None)
    assert_same(gpt, loaded)


def test_both_names_of_the_same_activation(tmp_path: Path) -> None:
    gpt = reference(activation_function="gelu_pytorch_tanh", **transformers_keys("plain"))
    assert_same(gpt, model.load(write(gpt, tmp_path), device="cpu"))


def test_end_token_stops_both(tmp_path: Path) -> None:
    gpt = reference(**transformers_keys("plain"))
    write(gpt, tmp_path)
    ids = prompt_ids(4)
    free = [step.token_id for step in model.load(tmp_path, device="cpu").generate(ids, 20, temperature=0)]
    end = free[5]
    edit_json(tmp_path / "config.json", eos_token_id=end)
    reading = torch.tensor([ids])
    options = {"do_sample": False, "max_new_tokens": 20, "pad_token_id": 0, "eos_token_id": end}
    theirs = gpt.generate(reading, attention_mask=torch.ones_like(reading), **options)[0, 4:].tolist()
    steps = list(model.load(tmp_path, device="cpu").generate(ids, 20, temperature=0))
    assert [step.token_id for step in steps] == theirs == free[: free.index(end) + 1]
    assert (steps[-1].text, steps[-1].finish_reason) == ("", "stop")


def test_folder_of_a_bare_gpt2model_opens(tmp_path: Path) -> None:
    """``GPT2Model`` has no head and no prefix; its folder is that of a tied model."""
    gpt = reference(**transformers_keys("plain"))
    gpt.transformer.save_pretrained(tmp_path)
    write_json(tmp_path / "tokenizer.json", char_spec())
    assert "wte.weight" in load_file(tmp_path / "model.safetensors")
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["GPT2Model"]
    assert_same(gpt, model.load(tmp_path, device="cpu"))
