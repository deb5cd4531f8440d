"""End tokens, sampling defaults, templates and names of special tokens: every file that says something about them."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

import model
from helpers.files import edit_json, refused, write_json
from helpers.models import scripted_model, tiny_bpe, tiny_model
from helpers.oracles.chat_templates import chat_model
from model import LoadedModel
from model.train.writing import first_token, texts_of
from web.runs.openings import DeclaredOpening, write_declared

SIDE_FILES = ("generation_config.json", "special_tokens_map.json", "chat_template.jinja")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with the vocabulary of ``qwen2``: <|endoftext|>, <|im_start|> and <|im_end|> have the ids 0, 1 and 2."""
    loaded = chat_model("chatml")
    loaded.chat_template, loaded.eos_token_id, loaded.named_tokens = "", None, {}
    loaded.save(tmp_path / "tiny")
    return tmp_path / "tiny"


def load(folder: Path) -> LoadedModel:
    return model.load(folder, device="cpu")


@pytest.mark.parametrize(
    ("config", "generation", "tokenizer", "ends"),
    [
        (None, 2, {}, (2,)),
        (0, [2, 1], {}, (0, 2, 1)),
        (None, None, {"eos_token": "<|im_end|>"}, (2,)),
        (0, 1, {"eos_token": {"content": "<|im_end|>", "special": True}}, (0, 1, 2)),
        ([2, 0], [0, 2, 99_999], {"eos_token": "<|endoftext|>"}, (2, 0)),
        (0, ..., {"eos_token": "<unknown>"}, (0,)),
        (None, 5, {"tokenizer_class": "Qwen2TokenizerFast"}, (5, 0)),
        (None, 5, {"tokenizer_class": "Qwen2TokenizerFast", "eos_token": None}, (5,)),
    ],
)
def test_every_end_token_counts(config: Any, generation: Any, tokenizer: Any, ends: Any, folder: Path) -> None:
    edit_json(folder / "config.json", eos_token_id=config)
    edit_json(folder / "tokenizer_config.json", **tokenizer)
    if generation is not ...:
        write_json(folder / "generation_config.json", {"eos_token_id": generation, "max_length": 9})
    loaded = load(folder)
    assert loaded.end_token_ids == ends
    loaded.save(folder.parent / "again")
    again = load(folder.parent / "again")
    assert again.end_token_ids == ends and again.generation_config == loaded.generation_config
    assert (folder.parent / "again" / "generation_config.json").exists() == (generation is not ...)


def test_sampling_defaults_are_the_files_own(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / "generation_config.json"
    usual = {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "min_p": None, "typical_p": 0.5}
    write_json(path, usual)
    loaded = load(folder)
    assert loaded.default_sampling == {"temperature": 0.6, "top_p": 0.9, "top_k": 20} and not caplog.messages
    asked = loaded.request("a", 3, seed=1).sampling
    assert (asked.temperature, asked.top_p, asked.top_k) == (1.0, 1.0, None)  # only used where they are asked for
    assert len(list(loaded.generate("a", 3, seed=1, **loaded.default_sampling))) <= 3
    write_json(path, usual | {"do_sample": False, "repetition_penalty": 1.1})
    assert load(folder).default_sampling == {"temperature": 0.0, "repetition_penalty": 1.1}
    write_json(path, {"temperature": "hot", "top_p": 0.9, "top_k": -5})
    with caplog.at_level(logging.WARNING):
        assert load(folder).default_sampling == {"top_p": 0.9}
    assert len(caplog.messages) == 2 and str(path) in caplog.text
    assert "temperature must be a number from 0 to 100, found 'hot' is not used" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "invalid JSON"),
        ("[]", "no JSON object"),
        ('{"eos_token_id": "2"}', "eos_token_id '2', expected null or a token id"),
        ('{"eos_token_id": [2, -1]}', "eos_token_id -1, expected null or a token id"),
        ('{"eos_token_id": true}', "eos_token_id true, expected null or a token id"),
    ],
)
def test_malformed_generation_configs_are_refused(content: str, message: str, folder: Path) -> None:
    (folder / "generation_config.json").write_text(content)
    refused(folder, "generation_config.json", message)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("special_tokens_map.json", "[]", "no JSON object"),
        ("tokenizer_config.json", "3", "no JSON object"),
        ("tokenizer_config.json", '{"bos_token": 5}', "bos_token 5, expected null, a text, or an object"),
        ("tokenizer_config.json", '{"pad_token": {"content": [1]}}', "pad_token .*, expected null, a text, or an"),
    ],
)
def test_malformed_names_of_tokens_are_refused(file: str, content: str, message: str, folder: Path) -> None:
    (folder / file).write_text(content)
    refused(folder, file, message)


def test_nothing_of_the_model_before_is_left_after_saving(folder: Path) -> None:
    for new in (tiny_model(seed=1), load(folder)):  # with another vocabulary, and with the same
        load(folder).save(folder)
        (folder / "chat_template.jinja").write_text("{{ messages }}")
        write_json(folder / "generation_config.json", {"eos_token_id": 3})
        write_json(folder / "special_tokens_map.json", {"eos_token": "<|im_end|>"})
        new.save(folder)
        again = load(folder)
        assert (again.end_token_ids, again.chat_template) == ((), "")
        assert not any((folder / name).exists() for name in SIDE_FILES)


@pytest.mark.parametrize("templates", [[{"name": "default", "template": "b"}, {"name": "rag"}], {"default": "b"}])
def test_the_default_of_named_templates_is_used(templates: Any, folder: Path) -> None:
    edit_json(folder / "tokenizer_config.json", chat_template=templates)
    assert load(folder).chat_template == "b"
    (folder / "chat_template.jinja").write_text("a file of its own")
    assert load(folder).chat_template == "a file of its own"


ENDS = (0, 7)


def two_ended(script: list[int]) -> LoadedModel:
    loaded = scripted_model(script, tiny_bpe(), eos_token_id=ENDS[0])
    loaded.other_end_ids = ENDS[1:]
    return loaded


@pytest.mark.parametrize("end", ENDS)
def test_openings_and_texts_to_train_on_end_at_any_end_token(end: int) -> None:
    ids = tiny_bpe().encode("ROMEO")
    loaded = two_ended([*ids[1:], ids[0], end, ids[0], ids[0], ids[0]])
    opening = write_declared(loaded, DeclaredOpening(prompt="R", tokens=len(ids) + 2, head=[0, 0]))
    assert opening is not None and end not in opening.ids
    (text,) = texts_of(loaded, torch.tensor([[*ids, end, *ids]]))
    assert text == "ROMEO"
    loaded.eos_token_id = None
    assert first_token(loaded) == ENDS[1]


def test_a_text_begins_with_the_token_of_every_prompt() -> None:
    assert first_token(chat_model("llama 3")) == chat_model("llama 3").tokenizer.begins_with[0]
