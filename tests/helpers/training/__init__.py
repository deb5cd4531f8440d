"""A text that a small model can learn, and the command line of a small training run."""

from pathlib import Path

TRAINING_TEXT = "the cat sat on the mat. the dog sat on the cat. the mat lay on the dog. " * 40


def train_flags(text: Path, out: Path, *more: str) -> list[str]:
    """The command line of a small, quiet training run."""
    small = "--n-layer 2 --n-head 2 --n-embd 16 --context-length 16 --batch-size 4"
    quiet = "--sample-every 0 --eval-every 5 --save-every 5 --warmup 2"
    return ["--data", str(text), "--out", str(out), *small.split(), *quiet.split(), *more]
