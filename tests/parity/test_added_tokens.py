"""A vocabulary in two files and the tokens added to it: the ids of transformers, which ``save`` keeps."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import model
from helpers.files import write_json
from helpers.models import tiny_bpe, tiny_model
from helpers.oracles.pipelines import qwen2
from model.checkpoint.vocabulary import read_tokenizer

FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
GPT2, QWEN2 = {"tokenizer_class": "GPT2Tokenizer"}, {"tokenizer_class": "Qwen2Tokenizer"}
DECODER = {
    "0": {"content": "<|endoftext|>", "special": True} | FLAGS,
    "400": {"content": "<BOS>", "special": True} | FLAGS,
    "401": {"content": "<note>", "special": False} | FLAGS,
}
CASES: dict[str, dict[str, Any]] = {
    "special": {
        "added_tokens.json": {"<BOS>": 400, "<EOS>": 401, "<PAD>": 402},
        "special_tokens_map.json": {"bos_token": "<BOS>", "eos_token": {"content": "<EOS>"}, "pad_token": "<PAD>"},
        "tokenizer_config.json": GPT2,
    },
    "not special": {"added_tokens.json": {"<note>": 400, "<BOS>": 401}, "tokenizer_config.json": GPT2},
    "in any order": {"added_tokens.json": {"<EOS>": 402, "<BOS>": 400, "<note>": 401}, "tokenizer_config.json": GPT2},
    "one begins with another": {"added_tokens.json": {"<EOS>": 400, "<EOS>2": 401}, "tokenizer_config.json": GPT2},
    "no tokenizer_config": {"added_tokens.json": {"<BOS>": 400}},
    "a token of the vocabulary": {"added_tokens.json": {"<BOS>": 400, "the": ...}, "tokenizer_config.json": GPT2},
    "ids with a gap": {"added_tokens.json": {"<BOS>": 450, "<EOS>": 420}, "tokenizer_config.json": GPT2},
    "in tokenizer_config": {
        "added_tokens.json": {"<EOS>": 402},
        "tokenizer_config.json": GPT2 | {"added_tokens_decoder": DECODER, "bos_token": "<BOS>"},
    },
    "qwen": {"added_tokens.json": {"<BOS>": 422, "<EOS>": 423}, "tokenizer_config.json": QWEN2},
    "none": {"tokenizer_config.json": GPT2},
    "gpt2 begins": {"tokenizer_config.json": GPT2 | {"add_bos_token": True}},
    "qwen has no first token": {"tokenizer_config.json": QWEN2 | {"add_bos_token": True}},
    "no token to end with": {"tokenizer_config.json": GPT2 | {"add_eos_token": True, "eos_token": None}},
    "opt": {
        "tokenizer_config.json": GPT2 | {"add_bos_token": True, "unk_token": {"content": "</s>"}},
        "special_tokens_map.json": {
            "bos_token": "</s>",
            "eos_token": "</s>",
            "unk_token": "</s>",
            "pad_token": "<pad>",
        },
    },
}
TEXTS = [
    "<BOS>Hello there<EOS>",
    "a <note>\n<PAD><|endoftext|> the 123's",
    "<EOS>2 e\u0301 the  cat",
    "<BOS",
    "<s>a</s> <unk>",
]


def write(folder: Path, name: str) -> None:
    """A vocabulary as transformers 3 saved it, with the files of a case."""
    spec = (qwen2() if name.startswith("qwen") else tiny_bpe(400).spec)["model"]
    if name == "opt":  # ids by how often a token occurs, after four tokens of which two are special
        tokens = sorted(spec["vocab"], key=lambda token: sha256(token.encode()).digest())
        first = ["<s>", "<pad>", "</s>", "<unk>"]
        spec = spec | {"vocab": {token: i for i, token in enumerate([*first, *tokens, "madeupword0000"])}}
    write_json(folder / "config.json", {"model_type": "qwen2" if name.startswith("qwen") else "gpt2"})
    write_json(folder / "vocab.json", spec["vocab"])
    merges = (merge if isinstance(merge, str) else " ".join(merge) for merge in spec["merges"])
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    for file, content in CASES[name].items():
        write_json(
            folder / file, {key: spec["vocab"][key] if value is ... else value for key, value in content.items()}
        )


@pytest.mark.parametrize("name", CASES)
def test_ids_equal_transformers(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, name)
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path), read_tokenizer(tmp_path)
    loaded = tiny_model(tokenizer=ours)
    loaded.save(tmp_path / "saved")
    again = model.load(tmp_path / "saved", device="cpu")
    saved = AutoTokenizer.from_pretrained(tmp_path / "saved")
    for text in TEXTS:
        ids = theirs(text).input_ids
        assert loaded.parse_prompt(text) == again.parse_prompt(text) == saved(text).input_ids == ids
        assert ours.decode(ids) == theirs.decode(ids[len(ours.begins_with) :])
    assert not loaded.ids_without_token
    special = {token.content: token_id for token_id, token in theirs.added_tokens_decoder.items() if token.special}
    assert special.items() <= ours.special_tokens.items()
    assert ("has the id 400, as in transformers" in caplog.text) == (name == "ids with a gap")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("added_tokens.json", ["<BOS>"], "no JSON object"),
        ("added_tokens.json", {"<BOS>": "400"}, "token '<BOS>' with the id '400', expected an integer"),
        ("added_tokens.json", {"<BOS>": 400, "<EOS>": 400}, "tokens '<BOS>' and '<EOS>' with the same id 400"),
        ("added_tokens.json", {"a": 10**12}, "token 'a' with the id 1000000000000"),
        ("special_tokens_map.json", 5, "no JSON object"),
        ("tokenizer_config.json", {"add_eos_token": True}, "found add_eos_token true, expected false"),
        ("tokenizer_config.json", QWEN2 | {"add_eos_token": True}, "found add_eos_token true, expected false"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "<BOS>"}}}, "malformed content"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"400": "<BOS>"}}, "malformed content"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"400": {}}}, "malformed content"),
    ],
)
def test_bad_files_are_refused(file: str, content: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path, "none")
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(model.CheckpointError, match=message) as caught:
        read_tokenizer(tmp_path)
    assert caught.value.file == str(tmp_path / file)
