"""Malicious folders: each is refused at once, with a message that can be printed anywhere."""

import struct
import time
from pathlib import Path
from typing import Any

import pytest

import model
from helpers.files import refused
from helpers.models import tiny_bpe
from helpers.texts import Texts
from model.checkpoint import files, vocabulary
from model.checkpoint import weights as memory
from model.checkpoint.files import parse_json
from model.errors import CheckpointError, Mismatch
from model.tokenizer import from_spec
from model.tokenizer.byte_pair import byte_to_character

CONFIG, WEIGHTS, TOKENIZER, INDEX = "config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json"


def test_lone_surrogates_are_refused(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text('{"weight_map": {"wte.weight": "\\ud800.safetensors"}}')
    refused(folder, INDEX, "half of a surrogate pair")
    (folder / CONFIG).write_text('{"model_type": "\\udcff"}')
    refused(folder, CONFIG, "half of a surrogate pair")
    assert parse_json(folder, '["\\ud83d\\ude00", "\\\\ud800"]') == ["\U0001f600", "\\ud800"]  # neither is half a pair


def test_names_that_are_not_text_are_refused(folder: Path) -> None:
    """File systems allow any bytes in a name."""
    name = b"bad\xff".decode("utf-8", "surrogateescape")
    renamed = folder.rename(folder.with_name(name))
    with pytest.raises(CheckpointError) as caught:
        model.load(renamed)
    error = caught.value
    assert error.file.endswith("bad\\udcff") and error.found == "a name that is not UTF-8" and str(error).encode()


@pytest.mark.parametrize(
    ("text", "key"),
    [('{"a": 1, "a": 1}', "'a'"), ('{"b": [{"c": 1, "d": 2, "c": 3}]}', "'c'"), ('{"": 0, "": 0}', "''")],
)
def test_duplicate_json_keys_are_refused(text: str, key: str, folder: Path) -> None:
    for name in (CONFIG, TOKENIZER):
        content = (folder / name).read_text()
        (folder / name).write_text(text)
        refused(folder, name, f"found the key {key} twice, expected each key once")
        (folder / name).write_text(content)


def test_duplicate_tensors_are_refused(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    name = b'"transformer.ln_f.bias":'
    again = content[8 : 8 + size].rstrip().rpartition(name)[2]
    entry = name + again[: again.index(b"}") + 1]
    header = content[8 : 8 + size].rstrip()[:-1] + b"," + entry + b"}"
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(header)) + header + content[8 + size :])
    refused(folder, WEIGHTS, "the key 'transformer.ln_f.bias' twice")


def test_huge_vocabulary_is_refused_unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 MB of empty lists would take 1.4 GB as objects."""

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr(files.json, "loads", never)
    with pytest.raises(CheckpointError, match="2,500,001 values, expected at most 2,500,000"):
        parse_json(folder, "[" + "[]," * 1_250_000)
    monkeypatch.undo()
    with (folder / TOKENIZER).open("r+b") as file:
        file.truncate(60_000_000)  # sparse
    monkeypatch.setattr(Path, "read_text", never)
    with pytest.raises(CheckpointError, match="found 60,000,000 bytes, expected at most 1,016,640"):
        vocabulary.read_tokenizer(folder, vocab_size=65)


def test_gpt2_vocabulary_is_well_within_the_bounds(texts: Texts) -> None:
    assert vocabulary.read_tokenizer(texts.encoder.parent, 50_257).vocab_size == 50_257
    encoder = texts.encoder.read_text()
    assert sum(map(encoder.count, ",[{")) < files.MAX_JSON_VALUES / 30
    assert len(encoder) * 3 < 50_257 * vocabulary.MAX_BYTES_PER_TOKEN


def test_tokens_of_exponential_length_are_refused() -> None:
    """Twenty merges make a token of a million characters, which would take days to check."""
    characters = list(byte_to_character().values())
    words = ["a" * 2**power for power in range(21)]
    spec = tiny_bpe(257).spec
    merges = [[word, word] for word in words[:-1]]
    ids = {token: i for i, token in enumerate([*characters, *words[1:], "<|endoftext|>"])}
    added = [{**spec["added_tokens"][0], "id": ids["<|endoftext|>"]}]
    started = time.process_time()
    with pytest.raises(Mismatch, match="and 2,048 bytes, expected at most 1,024 bytes"):
        from_spec(spec | {"added_tokens": added, "model": spec["model"] | {"vocab": ids, "merges": merges}})
    assert time.process_time() - started < 20


def refused_anywhere(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        model.load(folder)
    return str(caught.value)


def test_weights_larger_than_memory_are_refused(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "cgroup"
    group.mkdir()
    meminfo.write_text("MemTotal: 99 kB\nMemAvailable:       10 kB\n")
    monkeypatch.setattr(memory, "MEMINFO", meminfo)
    monkeypatch.setattr(memory, "CGROUP", group)
    assert memory.free_memory() == 10_240
    assert "GB of weights, expected at most 0.0 GB" in refused_anywhere(folder)
    (group / "memory.max").write_text("5000\n")
    (group / "memory.current").write_text("4500\n")
    (group / "memory.stat").write_text("anon 900\nactive_file 100\ninactive_file 3500\n")
    assert memory.free_memory() == 4_000  # files that nobody has read for long make room
    (group / "memory.max").write_text("max\n")
    assert memory.free_memory() == 10_240
    (group / "memory").mkdir()  # version 1
    for name, content in (("limit_in_bytes", 6_000), ("usage_in_bytes", 5_000), ("stat", "total_inactive_file 2000")):
        (group / "memory" / f"memory.{name}").write_text(f"{content}\n")
    assert memory.free_memory() == 3_000
    (group / "memory" / "memory.limit_in_bytes").write_text("none\n")
    meminfo.unlink()
    assert memory.free_memory() is None and model.load(folder).config.n_layer == 2
