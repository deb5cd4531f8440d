"""The quality of training: ``model.train`` compared with the standard recipe for small GPTs.

    python -m bench.train FILE [--quick | --minute | --architectures]

Both train the same model on the characters of ``FILE`` for the same wall time, step by step in turn in one process, so
that other load affects both equally. The benchmark prints the losses on the whole validation split. The model is the
default one; with ``--quick``, the small one of nanoGPT's CPU example.

``--minute`` measures the result of training the page's medium size for a minute. Its clock is the processor time of one
thread, so that other load makes no difference. Two idle cores make a quarter more steps in a minute.

``--architectures`` trains all of the page's sizes by that clock, in turn as GPT-2 and as a Llama with as many weights;
``--minute`` is its medium GPT-2.
"""

import contextlib
import math
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW

from bench.harness import Row, parser, report
from model.modules.initial_weights import init_weights
from model.train.data import random_batch
from model.train.live import LiveTrainer
from model.train.losses import loss_of, validation_loss
from model.train.settings import TrainSettings
from model.train.trainer import Trainer
from web.training.process import recipe
from web.training.training_request import SIZES, Size

PEAK, FLOOR = 1e-3, 1e-4  # learning rates
WARMUP = 0.04  # fraction of the run
DECAY = 0.1
CPU_EXAMPLE: dict[str, Any] = {"n_layer": 4, "n_head": 4, "n_embd": 128, "context_length": 64, "batch_size": 12}
CPU_EXAMPLE |= {"dropout": 0.0, "steps": 1500}


class Baseline:
    """nanoGPT's recipe for characters: AdamW, cosine to a tenth, clipped gradients, and the same dropout.

    It uses the model, data, batch size and precision of ``trainer``.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, settings = trainer, trainer.settings
        torch.manual_seed(settings.seed)
        self.gpt = type(trainer.gpt)(trainer.config).to(trainer.device)
        init_weights(self.gpt, trainer.config.n_layer)
        matrices = [p for p in self.gpt.parameters() if p.dim() >= 2]
        vectors = [p for p in self.gpt.parameters() if p.dim() < 2]
        groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = AdamW(groups, lr=PEAK, betas=(0.9, 0.99))
        self.batches = torch.Generator().manual_seed(settings.seed)
        self.steps = 0

    def step(self, done: float) -> None:
        """One step; ``done`` is the completed fraction of the run."""
        settings, device = self.trainer.settings, self.trainer.device
        cosine = FLOOR + (PEAK - FLOOR) * 0.5 * (1 + math.cos(math.pi * (done - WARMUP) / (1 - WARMUP)))
        for group in self.optimizer.param_groups:
            group["lr"] = cosine if done >= WARMUP else PEAK * (done + 1 / settings.steps) / WARMUP
        self.gpt.train()
        inputs, targets = random_batch(
            self.trainer.data.train, settings.batch_size, settings.context_length, self.batches
        )
        with torch.autocast(device.type, torch.bfloat16, enabled=self.trainer.use_bfloat16):
            loss = loss_of(self.gpt, inputs.to(device), targets.to(device))
        loss.backward()
        clip_grad_norm_(self.gpt.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.steps += 1


def race(settings: TrainSettings, folder: Path) -> Row:
    """The loss of both after the same time, in nats per character."""
    ours = Trainer(settings, folder)
    baseline = Baseline(ours)
    our_seconds = their_seconds = 0.0
    for step in range(settings.steps):
        started = time.perf_counter()
        ours.step()
        ours.progress["step"] += 1
        our_seconds += time.perf_counter() - started
        while their_seconds < our_seconds:
            started = time.perf_counter()
            baseline.step(step / settings.steps)
            their_seconds += time.perf_counter() - started
    minutes = our_seconds / 60
    print(f"{minutes:.1f} minutes each: {settings.steps} steps of ours, {baseline.steps} of the baseline")
    theirs = validation_loss(baseline.gpt, ours.data.validation, settings.context_length)
    case = f"validation after {minutes:.1f} minutes"
    return Row(case, "nats/token", ours.validation_loss(), "less", {"AdamW 1e-3": theirs})


class OneCore(LiveTrainer):
    """A run whose clock is the processor time of this process."""

    clock = staticmethod(time.process_time)


def trained(text: Path, folder: Path, size: Size, arch: str, seconds: float) -> float:
    """Nats per character on the whole held-out tenth; the time includes all that the page shows during training."""
    torch.set_num_threads(1)
    settings = TrainSettings(data=str(text), arch=arch, **recipe(size, seconds))
    trainer = OneCore(settings, folder / f"{size.name}-{arch}", lambda _: None)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        trainer.run()
    loss, progress = trainer.progress["best"], trainer.progress
    assert loss is not None
    print(
        f"{size.name}, {arch}, {trainer.config.n_parameters:,} weights: {progress['step']} steps, "
        f"{trainer.clock() - trainer.began:.1f} s of one core with the card and its samples"
    )
    return loss


def minute(text: Path, folder: Path, size: Size = SIZES[1], seconds: float = 60.0) -> Row:
    loss = trained(text, folder, size, "gpt2", seconds)
    return Row(f"{size.name}, {seconds:g} s of one core", "nats/token", loss, "less", bar=1.7)


def architectures(text: Path, folder: Path) -> list[Row]:
    rows = []
    for size in SIZES:
        gpt2, llama = (trained(text, folder, size, arch, size.seconds) for arch in ("gpt2", "llama"))
        rows.append(Row(f"{size.name}, {size.seconds} s", "nats/token", llama, "less", {"GPT-2": gpt2}))
    return rows


def main() -> None:
    made = parser(__doc__ or "", text="the text to train on, for instance tiny Shakespeare")
    made.add_argument("--minute", action="store_true", help="train the page's medium size for a minute")
    made.add_argument("--architectures", action="store_true", help="train every size as GPT-2 and as Llama")
    parsed = made.parse_args()
    settings = TrainSettings(data=str(parsed.text), steps=800)
    if parsed.quick:
        settings = replace(settings, **CPU_EXAMPLE)
    with tempfile.TemporaryDirectory() as folder:
        if parsed.architectures:
            rows = architectures(parsed.text, Path(folder))
        elif parsed.minute:
            rows = [minute(parsed.text, Path(folder))]
        else:
            rows = [race(settings, Path(folder))]
        report("train", rows)


if __name__ == "__main__":
    main()
