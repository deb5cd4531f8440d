"""Record the training with which rung 3 of Learn opens: the lecture's 10,000 steps on tiny Shakespeare.

``python -m bench.lecture TINYSHAKESPEARE.txt`` writes ``web/learn/bigram_lecture.json``: what ``BigramTraining``
reports, and the whole table after the last step.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from model.ladder.bigram import BigramTraining

STEPS, LEARNING_RATE, SEED = 10_000, 1e-3, 1
FILE = Path(__file__).parents[1] / "web" / "learn" / "bigram_lecture.json"


def record(text: str) -> dict[str, Any]:
    """The whole training as JSON."""
    training = BigramTraining(text, STEPS, LEARNING_RATE, SEED)
    before = training.begin()
    advanced = training.advance(float("inf"))
    with torch.inference_mode():
        table = training.model.table.weight.softmax(dim=-1)
    end = training.end("")
    del end["sentence"]
    return rounded_to({"before": before, "training": advanced, "after": end}, 4) | {
        "table": [[float(f"{p:.4g}") for p in row] for row in table.tolist()]
    }


def rounded_to(value: Any, digits: int) -> Any:
    """``value`` with all its numbers rounded."""
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, list):
        return [rounded_to(each, digits) for each in value]
    return {name: rounded_to(each, digits) for name, each in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(Path(sys.argv[1]).read_text()), separators=(",", ":")) + "\n")
