"""Sources that cannot be converted: the error names what is missing or wrong, and the flag that helps."""

import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import model
from helpers.models import ALPHABET, tiny_model
from helpers.oracles.other_gpts import book_weights
from model.checkpoint.__main__ import main
from model.checkpoint.source import read_source

SIZES = {"n_layer": 1, "n_embd": 16, "vocab_size": 65, "context_length": 8}


class Trap:
    """Its pickle creates a file when opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.fixture
def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command on a file with ``content``. It must fail, write nothing, and print a one-line reason."""
    (tmp_path / "alphabet.json").write_text(json.dumps(list(ALPHABET)), encoding="utf-8")

    def run(content: object, *flags: object, alphabet: bool = True) -> str:
        source = tmp_path / "model.pth"
        torch.save(content, source)
        given = ["--alphabet", str(tmp_path / "alphabet.json")] if alphabet else []
        with pytest.raises(SystemExit) as stopped:
            main(["convert", str(source), str(tmp_path / "folder"), *given, *map(str, flags)])
        assert stopped.value.code == 2
        assert not (tmp_path / "folder").exists()
        message = capsys.readouterr().err
        assert message.startswith("python -m model.checkpoint: ")
        assert message.count("\n") == 1
        return message

    return run


def test_missing_number_of_heads_is_refused(convert: Callable[..., str]) -> None:
    message = convert(book_weights(**SIZES))
    assert "found no number of heads, which the weights do not show, expected --n-head" in message


def test_impossible_number_of_heads_is_refused(convert: Callable[..., str]) -> None:
    message = convert(book_weights(**SIZES), "--n-head", 3)
    assert "found n_embd 16 with n_head 3, expected n_embd to be a multiple of n_head" in message


def test_missing_vocabulary_is_refused(convert: Callable[..., str]) -> None:
    message = convert(book_weights(**SIZES), "--n-head", 2, alphabet=False)
    assert "found no vocabulary in it or next to it, expected --alphabet or --tokenizer" in message


def test_alphabet_of_another_size_is_refused(convert: Callable[..., str]) -> None:
    message = convert(book_weights(**SIZES | {"vocab_size": 70}), "--n-head", 2)
    assert "found 70 tokens in the model, expected 65, the size of the alphabet given" in message
    message = convert(book_weights(**SIZES | {"vocab_size": 60}), "--n-head", 2)
    assert "found token id 64, expected ids below vocab_size 60" in message


def without(name: str) -> dict[str, Any]:
    weights: dict[str, Any] = book_weights(**SIZES)
    del weights[name]
    return weights


BAD: list[tuple[dict[str, Any], str]] = [
    (without("pos_emb.weight"), "found no matrix wpe.weight"),
    (without("trf_blocks.0.att.W_key.weight"), "found only W_query and W_value for h.0.attn.c_attn.weight"),
    (without("trf_blocks.0.norm1.scale"), "found no tensor h.0.ln_1.weight"),
    (book_weights(**SIZES) | {"lora_A": torch.zeros(1)}, "found the tensor lora_A"),
    (book_weights(**SIZES) | {"pos_emb.weight": torch.zeros(8, 15)}, "found wpe.weight of shape [8, 15]"),
    (book_weights(**SIZES) | {"final_norm.shift": torch.full((16,), torch.nan)}, "found NaN or infinity in ln_f.bias"),
    (book_weights(**SIZES) | {"final_norm.shift": torch.ones(16).long()}, "found ln_f.bias of dtype torch.int64"),
    (book_weights(**SIZES) | {"final_norm.shift": 5}, "found values that are not tensors"),
    ({"model": {}, "model_args": {"n_head": 2}}, "found no matrix wte.weight"),
    ({"rope.inv_freq": torch.zeros(4)}, "found no matrix wte.weight"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_weights_of_another_architecture_are_refused(
    content: dict[str, Any], message: str, convert: Callable[..., str]
) -> None:
    heads = [] if "model_args" in content else ["--n-head", 2]
    assert message in convert(content, *heads)


def test_contradicting_numbers_of_heads_are_refused(convert: Callable[..., str]) -> None:
    content = {"model": {"transformer.wte.weight": torch.zeros(65, 16)}, "model_args": {"n_head": 4}}
    assert "found n_head 4, expected the 2 of --n-head, or none given" in convert(content, "--n-head", 2)


def test_code_in_a_pickle_is_not_executed(convert: Callable[..., str], tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    message = convert({"tok_emb.weight": Trap(sprung)}, "--n-head", 2)
    assert "which is never executed" in message
    assert not sprung.exists()
    with pytest.raises(model.CheckpointError, match="which is never executed"):
        model.load(tmp_path / "model.pth")
    assert not sprung.exists()


class Call:
    """Its pickle calls a function when opened."""

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self.called = function, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.called


@pytest.mark.parametrize(
    ("function", "argument", "name"),
    [(os.system, "true", f"{os.name}.system"), (eval, "1", "eval"), (shutil.rmtree, "x", "shutil.rmtree")],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_pickled_calls_are_named_in_one_sentence(
    function: Callable[..., object], argument: str, name: str, zipped: bool, tmp_path: Path
) -> None:
    path = tmp_path / "model.pt"
    torch.save({"a": Call(function, argument)}, path, _use_new_zipfile_serialization=zipped)
    expected = "tensors and plain values, saved by torch.save"
    message = f"{path}: found a pickle that holds {name}, which is never executed, expected {expected}"
    with pytest.raises(model.CheckpointError, match=f"^{re.escape(message)}$"):
        model.load(path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"junk data of a file" * 9, "a file that torch.save did not write, or a damaged one"),
        (b"hi", "a file that torch.save did not write, or a damaged one"),
        (b"", "a file that is empty or cut off"),
        (b"PK\x03\x04 not a zip", "a damaged zip archive"),
    ],
)
def test_non_weight_files_are_named(content: bytes, found: str, tmp_path: Path) -> None:
    (tmp_path / "ckpt.pt").write_bytes(content)
    with pytest.raises(model.CheckpointError, match=f": found {re.escape(found)}, expected tensors and plain values"):
        model.load(tmp_path / "ckpt.pt")


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x80\x02}", pickle.dumps([1])])
def test_files_of_other_formats_are_refused(content: bytes, tmp_path: Path) -> None:
    for name in ("model.pth", "model.safetensors", "pytorch_model.bin"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(model.CheckpointError, match=name):
            model.load(tmp_path / name)


def test_meta_pkl_next_to_the_weights_is_named(tmp_path: Path) -> None:
    (tmp_path / "meta.pkl").write_bytes(b"")
    torch.save(book_weights(**SIZES), tmp_path / "model.pth")
    with pytest.raises(
        model.CheckpointError, match="meta.pkl next to it, which is a pickle and is never opened"
    ) as refused:
        read_source(tmp_path / "model.pth", n_head=2)
    assert "--alphabet" in str(refused.value) and "with a JSON list of characters, or the text" in str(refused.value)


def test_meta_pkl_is_refused_with_a_hint_about_the_alphabet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save(book_weights(**SIZES), tmp_path / "model.pth")
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"stoi": {}}))
    arguments = ["convert", tmp_path / "model.pth", tmp_path / "folder", "--n-head", 2, "--alphabet"]
    for name, message in {
        "meta.pkl": "found a pickle, which is never opened, expected a JSON list of characters, or the text",
        "none.txt": "found no file none.txt, expected a JSON list of characters, or the text",
    }.items():
        with pytest.raises(SystemExit):
            main([*map(str, arguments), str(tmp_path / name)])
        assert message in capsys.readouterr().err


def test_meta_pkl_itself_is_not_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "meta.pkl").write_bytes(pickle.dumps({"stoi": {}}))
    with pytest.raises(SystemExit):
        main(["convert", str(tmp_path / "meta.pkl"), str(tmp_path / "folder")])
    told = capsys.readouterr().err
    assert "found a pickle, which is never opened, expected the file of the weights, and --alphabet" in told
    assert "with a JSON list of characters, or the text that the model was trained on" in told


@pytest.mark.parametrize("alphabet", ['{"a": 1}', "[]", '["a", "a"]', '["ab"]', "[1, 2]", "["])
def test_invalid_alphabets_are_refused(alphabet: str, convert: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "alphabet.json").write_text(alphabet, encoding="utf-8")
    assert "alphabet.json: found" in convert(book_weights(**SIZES), "--n-head", 2)


def test_training_text_gives_the_alphabet(tmp_path: Path) -> None:
    torch.save(book_weights(**SIZES), tmp_path / "model.pth")
    (tmp_path / "input.txt").write_text(ALPHABET[::-1] * 2, encoding="utf-8")
    arguments = [tmp_path / "model.pth", tmp_path / "folder", "--n-head", 2, "--alphabet", tmp_path / "input.txt"]
    assert main(["convert", *map(str, arguments)]) == 0
    assert model.load(tmp_path / "folder").tokenizer.decode(range(65)) == ALPHABET


def test_existing_folder_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_model().save(tmp_path / "one")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit):
        main(["convert", str(tmp_path / "one"), str(tmp_path / "two")])
    assert "two is not empty: choose another folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["notes.txt"]
