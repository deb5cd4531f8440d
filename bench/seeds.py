"""In how many of ten trainings of the sample text a head gets a clear role.

    python -m bench.seeds

Each seed trains what the button of the page Train trains: its smallest size on the sample text. The clock is the
processor time of one thread; on busy cores it still allows fewer steps, so the steps are printed. Roles are measured as
the page measures them, on the weights that are kept. Needs Node.js, which assembles the sample text.
"""

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

import torch

from bench.harness import ROOT, Row, report
from bench.train import OneCore
from model.lens.head_roles import ROLES, role_scores, threshold
from model.loaded import load
from model.train.settings import TrainSettings
from web.training.process import recipe
from web.training.training_request import SIZES

SEEDS = range(10)
SAMPLE = "import { sampleText } from './web/js/train/sample_text.mjs'; process.stdout.write(sampleText());"


def sample_text() -> str:
    made = subprocess.run(
        ["node", "--input-type=module", "--eval", SAMPLE], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    )
    return made.stdout


def clear_roles(text: Path, folder: Path, seed: int) -> list[str]:
    """The roles that are clear in a model trained with ``seed``, each with its best head and that head's score."""
    size = SIZES[0]
    settings = TrainSettings(data=str(text), seed=seed, **recipe(size, size.seconds))
    trainer = OneCore(settings, folder, lambda _: None)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        trainer.run()
    scores = role_scores(load(folder, device="cpu"))
    best = {role: scores.best(role) for role in ROLES}
    found = [
        f"{role.replace('_', ' ')} L{layer} H{head} {score:.2f}"
        for role, (layer, head, score) in best.items()
        if score >= threshold(scores.uniform)
    ]
    nearest = max(score for _, _, score in best.values())
    said = "; ".join(found) or f"none, at most {nearest:.2f}"
    print(f"seed {seed}: {trainer.progress['step']} steps, loss {trainer.progress['best']:.3f}; {said}", flush=True)
    return found


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "sample.txt"
        text.write_text(sample_text(), encoding="utf-8")
        clear = sum(bool(clear_roles(text, folder / str(seed), seed)) for seed in SEEDS)
    report("seeds", [Row(f"trainings of {len(SEEDS)} with a clear role", "trainings", clear, "more")])


if __name__ == "__main__":
    main()
