"""A GGUF file, written with the package gguf, is the same model in llama.cpp: token ids and log-probabilities."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import model
from helpers.files import ROOT
from helpers.models import PROSE, prompt_ids, tiny_bpe, tiny_model
from helpers.third_party import llama_cpp
from helpers.third_party.packages import with_packages

LLAMA: dict[str, Any] = {
    "n_embd": 32,
    "n_head": 4,
    "n_kv_head": 2,
    "head_dim": 12,
    "rotary": model.config.RotaryConfig(n_dim=12, theta=50.0),
    "norm": "RMSNorm",
    "gated_mlp": True,
    "activation_function": "silu",
    "qkv_bias": True,
    "attn_proj_bias": True,
    "mlp_bias": True,
}
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_head": 4},
    "gpt2, untied, padded": {"tie_word_embeddings": False, "n_inner": 24, "vocab_size": 420, "qkv_bias": False},
    "llama": LLAMA
    | {"n_kv_head": 4, "head_dim": 8, "qkv_bias": False, "attn_proj_bias": False, "mlp_bias": False}
    | {"rotary": model.config.RotaryConfig(n_dim=8, theta=10_000.0)},
    "llama, grouped, wide heads, biases, untied": LLAMA | {"tie_word_embeddings": False},
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return with_packages(tmp_path_factory.mktemp("gguf"), "gguf", "xllamacpp")


def run(environment: dict[str, str], *arguments: object, **options: Any) -> str:
    command = [sys.executable, *map(str, arguments)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, **options)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


def assert_same(folder: Path, path: Path, environment: dict[str, str]) -> None:
    run(environment, "-m", "model.checkpoint", "gguf", folder, path)
    loaded = model.load(folder, device="cpu", dtype="float32")
    text = PROSE + "<|endoftext|>Once upon a time there wasn't a   cat.\n\n"
    ids = prompt_ids(24, loaded.tokenizer.vocab_size)
    asked = {"text": text, "ids": ids, "n_probs": 400}
    found = json.loads(run(environment, llama_cpp.__file__, path, input=json.dumps(asked)).splitlines()[-1])
    assert found["ids"] == loaded.tokenizer.encode(text)
    compared = list(zip(found["logprobs"], loaded.trace(ids).logits.log_softmax(-1), strict=True))
    assert sum(len(theirs) == 400 for theirs, _ in compared) >= 12
    differences = [abs(logprob - float(ours[int(i)])) for theirs, ours in compared for i, logprob in theirs.items()]
    assert max(differences) <= 0.05


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    tiny_model(tokenizer=tiny_bpe(), eos_token_id=0, **SHAPES[name]).save(tmp_path / "tiny")
    assert_same(tmp_path / "tiny", tmp_path / "tiny.gguf", environment)


def test_the_shipped_model(environment: dict[str, str], tmp_path: Path) -> None:
    assert_same(ROOT / "checkpoints" / "stories-bpe", tmp_path / "stories.gguf", environment)
