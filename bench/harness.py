"""Shared code of the benchmarks: installation checks, interleaved timing, a table, and a final line of JSON."""

import argparse
import importlib.util
import json
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import model
from model.config import GPTConfig, RotaryConfig
from model.gpt import GPT
from model.loaded import LoadedModel
from model.modules.initial_weights import init_weights
from model.tokenizer import CharTokenizer, Tokenizer

os.environ.setdefault("HF_HUB_OFFLINE", "1")

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 48  # of the first column of a table
CACHE = Path(tempfile.gettempdir()) / "headscope-bench"
GPT2_SHAPE = GPTConfig(n_layer=12, n_head=12, n_embd=768, vocab_size=50_257, context_length=1024)
SMOLLM2_SHAPE = GPTConfig(
    n_layer=30,
    n_head=9,
    n_kv_head=3,
    n_embd=576,
    n_inner=1536,
    vocab_size=49_152,
    context_length=2048,
    layer_norm_epsilon=1e-5,
    activation_function="silu",
    gated_mlp=True,
    norm="RMSNorm",
    rotary=RotaryConfig(n_dim=64, theta=100_000.0),
    qkv_bias=False,
    attn_proj_bias=False,
    mlp_bias=False,
)
# TinyStories-33M, a GPT-Neo, of whose layers each second one has a window.
TINY_STORIES_SHAPE = GPTConfig(
    n_layer=4,
    n_head=16,
    n_embd=768,
    vocab_size=50_257,
    context_length=2048,
    windows=(None, 256, None, 256),
    qkv_bias=False,
    scale_attn_weights=False,
)
CHAR_SHAPE = GPTConfig(n_layer=6, n_head=8, n_embd=256, vocab_size=65, context_length=256)
# The layers and heads of a Llama of 1 B weights and more, but narrow; its vocabulary is that of stories-bpe.
MANY_HEADS_SHAPE = GPTConfig(
    n_layer=30,
    n_head=16,
    n_kv_head=4,
    n_embd=128,
    n_inner=256,
    vocab_size=4096,
    context_length=4096,
    rotary=RotaryConfig(n_dim=8),
    norm="RMSNorm",
    activation_function="silu",
    gated_mlp=True,
    qkv_bias=False,
    attn_proj_bias=False,
    mlp_bias=False,
)


@dataclass
class Row:
    """One claim: our value and its peers'. ``better`` says which direction is better, ``bar`` what the ratio should
    reach.
    """

    case: str
    unit: str
    ours: float
    better: str  # "more" or "less"
    peers: dict[str, float] = field(default_factory=dict)
    bar: float | None = None

    @property
    def ratio(self) -> float | None:
        """Ours over the best peer."""
        if not self.peers:
            return None
        return self.ours / (max if self.better == "more" else min)(self.peers.values())

    def as_json(self) -> dict[str, Any]:
        content = {"case": self.case, "unit": self.unit, "ours": significant(self.ours)}
        if self.ratio is not None:
            content |= {"peers": {k: significant(v) for k, v in self.peers.items()}, "ratio": round(self.ratio, 2)}
        return content | {"better": self.better} | ({} if self.bar is None else {"bar": self.bar})


def significant(value: float) -> float:
    return float(f"{value:.5g}")


def parser(description: str, **positional: str) -> argparse.ArgumentParser:
    """The command line of a benchmark; ``positional`` maps further arguments to their help."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="fewer rounds: under four minutes on two cores")
    for name, text in positional.items():
        made.add_argument(name, type=Path, help=text)
    return made


def arguments(description: str, **positional: str) -> argparse.Namespace:
    """The parsed command line of a benchmark."""
    return parser(description, **positional).parse_args()


def in_turn(
    candidates: Mapping[str, Callable[[], object]],
    rounds: int,
    of: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """The median, or ``of``, of each candidate's seconds; all run in every round, so that drift affects all equally.

    Each runs once unmeasured right before it is measured, so that the previous one's threads have stopped spinning, its
    own are awake, and its weights are in the processor's cache.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            run()
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: of(times) for name, times in seconds.items()}


def report(bench: str, rows: Iterable[Row]) -> None:
    """Print each row as soon as it is measured, then all of them as a line of JSON."""
    found = []
    for row in rows:
        peers = ", ".join(f"{name} {value:.5g}" for name, value in row.peers.items())
        ratio = "" if row.ratio is None else f"{row.ratio:.2f} x" + ("" if row.bar is None else f" (bar {row.bar})")
        print(f"{row.case:<{WIDTH}}  {row.ours:>9.5g} {row.unit:<10} {ratio:<18} {peers}", flush=True)
        found.append(row.as_json())
    print(json.dumps({"bench": bench, "rows": found}))


def random_checkpoint(
    name: str, config: GPTConfig, tokenizer: Tokenizer | None = None, dtype: torch.dtype = torch.float32
) -> Path:
    """A checkpoint with random weights of this shape, created once and kept in the temporary folder."""
    folder = CACHE / name
    if not (folder / "model.safetensors").is_file():
        torch.manual_seed(0)
        gpt = GPT(config)
        init_weights(gpt, config.n_layer)
        # Unless one is given, any vocabulary will do, because the benchmarks use token ids.
        characters = CharTokenizer({chr(0x20000 + i): i for i in range(config.vocab_size)})
        LoadedModel(name, gpt, tokenizer or characters).save(folder, dtype)
    return folder


def character_checkpoint() -> Path:
    """The shipped character model, or random weights of its shape if it is missing."""
    shipped = ROOT / "checkpoints" / "shakespeare-char"
    return shipped if shipped.is_dir() else random_checkpoint("char-random", CHAR_SHAPE)


def chat_checkpoint() -> Path:
    """The same model with a chat template."""
    folder = CACHE / "chat"
    shutil.copytree(character_checkpoint(), folder, dirs_exist_ok=True)
    (folder / "chat_template.jinja").write_text("{% for message in messages %}{{ message.content }}\n{% endfor %}")
    return folder


def open_for_bench(folder: Path, dtype: str = "auto", device: str = "cpu") -> LoadedModel:
    """Load a model, and set torch to its best number of threads."""
    from model.serving.threads import choose_threads

    loaded = model.load(folder, device=device, dtype=dtype)
    choose_threads(loaded.gpt)
    return loaded


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
)


def need_packages(*names: str) -> None:
    """Exit if a package is missing, before anything is measured."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"missing packages: {', '.join(missing)}; pip install -r bench/requirements.txt installs them")


def need_files(folder: Path, *names: str, advice: str = "") -> None:
    """Exit if a file is missing."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        sys.exit(f"missing in {folder}: {', '.join(missing)}{advice}")


def need_browser() -> str:
    """The path of an installed Chromium; exits if there is none."""
    need_packages("playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    return path or sys.exit(f"missing browser: none of {', '.join(BROWSERS)} is installed")


@contextmanager
def chromium(path: str) -> Iterator[Any]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS.split())
        try:
            yield browser
        finally:
            browser.close()


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
