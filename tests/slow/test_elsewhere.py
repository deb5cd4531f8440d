"""Shipped checkpoints in other programs, unchanged: transformers, its server, and CTranslate2's own converter.

One for each kind of vocabulary; ``tests/parity`` opens all of them in transformers.
"""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import torch
from transformers import pipeline

import model
from helpers.api import post_body
from helpers.files import ROOT
from helpers.runs import new_ids, write_text
from helpers.serve_once import free_port, wait_until_healthy
from helpers.server import Server
from model.checkpoint.folder_format import CONFIG, WEIGHTS

PROMPTS = {"shakespeare-char": "ROMEO:", "stories-bpe": "Once upon a time"}
N_TOKENS = 60


def greedy(loaded: model.LoadedModel, prompt: str, n: int = N_TOKENS) -> list[int]:
    return [step.token_id for step in loaded.generate(prompt, n, temperature=0)]


@pytest.fixture(scope="module", params=PROMPTS)
def folder(request: pytest.FixtureRequest) -> Path:
    return ROOT / "checkpoints" / str(request.param)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> model.LoadedModel:
    return model.load(folder, device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def prompt(folder: Path, loaded: model.LoadedModel) -> str:
    prompt = PROMPTS[folder.name]
    assert loaded.tokenizer.encode(prompt)
    return prompt


def test_transformers_pipeline_opens_a_checkpoint(folder: Path, loaded: model.LoadedModel, prompt: str) -> None:
    write = pipeline("text-generation", model=str(folder), dtype=torch.float32, device="cpu")
    (answer,) = write(prompt, max_new_tokens=N_TOKENS, do_sample=False, pad_token_id=0)
    ids = greedy(loaded, prompt)
    ids = ids[:-1] if ids[-1] == loaded.eos_token_id else ids
    assert answer["generated_text"] == prompt + loaded.tokenizer.decode(ids)


@pytest.fixture(scope="module")
def peer(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of ``transformers serve``."""
    port, log = free_port(), tmp_path_factory.mktemp("log") / "transformers.txt"
    program = str(Path(sys.executable).with_name("transformers"))
    command = [program, "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            wait_until_healthy(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def test_transformers_server_serves_a_checkpoint(
    folder: Path, loaded: model.LoadedModel, prompt: str, peer: str
) -> None:
    body = {"model": str(folder), "prompt": prompt, "max_tokens": 20, "temperature": 0, "seed": 1}
    answer = httpx.post(f"{peer}/completions", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"] == loaded.tokenizer.decode(greedy(loaded, prompt, 20))


def test_remote_transformers_server_writes_and_headscope_reads_along(
    folder: Path, loaded: model.LoadedModel, prompt: str, peer: str, launch: Callable[..., Server]
) -> None:
    server = launch(folder, engine_urls=(peer,), engine_models=(str(folder),))
    options = {"model": folder.name, "prompt": prompt, "temperature": 0, "seed": 1}
    pointers = write_text(server, **options, max_new_tokens=20)
    written = loaded.tokenizer.decode(greedy(loaded, prompt, 20))
    ids = loaded.tokenizer.encode(prompt) + loaded.tokenizer.encode(written)
    assert new_ids(pointers) == ids and pointers[-1]["state"] == "done"
    assert pointers[-1]["rows"] == len(ids)
    (choice,) = post_body(server, options | {"max_tokens": 20, "logprobs": 1, "stop": [written[-3:]]}).json()["choices"]
    assert written.startswith(choice["text"]) and choice["finish_reason"] == "stop"
    logprobs = loaded.trace(ids).logits.log_softmax(-1)
    expected = [float(logprobs[at - 1, ids[at]]) for at in range(len(loaded.tokenizer.encode(prompt)), len(ids))]
    told = choice["logprobs"]["token_logprobs"]
    assert told == pytest.approx(expected[: len(told)], abs=1e-3)


def test_ctranslate2_converts_a_checkpoint(
    folder: Path, loaded: model.LoadedModel, prompt: str, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ctranslate2
        from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(folder)).convert(str(tmp_path / "converted"))
    path = tmp_path / "converted" / "config.json"
    config = json.loads(path.read_text())
    if loaded.tokenizer.kind == "char":
        # Its loader requires strings; naming tokens in our folder would make transformers drop them from the text.
        config |= {name: config.get(name) or "<none>" for name in ("bos_token", "eos_token", "unk_token")}
        path.write_text(json.dumps(config))
    vocabulary = json.loads((tmp_path / "converted" / "vocabulary.json").read_text(encoding="utf-8"))
    generator = ctranslate2.Generator(str(tmp_path / "converted"), compute_type="float32")
    tokens = [vocabulary[i] for i in loaded.tokenizer.encode(prompt)]
    (result,) = generator.generate_batch(
        [tokens], max_length=N_TOKENS, sampling_topk=1, include_prompt_in_result=False, return_end_token=True
    )
    assert result.sequences_ids[0] == greedy(loaded, prompt)


def test_vllm_requirements_for_gpt2_are_met(folder: Path) -> None:
    """vLLM chooses the class by ``architectures``, and refuses cross-attention and scores scaled by layer."""
    config = json.loads((folder / CONFIG).read_text())
    assert config["architectures"] == ["GPT2LMHeadModel"] and config["model_type"] == "gpt2"
    assert not config.get("add_cross_attention") and not config["scale_attn_by_inverse_layer_idx"]
    assert not config.get("reorder_and_upcast_attn") and config["activation_function"] in ("gelu_new", "gelu")
    from safetensors import safe_open

    with safe_open(folder / WEIGHTS, framework="pt") as file:
        names = set(file.keys())
    layer = "transformer.h.0"
    parts = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj", "ln_1", "ln_2")
    expected = {f"{layer}.{part}.{kind}" for part in parts for kind in ("weight", "bias")}
    assert {name for name in names if name.startswith(f"{layer}.")} == expected
    assert {name for name in names if ".h." not in name} == {
        *(f"transformer.{name}" for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"))
    }
