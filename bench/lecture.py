"""Record what Learn shows of the lecture's models on tiny Shakespeare.

``python -m bench.lecture TINYSHAKESPEARE.txt`` writes two files in ``web/learn``. ``bigram_lecture.json`` is the
training with which rung 3 opens: what ``BigramTraining`` reports in 10,000 steps from the lecture's seed, and the whole
table after the last. ``loss_ladder.json`` has the losses of the models of ``model.ladder.loss_ladder``: for rung 9
those that grow from part to part, for rung 7 those of a block with and without the mask.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from model.ladder import loss_ladder
from model.ladder.bigram import BigramTraining
from model.ladder.loss_ladder import MODELS, train_one, train_peeking

STEPS, LEARNING_RATE = 10_000, 1e-3
LADDER_SEED = 1
FOLDER = Path(__file__).parents[1] / "web" / "learn"


def record(text: str) -> dict[str, Any]:
    """The whole training as JSON."""
    training = BigramTraining(text, STEPS, LEARNING_RATE)
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


def climb(text: str) -> dict[str, Any]:
    """The losses of the models as JSON."""
    models = [train_one(name, text, seed=LADDER_SEED)._asdict() for name in MODELS]
    peeking = [train_peeking(has_mask, text, seed=LADDER_SEED)._asdict() for has_mask in (True, False)]
    found = {"steps": loss_ladder.STEPS, "seed": LADDER_SEED, "models": models, "peeking": peeking}
    climbed: dict[str, Any] = rounded_to(found, 4)
    return climbed


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text()
    for name, recorded in (("bigram_lecture", record(text)), ("loss_ladder", climb(text))):
        (FOLDER / f"{name}.json").write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
