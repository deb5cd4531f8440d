"""Checkpoints that llama.cpp would not read as they are here: the error says what differs, and nothing is written."""

import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.models import tiny_bpe, tiny_model
from model import LoadedModel
from model.checkpoint.__main__ import main


def with_bpe(eos_token_id: int | None = 0, **changes: Any) -> LoadedModel:
    return tiny_model(tokenizer=tiny_bpe(300), eos_token_id=eos_token_id, **changes)


REFUSED = {
    "a vocabulary of single characters": lambda: tiny_model(),
    "no end token": lambda: with_bpe(None),
    "the family opt": lambda: with_bpe(activation_function="relu"),
    "the activation function gelu": lambda: with_bpe(activation_function="gelu"),
    "a different scale of the attention scores": lambda: with_bpe(scale_attn_by_inverse_layer_idx=True),
    "tokens without a row in the model": lambda: with_bpe(vocab_size=290),
    "the package gguf is not installed": with_bpe,
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(
    reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    REFUSED[reason]().save(tmp_path / "tiny")
    with pytest.raises(SystemExit) as stopped:
        main(["gguf", str(tmp_path / "tiny"), str(tmp_path / "tiny.gguf")])
    message = capsys.readouterr().err
    assert stopped.value.code == 2 and reason in message and message.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"tiny"}
