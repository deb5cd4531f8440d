"""Whatever is wrong with a checkpoint is one ``CheckpointError`` that names the file, what was found and expected."""

import json
import pickle
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import model
from helpers.files import edit_json, write_json
from helpers.models import ALPHABET, char_spec, tiny_bpe, tiny_model
from model.checkpoint import load as checkpoint
from model.checkpoint import read

CONFIG, WEIGHTS, TOKENIZER, INDEX = "config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "tiny"
    tiny_model().save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(saved, tmp_path / "tiny")


def refused(folder: Path, file: str, message: str) -> str:
    with pytest.raises(model.CheckpointError) as caught:
        model.load(folder, device="cpu")
    error = caught.value
    assert error.file == str(folder / file)
    assert error.found and error.expected
    assert str(error) == f"{error.file}: found {error.found}, expected {error.expected}"
    assert re.search(message, str(error)), str(error)
    assert str(error).encode()
    return str(error)


def test_the_copy_loads(folder: Path) -> None:
    loaded = model.load(folder)
    assert (loaded.name, loaded.config, len(loaded.sha256)) == ("tiny", tiny_model().config, 64)
    assert not loaded.gpt.training and not any(p.requires_grad for p in loaded.gpt.parameters())


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_a_missing_file(name: str, folder: Path) -> None:
    (folder / name).unlink()
    refused(folder, name, "found no file, expected")


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_a_folder_in_place_of_a_file(name: str, folder: Path) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    refused(folder, name, "found no file, expected")


@pytest.mark.parametrize("source", ["no-such-folder", "", "a" * 5000, "a\0b", "/proc/self/mem", "../..", "x/y/z", "-"])
def test_no_such_folder(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(model.CheckpointError, match="found"):
        model.load(source)


def test_a_hub_repository_without_a_network() -> None:
    with pytest.raises(model.CheckpointError, match=r"no such folder \(on the Hub: .*\), expected a checkpoint folder"):
        model.load("headscope-tests/no-such-model")


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "invalid JSON"),
        (b"{", "invalid JSON"),
        (b"\xff\xfe{}", "invalid JSON .*utf-8"),
        (b"\xef\xbb\xbf{}", "invalid JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "invalid JSON"),
        (b"null", "found no "),
        (b"[]", "found no "),
        (b"5", "found no "),
        (b'"text"', "found no "),
        (b"NaN", "found no "),
    ],
)
def test_no_json_or_no_object(name: str, content: bytes, message: str, folder: Path) -> None:
    (folder / name).write_bytes(content)
    refused(folder, name, message)


@pytest.mark.parametrize(("name", "limit"), [(CONFIG, 1_000_000), (TOKENIZER, 64_000_000)])
def test_a_huge_json_file(name: str, limit: int, folder: Path) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(limit + 1)  # sparse
    refused(folder, name, f"found {limit + 1:,} bytes, expected at most {limit:,}")


def test_an_error_repeats_only_so_much(folder: Path) -> None:
    edit_json(folder / CONFIG, model_type="x" * 900_000)
    assert len(refused(folder, CONFIG, "model_type 'xxx")) < 2000


BAD_CONFIG: list[tuple[dict[str, Any], str]] = [
    ({"model_type": "llama"}, "found model_type 'llama', expected 'gpt2'$"),
    ({"model_type": ...}, "model_type None"),
    ({"activation_function": "relu"}, "found activation_function 'relu', expected 'gelu_new'$"),
    ({"activation_function": "gelu"}, "activation_function 'gelu', expected"),
    ({"activation_function": None}, "activation_function None"),
    ({"add_cross_attention": True}, "found add_cross_attention True, expected false$"),
    ({"quantization_config": {"bits": 4}}, "quantization_config .*, expected null$"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads .*, expected {}$"),
    ({"is_encoder_decoder": True}, "is_encoder_decoder True"),
    ({"n_embd": 17}, "found n_embd 17 with n_head 2, expected an n_embd divisible by n_head$"),
    (
        {"n_layer": ..., "n_head": ...},
        "found no n_layer and no n_head, expected each of n_layer, n_head, n_embd, vocab_size, n_positions$",
    ),
    ({"layer_norm_epsilon": float("nan")}, "found layer_norm_epsilon nan, expected a number between 0 and 1$"),
    ({"layer_norm_epsilon": float("inf")}, "found layer_norm_epsilon inf, expected"),
    ({"layer_norm_epsilon": 10**400}, "layer_norm_epsilon"),
    ({"attn_pdrop": float("nan")}, "found attn_pdrop nan, expected a number of at least 0 and below 1$"),
    ({"tie_word_embeddings": "yes"}, "found tie_word_embeddings 'yes', expected true or false$"),
    ({"scale_attn_weights": None}, "found scale_attn_weights None, expected true or false$"),
    ({"eos_token_id": -1}, "found eos_token_id -1, expected null or a token id$"),
    ({"eos_token_id": [1, 2]}, r"eos_token_id \[1, 2\], expected"),
    ({"bos_token_id": 1.0}, "bos_token_id 1.0, expected"),
    ({"bos_token_id": True}, "bos_token_id True, expected"),
]
BAD_CONFIG += [
    ({name: value}, f"found .*{name}.* .+, expected an integer from 1 to [0-9,]+$")
    for name in ("n_layer", "n_head", "n_embd", "vocab_size", "n_positions", "n_inner")
    for value in (0, -1, 2.0, True, "16", [16], {}, float("nan"), 10**30)
]


@pytest.mark.parametrize(("changes", "message"), BAD_CONFIG)
def test_config_lies(changes: dict[str, Any], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by its text alone: no model is built, no tokenizer read."""

    def never(*args: object) -> None:
        raise AssertionError("built before the config was checked")

    monkeypatch.setattr(checkpoint, "GPT", never)
    monkeypatch.setattr(read, "from_spec", never)
    edit_json(folder / CONFIG, **changes)
    refused(folder, CONFIG, message)


@pytest.mark.parametrize(
    "changes",
    [{"n_layer": 500, "n_embd": 1600}, {"vocab_size": 4_000_000, "n_embd": 4096}, {"n_positions": 1_048_576}],
)
def test_sizes_that_the_file_does_not_have_allocate_nothing(changes: dict[str, int], folder: Path) -> None:
    """Up to 60 GB by the config, a few kB in the file."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    edit_json(folder / CONFIG, **changes)
    refused(folder, WEIGHTS, "of shape .* as config.json implies")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_absurd_sizes_together(folder: Path) -> None:
    edit_json(folder / CONFIG, n_layer=512, n_embd=65536)
    refused(folder, CONFIG, "found sizes that add up to .* weights, expected at most 20,000,000,000$")


def with_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


LN, QKV = "transformer.h.1.ln_2.weight", "transformer.h.0.attn.c_attn.weight"
BAD_TENSORS: list[tuple[str, Callable[[dict[str, torch.Tensor]], object], str]] = [
    ("missing", lambda t: t.pop(LN), r"no tensor h.1.ln_2.weight \(1 missing\)"),
    ("all missing", lambda t: [t.pop(name) for name in list(t)[1:]], r"no tensor .* missing\)"),
    ("extra", lambda t: t.update({"transformer.h.2.ln_1.weight": torch.ones(16)}), "the tensor transformer.h.2.ln_1"),
    ("another's", lambda t: t.update({"score.weight": torch.ones(2, 16)}), "score.weight, expected only the tensors"),
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
    ("untied", lambda t: t.update({"lm_head.weight": torch.ones(65, 16)}), "lm_head.weight that differs from wte"),
]


@pytest.mark.parametrize(("change", "message"), [pytest.param(*case[1:], id=case[0]) for case in BAD_TENSORS])
def test_bad_tensors(change: Callable[[dict[str, torch.Tensor]], object], message: str, folder: Path) -> None:
    with_tensors(folder, change)
    refused(folder, WEIGHTS, message)


def test_no_head_where_it_is_not_tied(folder: Path) -> None:
    edit_json(folder / CONFIG, tie_word_embeddings=False)
    refused(folder, WEIGHTS, "no tensor lm_head.weight")


@pytest.mark.parametrize(("alphabet", "changes"), [(ALPHABET + "é", {}), (ALPHABET, {"é": 65}), ("ab", {"é": 10**6})])
def test_token_ids_beyond_the_vocabulary(alphabet: str, changes: dict[str, int], folder: Path) -> None:
    spec = char_spec(alphabet)
    spec["model"]["vocab"] |= changes
    write_json(folder / TOKENIZER, spec)
    largest = max(spec["model"]["vocab"].values())
    refused(folder, TOKENIZER, f"found token id {largest}, expected ids below vocab_size 65")


def test_a_tokenizer_that_cannot_be_honoured(folder: Path) -> None:
    """Every reason is tested with ``from_spec``; here, that each becomes a CheckpointError."""
    spec = char_spec()
    for change in ({"normalizer": {"type": "NFC"}}, {"decoder": 5}, {"added_tokens": 5}, {"pre_tokenizer": []}):
        write_json(folder / TOKENIZER, spec | change)
        assert "found found" not in refused(folder, TOKENIZER, "found (.+), expected ")
    bpe = tiny_bpe(257).spec
    for added in (5, [5], [{"content": "x"}], [{"content": "x", "id": 2**70}], {"content": "x"}, [[]], "abc"):
        write_json(folder / TOKENIZER, bpe | {"added_tokens": added})
        refused(folder, TOKENIZER, "found (malformed content|the added token|token 'x') .*, expected ")
    for merges in (5, {"a": 1}, [5], [[[], []]], "abc", [["a", "b"]]):
        write_json(folder / TOKENIZER, bpe | {"model": bpe["model"] | {"merges": merges}})
        refused(folder, TOKENIZER, "found (malformed content|the merge) .*, expected ")


class Trap:
    """Its pickle creates a file when opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", ["torch", 2, 4, 5])
def test_a_pickle_is_never_opened(protocol: str | int, folder: Path, tmp_path: Path) -> None:
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
def test_bad_index(content: Any, message: str, folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    write_json(folder / INDEX, content)
    refused(folder, INDEX, message)


@pytest.mark.parametrize("name", ["gone.safetensors", "x" * 300 + ".safetensors", "a\0.safetensors"])
def test_a_missing_shard(name: str, folder: Path) -> None:
    (folder / WEIGHTS).rename(folder / "one.safetensors")
    write_json(folder / INDEX, {"weight_map": {"wte.weight": "one.safetensors", "wpe.weight": name}})
    refused(folder, name, "no file")
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}}))
    assert model.load(folder).config.n_layer == 2


@pytest.mark.parametrize("arguments", [{"device": "abacus"}, {"device": "meta"}, {"dtype": "int4"}, {"dtype": ""}])
def test_other_settings_are_not_the_checkpoints_fault(arguments: dict[str, str], folder: Path) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}.*{next(iter(arguments.values()))}"):
        model.load(folder, **arguments)
