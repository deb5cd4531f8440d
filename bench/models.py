"""What the models that people have need in memory, and how fast each writes.

    python -m bench.models [--quick]

The weights are random, in the models' shapes and stored in bfloat16 as on the Hub. Memory is the most that the process
holds above what it held before, from opening the folder until one text of 88 tokens is written. The fastest of the
rounds counts.
"""

import os
from dataclasses import replace
from pathlib import Path

import torch

from bench.growth import measure, read_rate, resident
from bench.harness import GPT2_SHAPE, SMOLLM2_SHAPE, Row, arguments, random_checkpoint, report
from bench.process import MB, Server
from model.config import GPTConfig, Llama3Scaling, RotaryConfig

PYTHIA_SHAPE = GPTConfig(
    n_layer=6,
    n_head=4,
    n_embd=128,
    vocab_size=50_304,
    context_length=2048,
    activation_function="gelu",
    rotary=RotaryConfig(n_dim=8),
    parallel=True,
    tie_word_embeddings=False,
)


def pythia(n_layer: int, n_head: int, n_embd: int) -> GPTConfig:
    """A model of that size; a quarter of each head is rotated."""
    rotary = RotaryConfig(n_dim=n_embd // n_head // 4)
    sizes = {"n_layer": n_layer, "n_head": n_head, "n_embd": n_embd}
    return replace(PYTHIA_SHAPE, **sizes, head_dim=0, n_kv_head=0, rotary=rotary)


def llama(n_head: int, n_kv_head: int, theta: float = 100_000.0, head_dim: int = 64, **other: object) -> GPTConfig:
    """SmolLM2's choices with other sizes."""
    rotary = RotaryConfig(n_dim=head_dim, theta=theta)
    return replace(SMOLLM2_SHAPE, n_head=n_head, n_kv_head=n_kv_head, head_dim=head_dim, **{"rotary": rotary} | other)


MODELS = {
    "GPT-2": GPT2_SHAPE,
    "Pythia-14m": PYTHIA_SHAPE,
    "Pythia-70m": pythia(6, 8, 512),
    "Pythia-160m": pythia(12, 12, 768),
    "Pythia-410m": pythia(24, 16, 1024),
    "SmolLM2-135M": SMOLLM2_SHAPE,
    "SmolLM2-360M": llama(15, 5, n_layer=32, n_embd=960, n_inner=2560),
    "Qwen2.5-0.5B": llama(14, 2, 1e6, n_layer=24, n_embd=896, n_inner=4864, vocab_size=151_936, qkv_bias=True),
    "Qwen3-0.6B": llama(16, 8, 1e6, 128, n_layer=28, n_embd=1024, n_inner=3072, vocab_size=151_936, qk_norm=True),
    "Llama-3.2-1B": llama(
        32,
        8,
        n_layer=16,
        n_embd=2048,
        n_inner=8192,
        vocab_size=128_256,
        rotary=RotaryConfig(
            n_dim=64,
            theta=5e5,
            scaling=Llama3Scaling(factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context_length=8192),
        ),
    ),
}


def rows(name: str, folder: Path, n_tokens: int, rounds: int) -> list[Row]:
    """Tokens per second and megabytes, as stored and in int8."""
    this, limit, found = Server(0, os.getpid(), Path()), read_rate(), []
    for dtype in ("auto", "int8"):
        case, before = name if dtype == "auto" else f"{name}, int8", resident()
        this.forget_highest()
        rate = max(measure(folder, 1, 64, n_tokens, limit, name, dtype).rate for _ in range(rounds))
        found += [
            Row(case, "tokens/s", rate, "more"),
            Row(f"{case}, memory", "MB", (this.highest - before) / MB, "less"),
        ]
    return found


def main() -> None:
    quick: bool = arguments(__doc__ or "").quick
    small = [name for name, config in MODELS.items() if config.n_parameters < 200_000_000]
    found = []
    for name in small if quick else MODELS:
        folder = random_checkpoint(f"{name.lower()}-bfloat16", MODELS[name], dtype=torch.bfloat16)
        found += rows(name, folder, 24, 1 if quick else 4)
    report("models", found)


if __name__ == "__main__":
    main()
