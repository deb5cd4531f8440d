"""Each benchmark runs, on models so small that it is fast; the measured values are not checked."""

import importlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from helpers import run_async
from helpers.files import ROOT
from helpers.models import tiny_model
from helpers.training import TRAINING_TEXT

SCRIPTS = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if path.stem != "plain_demo")


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """The benchmarks choose how many threads torch uses."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "tiny"
    tiny_model(context_length=512).save(folder)
    return folder


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_benchmark_can_be_imported(name: str) -> None:
    importlib.import_module(f"bench.{name}")


def test_decode_and_trace_benchmarks_run(folder: Path) -> None:
    from bench import decode

    decode.Writer(folder, "auto", n_streams=3).write(n_tokens=5)
    for row in (decode.recording_row("recorded", folder, 5, 1), decode.trace_row("traced", folder, 1)):
        assert row.ours > 0 and row.ratio and row.as_json()["case"] == row.case


def test_lab_benchmark_runs(folder: Path) -> None:
    from bench import lab

    ours = lab.our_run(folder, "blocks.0.hook_resid_post")
    assert ours().logits.shape[:2] == (lab.N_TEXTS, lab.N_TOKENS)
    row = lab.run_row("texts", ours, {"plain": lambda: None}, rounds=2)
    assert row.ours > row.peers["plain"] and row.better == "less"


def test_serve_benchmark_runs_in_process(folder: Path) -> None:
    from bench.serve import Case, rate_of

    load = Case("tiny", folder, [2], n_tokens=6, spread=0.01, rounds=1, has_bars=False).in_process(2)
    assert len(load.clients) == 2 and rate_of(load) > 0 and load.first(0.5) > 0 and load.gap(0.5) >= 0


def test_serve_benchmark_runs_over_http(folder: Path) -> None:
    from bench import process, serve

    port = serve.free_port()
    case = serve.Case("tiny", folder, [2], n_tokens=6, spread=0.01, rounds=1, has_bars=False)
    command, path = serve.headscope(folder, port)
    # Tests of the page that ran before may keep an event loop running in this thread.
    with process.serving(command, port, path), ThreadPoolExecutor(1) as thread:
        load = thread.submit(serve.completions, port, case.prompts(2), case.n_tokens, case.spread).result()
    assert len(load.clients) == 2 and load.rate > 0


def test_outside_benchmark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import outside

    monkeypatch.setattr(outside, "SECONDS", 0.5)
    row, *parts = outside.rows([16])[:-2]
    assert row.unit == "us/token" and 0 < row.ours < 10 * outside.BAR  # of a machine that may be busy
    found = [part.case.rpartition(": ")[2] for part in parts]
    assert [part for part in found if part != "socket"] == [  # which uvloop, if installed, implements differently
        *(part for part in outside.PARTS if part != "socket"),
        "event loop and the rest",
    ]


def test_train_benchmark_runs(tmp_path: Path) -> None:
    from bench.train import race
    from model.train.settings import TrainSettings

    text = tmp_path / "text.txt"
    text.write_text(TRAINING_TEXT)
    sizes = {"n_layer": 1, "n_head": 1, "n_embd": 8, "context_length": 8, "batch_size": 2}
    torch.manual_seed(0)
    row = race(TrainSettings(data=str(text), steps=3, **sizes), tmp_path / "out")
    assert row.better == "less" and row.ours > 0 and row.peers["AdamW 1e-3"] > 0


def test_drawings_of_attention_are_small() -> None:
    from bench import view

    tokens = [f"token{i}" for i in range(view.N_TOKENS)]
    assert view.our_bytes(view.random_weights(view.N_TOKENS, is_causal=True), tokens) <= 48.6e6 / 6


def test_crowd_benchmark_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench import crowd
    from bench.harness import character_checkpoint, free_port
    from bench.process import ours, serving

    monkeypatch.setattr(crowd, "N_TOKENS", 20)
    monkeypatch.setattr(crowd, "SETTINGS", crowd.SETTINGS | {"max_new_tokens": 20})
    monkeypatch.setattr(crowd, "N_HEADS", 2)
    monkeypatch.setattr(crowd, "SECONDS_A_HEAD", 0.1)
    port = free_port()
    with serving(ours(port, "--checkpoint", str(character_checkpoint())), port) as server:
        while run_async(crowd.Session(port, "127.0.0.1").ask("GET", "/v1/models")).body.count(b'"id"') < 1:
            time.sleep(0.2)
        with ThreadPoolExecutor(1) as thread:
            rows = thread.submit(crowd.rows_of, server, 3, 1.0).result()
    found = {row.case.partition(": ")[2]: row.ours for row in rows}
    assert found["errors"] == 0 and found["texts written"] >= 3
