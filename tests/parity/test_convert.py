"""Other implementations' weights, converted: the logits of the source, and a folder that transformers opens."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

import model
from helpers.models import ALPHABET, char_spec, max_difference, prompt_ids, randomise, tiny_bpe, tiny_model
from helpers.oracles.other_gpts import book_logits, book_weights, nanogpt_logits, nanogpt_weights
from model.checkpoint.__main__ import main
from model.generate import generate_naive

TOLERANCE = 1e-4
SIZES = {"n_layer": 2, "n_embd": 24, "vocab_size": 65, "context_length": 32}
N_HEAD = 3
WRAPPERS = ["", "_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."]


@pytest.fixture
def alphabet(tmp_path: Path) -> Path:
    path = tmp_path / "alphabet.json"
    path.write_text(json.dumps(list(ALPHABET)), encoding="utf-8")
    return path


def nanogpt_file(path: Path, *, prefix: str = "", **sizes: Any) -> dict[str, Tensor]:
    """A ``ckpt.pt`` as nanoGPT's train.py writes it; returns its weights."""
    sizes = SIZES | sizes
    gpt = nanogpt_weights(**sizes)
    randomise(gpt, seed=3, std=0.2)
    weights = gpt.state_dict()
    arguments = {
        "n_layer": sizes["n_layer"],
        "n_head": N_HEAD,
        "n_embd": sizes["n_embd"],
        "block_size": sizes["context_length"],
        "bias": sizes.get("bias", True),
        "vocab_size": sizes["vocab_size"],
        "dropout": 0.2,
    }
    stored = {prefix + name: tensor for name, tensor in weights.items()}
    optimizer = torch.optim.AdamW(gpt.parameters()).state_dict()
    checkpoint = {"model": stored, "optimizer": optimizer, "model_args": arguments, "iter_num": 5, "config": {"a": "b"}}
    torch.save(checkpoint | {"best_val_loss": torch.tensor(1.5)}, path)
    return weights


def convert(*arguments: object) -> None:
    assert main(["convert", *map(str, arguments)]) == 0


@torch.inference_mode()
def assert_same(folder: Path, theirs: Tensor, ids: list[int]) -> model.LoadedModel:
    """Our logits, and those of transformers for the same folder, are the source's."""
    loaded = model.load(folder, device="cpu", dtype="float32")
    assert max_difference(loaded.trace(ids).logits, theirs) <= TOLERANCE
    again = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert max_difference(again(torch.tensor([ids])).logits[0], theirs) <= TOLERANCE
    return loaded


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", WRAPPERS)
def test_converted_nanogpt_checkpoint_equals_its_source(
    bias: bool, prefix: str, tmp_path: Path, alphabet: Path
) -> None:
    weights = nanogpt_file(tmp_path / "ckpt.pt", prefix=prefix, bias=bias)
    convert(tmp_path / "ckpt.pt", tmp_path / "folder", "--alphabet", alphabet)
    ids = prompt_ids(32)
    loaded = assert_same(tmp_path / "folder", nanogpt_logits(weights, torch.tensor(ids), N_HEAD), ids)
    assert loaded.config.activation_function == "gelu"
    assert loaded.config.n_head == N_HEAD
    assert loaded.config.tie_word_embeddings
    assert loaded.tokenizer.encode("\n z") == [0, 1, 64]
    assert AutoTokenizer.from_pretrained(tmp_path / "folder").encode("\n z") == [0, 1, 64]


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("qkv_bias", [True, False])
def test_converted_book_checkpoint_equals_its_source(
    suffix: str, qkv_bias: bool, tmp_path: Path, alphabet: Path
) -> None:
    path, weights = tmp_path / f"model{suffix}", book_weights(qkv_bias=qkv_bias, **SIZES)
    if suffix == ".pth":
        torch.save({"model_state_dict": weights, "optimizer_state_dict": {}} if qkv_bias else weights, path)
    else:
        save_file(weights, path)
    convert(path, tmp_path / "folder", "--alphabet", alphabet, "--n-head", N_HEAD)
    ids = prompt_ids(32)
    loaded = assert_same(tmp_path / "folder", book_logits(weights, torch.tensor(ids), N_HEAD), ids)
    assert loaded.config.activation_function == "gelu_new"
    assert not loaded.config.tie_word_embeddings


@pytest.mark.parametrize("prefix", WRAPPERS[1:])
def test_the_wrapped_model_of_the_book_equals_its_source(prefix: str, tmp_path: Path, alphabet: Path) -> None:
    weights = book_weights(**SIZES)
    torch.save({prefix + name: tensor for name, tensor in weights.items()}, tmp_path / "model.pth")
    convert(tmp_path / "model.pth", tmp_path / "folder", "--alphabet", alphabet, "--n-head", N_HEAD)
    ids = prompt_ids(32)
    assert_same(tmp_path / "folder", book_logits(weights, torch.tensor(ids), N_HEAD), ids)


@pytest.mark.parametrize("name", ["book", "nanogpt"])
def test_wrapped_parts_of_a_model_equal_their_source(name: str, tmp_path: Path, alphabet: Path) -> None:
    """Each layer compiled by itself, and the whole model distributed."""
    path = tmp_path / "model.pt"
    weights = book_weights(**SIZES) if name == "book" else nanogpt_file(path)
    logits_of = book_logits if name == "book" else nanogpt_logits
    stored = {re.sub(r"^", "module.", re.sub(r"(\.\d+\.)", r"\1_orig_mod.", each)): t for each, t in weights.items()}
    torch.save(stored, path)
    activation = "gelu_new" if name == "book" else "gelu"
    convert(path, tmp_path / "folder", "--alphabet", alphabet, "--n-head", N_HEAD, "--activation", activation)
    ids = prompt_ids(32)
    assert_same(tmp_path / "folder", logits_of(weights, torch.tensor(ids), N_HEAD), ids)


def test_padded_vocabulary_keeps_its_rows(tmp_path: Path, alphabet: Path) -> None:
    weights = nanogpt_file(tmp_path / "ckpt.pt", vocab_size=128)
    convert(tmp_path / "ckpt.pt", tmp_path / "folder", "--alphabet", alphabet)
    ids = prompt_ids(32)
    logits = nanogpt_logits(weights, torch.tensor(ids), N_HEAD)
    loaded = assert_same(tmp_path / "folder", logits, ids)
    assert loaded.config.vocab_size == 128 and loaded.ids_without_token == tuple(range(65, 128))


@torch.inference_mode()
def test_ids_without_a_token_are_never_drawn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A folder of transformers whose model has more rows than the vocabulary has tokens."""
    config = GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=32, vocab_size=128, bos_token_id=100)
    gpt = GPT2LMHeadModel(config)
    randomise(gpt, std=0.25)
    with torch.no_grad():
        gpt.transformer.wte.weight[65:] *= 5  # padding that would win often
    gpt.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(char_spec()), encoding="utf-8")
    loaded = model.load(tmp_path, device="cpu")
    assert f"{tmp_path.name}: 63 rows of the vocabulary without a token will never be drawn" in caplog.messages
    assert loaded.config.vocab_size == 128
    assert loaded.bos_token_id is None
    ids = prompt_ids(8)
    theirs = gpt.eval()(torch.tensor([ids])).logits[0]
    assert max_difference(loaded.trace(ids).logits, theirs) <= TOLERANCE
    for temperature in (0.0, 2.0):
        request = loaded.request(ids, 20, sampling=model.SamplingSettings(temperature=temperature), seed=1)
        steps = list(loaded.generate(ids, 20, temperature=temperature, seed=1))
        assert all(step.token_id < 65 and len(step.text) == 1 for step in steps)
        expected = theirs[-1].log_softmax(-1)[steps[0].token_id]
        assert abs(steps[0].logprob - float(expected)) <= TOLERANCE  # among all rows
        assert [step.token_id for step in steps] == generate_naive(loaded.gpt, request)
        texts = model.BatchWriter(loaded, 2).write([ids], 20, temperature=temperature, seed=1)
        assert texts == ["".join(step.text for step in steps)]
    biased = loaded.generate(ids, 5, logit_bias={100: 100.0}, seed=1)
    assert all(step.token_id < 65 for step in biased)
    loaded.save(tmp_path / "saved")
    again = model.load(tmp_path / "saved", device="cpu")
    assert torch.equal(again.gpt.wte.weight, loaded.gpt.wte.weight) and again.config.vocab_size == 128


def test_vocab_json_and_merges_txt_are_converted(tmp_path: Path) -> None:
    bpe = tiny_bpe()
    spec = bpe.spec["model"]
    for vocabulary, merges in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        folder = tmp_path / vocabulary
        folder.mkdir()
        (folder / vocabulary).write_text(json.dumps(spec["vocab"]), encoding="utf-8")
        lines = "\n".join(" ".join(merge) for merge in spec["merges"])
        (folder / merges).write_text(f"#version: 0.2\n{lines}\n", encoding="utf-8")
        weights = book_weights(**SIZES | {"vocab_size": bpe.vocab_size})
        torch.save(weights, tmp_path / "model.pth")
        converted = tmp_path / f"converted {vocabulary}"
        convert(tmp_path / "model.pth", converted, "--tokenizer", folder, "--n-head", N_HEAD)
        loaded = model.load(converted)
        text = "It's a fine day, isn't it? 日本語 <|endoftext|>"
        assert loaded.tokenizer.encode(text) == bpe.encode(text)
        assert loaded.eos_token_id == bpe.special_tokens["<|endoftext|>"]
        theirs = AutoTokenizer.from_pretrained(converted)
        assert theirs.encode(text) == bpe.encode(text)


@torch.inference_mode()
def test_pytorch_model_bin_is_converted(tmp_path: Path) -> None:
    gpt = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=32, vocab_size=65))
    randomise(gpt, std=0.25)
    gpt.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "tokenizer.json").write_text(json.dumps(char_spec()), encoding="utf-8")
    ids = prompt_ids(8)
    for zipped in (True, False):  # the format of torch before 1.6 too
        torch.save(gpt.state_dict(), tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
        loaded = model.load(tmp_path, device="cpu")
        assert max_difference(loaded.trace(ids).logits, gpt.eval()(torch.tensor([ids])).logits[0]) <= TOLERANCE


def test_file_next_to_its_vocabulary_needs_no_conversion(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    weights = nanogpt_file(folder / "ckpt.pt")
    (folder / "tokenizer.json").write_text(json.dumps(char_spec()), encoding="utf-8")
    loaded = model.load(folder / "ckpt.pt", device="cpu")
    assert loaded.name == "run"
    assert len(loaded.sha256) == 64
    ids = prompt_ids(20)
    assert max_difference(loaded.trace(ids).logits, nanogpt_logits(weights, torch.tensor(ids), N_HEAD)) <= TOLERANCE


def test_converting_our_own_folder_changes_nothing(tmp_path: Path) -> None:
    ours = tiny_model(activation_function="gelu", n_layer=3)
    ours.save(tmp_path / "one")
    convert(tmp_path / "one", tmp_path / "two")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
