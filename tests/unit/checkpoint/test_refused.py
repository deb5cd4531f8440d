"""Every defect of a checkpoint gives one ``CheckpointError`` that names the file, and what was found and expected."""

from pathlib import Path
from typing import Any

import pytest

import model
from helpers.files import edit_json, refused, write_json
from helpers.models import ALPHABET, char_spec, tiny_bpe, tiny_model
from model.checkpoint import source as checkpoint
from model.checkpoint import vocabulary

CONFIG, WEIGHTS, TOKENIZER, INDEX = "config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json"


def test_unchanged_copy_loads(folder: Path) -> None:
    loaded = model.load(folder)
    assert (loaded.name, loaded.config, len(loaded.sha256)) == ("tiny", tiny_model().config, 64)
    assert not loaded.gpt.training and not any(p.requires_grad for p in loaded.gpt.parameters())


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_missing_file_is_named(name: str, folder: Path) -> None:
    (folder / name).unlink()
    refused(folder, name, "found (no file|a folder)")


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, TOKENIZER])
def test_folder_in_place_of_a_file_is_refused(name: str, folder: Path) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    refused(folder, name, "found (no file|a folder)")


@pytest.mark.parametrize("source", ["no-such-folder", "", "a" * 5000, "a\0b", "/proc/self/mem", "../..", "x/y/z", "-"])
def test_missing_folder_is_named(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(model.CheckpointError, match="found"):
        model.load(source)


def test_hub_download_without_a_network_is_refused() -> None:
    for source in ("headscope-tests/no-such-model", "headscope-tests/no-such-model@v1.0"):
        with pytest.raises(model.CheckpointError) as refusal:
            model.load(source)
        assert str(refusal.value) == f"{source}: the Hub cannot be reached, and the repository is not in its cache"


@pytest.mark.parametrize("name", [CONFIG, TOKENIZER])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "invalid JSON"),
        (b"{", "invalid JSON"),
        (b"\xff\xfe{}", "bytes that are not UTF-8"),
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
def test_files_without_a_json_object_are_refused(name: str, content: bytes, message: str, folder: Path) -> None:
    (folder / name).write_bytes(content)
    refused(folder, name, message)


@pytest.mark.parametrize(("name", "limit"), [(CONFIG, 1_000_000), (TOKENIZER, 1_000_000 + 65 * 256)])
def test_huge_json_file_is_refused(name: str, limit: int, folder: Path) -> None:
    with (folder / name).open("r+b") as file:
        file.truncate(limit + 1)  # sparse
    refused(folder, name, f"found {limit + 1:,} bytes, expected at most {limit:,}")


def test_error_messages_quote_a_limited_length(folder: Path) -> None:
    edit_json(folder / CONFIG, model_type="x" * 900_000)
    assert len(refused(folder, CONFIG, "model_type 'xxx")) < 2000


TYPES = ("gpt2", "gpt_neo", "opt", "gpt_neox", "llama", "mistral", "qwen2", "qwen3", "olmo2", "gemma3_text")
OPEN = rf"these types open: {', '.join(sorted(TYPES))}\)$"
BAD_CONFIG: list[tuple[dict[str, Any], str]] = [
    (
        {"model_type": "mamba"},
        f"found model_type 'mamba', expected one of {', '.join(map(repr, TYPES))}$",
    ),
    ({"model_type": ["gpt2"]}, r"found model_type \['gpt2'\], expected one of"),
    ({"model_type": ...}, "model_type null"),
    ({"activation_function": "relu"}, "found activation_function 'relu', expected 'gelu_new' or 'gelu' \\(" + OPEN),
    ({"activation_function": ["gelu"]}, r"activation_function \['gelu'\], expected"),
    ({"activation_function": None}, "activation_function null"),
    (
        {"add_cross_attention": True},
        r"found add_cross_attention true, expected false \(a model with cross-attention does not open; " + OPEN,
    ),
    (
        {"quantization_config": {"bits": 4}},
        r"quantization_config .*, expected null \(a model with quantised weights does not open; " + OPEN,
    ),
    ({"pruned_heads": {"0": [1]}}, r"pruned_heads .*, expected {} \(a model with pruned heads does not open; " + OPEN),
    ({"is_encoder_decoder": True}, "is_encoder_decoder true"),
    ({"n_embd": 17}, "found n_embd 17 with n_head 2, expected n_embd to be a multiple of n_head$"),
    (
        {"n_layer": ..., "n_head": ...},
        "found no n_layer and no n_head, expected each of n_layer, n_head, n_embd, vocab_size, n_positions$",
    ),
    ({"layer_norm_epsilon": float("nan")}, "found layer_norm_epsilon nan, expected a number between 0 and 1$"),
    ({"layer_norm_epsilon": float("inf")}, "found layer_norm_epsilon inf, expected"),
    ({"layer_norm_epsilon": 10**400}, "layer_norm_epsilon"),
    ({"attn_pdrop": float("nan")}, "found attn_pdrop nan, expected a number of at least 0 and below 1$"),
    ({"tie_word_embeddings": "yes"}, "found tie_word_embeddings 'yes', expected true or false$"),
    ({"scale_attn_weights": None}, "found scale_attn_weights null, expected true or false$"),
    ({"eos_token_id": -1}, "found eos_token_id -1, expected null or a token id$"),
    ({"eos_token_id": [1, -2]}, "eos_token_id -2, expected null or a token id"),
    ({"bos_token_id": [1]}, r"bos_token_id \[1\], expected null or a token id"),
    ({"bos_token_id": 1.0}, "bos_token_id 1.0, expected"),
    ({"bos_token_id": True}, "bos_token_id true, expected"),
]
BAD_CONFIG += [
    ({name: value}, f"found .*{name}.* .+, expected an integer from 1 to [0-9,]+$")
    for name in ("n_layer", "n_head", "n_embd", "vocab_size", "n_positions", "n_inner")
    for value in (0, -1, 2.0, True, "16", [16], {}, float("nan"), 10**30)
]


@pytest.mark.parametrize(("changes", "message"), BAD_CONFIG)
def test_configs_that_contradict_the_weights_are_refused(
    changes: dict[str, Any], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is refused because of its config alone: no model is built and no tokenizer read."""

    def never(*args: object) -> None:
        raise AssertionError("built before the config was checked")

    monkeypatch.setattr(checkpoint, "gpt_on_meta", never)
    monkeypatch.setattr(vocabulary, "from_spec", never)
    edit_json(folder / CONFIG, **changes)
    refused(folder, CONFIG, message)


def test_absurd_total_size_is_refused(folder: Path) -> None:
    edit_json(folder / CONFIG, n_layer=512, n_embd=65536)
    refused(folder, CONFIG, "found sizes that add up to .* weights, expected at most 20,000,000,000$")


@pytest.mark.parametrize(("alphabet", "changes"), [(ALPHABET + "é", {}), (ALPHABET, {"é": 65}), ("ab", {"é": 10**6})])
def test_prompts_with_token_ids_beyond_the_vocabulary_are_refused(
    alphabet: str, changes: dict[str, int], folder: Path, tmp_path: Path
) -> None:
    spec = char_spec(alphabet)
    spec["model"]["vocab"] |= changes
    write_json(folder / TOKENIZER, spec)
    largest = max(spec["model"]["vocab"].values())
    model.load(folder, device="cpu").save(tmp_path / "saved")
    for loaded in (model.load(folder, device="cpu"), model.load(tmp_path / "saved", device="cpu")):
        assert len(loaded.parse_prompt("ab")) == 2
        message = f"Token ids must be integers from 0 to 64, found {largest}, the token 'é', which the tokenizer has"
        for read in (loaded.trace, loaded.tokenizer.encode, loaded.tokenizer.encode_prompt):
            with pytest.raises(model.UnknownTokens, match=message):
                read("abé")


def test_unsupported_tokenizers_are_refused(folder: Path) -> None:
    """The reasons are tested with ``from_spec``; this test checks that each becomes a CheckpointError."""
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


@pytest.mark.parametrize("arguments", [{"device": "abacus"}, {"device": "meta"}, {"dtype": "int4"}, {"dtype": ""}])
def test_invalid_load_arguments_are_value_errors(arguments: dict[str, str], folder: Path) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(arguments))}.*{next(iter(arguments.values()))}"):
        model.load(folder, **arguments)
