"""A training run that reports to another process: ``python -m model.train.live --out FOLDER --data FILE ...``.

Every event is a line of JSON on stdout. A line ``stop`` on stdin ends the run and keeps the trained weights. The end of
stdin means that the other process is gone, and ends this process at once. With ``--writer``, a model first writes the
text into the ``--data`` file.
"""

import argparse
import base64
import contextlib
import copy
import json
import math
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from safetensors import SafetensorError
from torch import Tensor

from ..drawing.thumbnails import encode_weights
from ..errors import CheckpointError
from ..lens.head_roles import Look, RoleScores, clear_role
from ..lens.text_pass import TextPass
from ..loaded import load
from ..serving.threads import available_cores
from .losses import bigram_loss, loss_of, uniform_loss
from .schedule import ByClock, Marks
from .settings import TrainSettings, add_flags
from .state import Losses
from .trainer import Trainer
from .writing import write_text

if TYPE_CHECKING:
    from tqdm import tqdm

Reporter = Callable[[dict[str, Any]], None]

MAX_SENTENCE = 48  # maximum number of tokens in the sentence on which heads are shown
SAMPLE_TOKENS = 160
WINDOWS = 64  # evenly spaced windows of the held-out text, whose loss is measured during training
STEP_SECONDS = 0.25  # between two progress reports
LOSS_SECONDS, LOSS_PART = 0.7, 0.05  # minimum between two losses; maximum share of the time for measuring them
SAMPLE_SECONDS, SAMPLE_PART = 3.0, 0.05
SNAPSHOT_PART = 0.08
SHOWN_CHARACTERS = 400  # characters from the end of a generated text
MAX_THREADS = 4  # more threads do not speed up models this small


def clear_roles(measured: RoleScores) -> list[list[tuple[Look, float] | None]]:
    """``[layer][head]``: the role that the head clearly has and its score, None for a head without one."""
    n_layer, n_head = measured.entropy.shape
    scores = {look: each.tolist() for look, each in measured.scores.items()}

    def role_of(layer: int, head: int) -> tuple[Look, float] | None:
        own: dict[Look, float] = {look: each[layer][head] for look, each in scores.items()}
        role = clear_role(own, measured.uniform)
        return (role, own[role]) if role else None

    return [[role_of(layer, head) for head in range(n_head)] for layer in range(n_layer)]


class LiveTrainer(Trainer):
    """A run that passes losses, samples and snapshots to ``report`` as they are produced.

    The held-out loss is measured on the same tokens throughout: all held-out tokens if they are few, otherwise a part
    of them. The training loss is the mean of the batches since the last report. The weights with the lowest held-out
    loss are kept, and evaluated at the end on all held-out tokens. Evaluation, samples and snapshots take a small share
    of the time on any machine.
    """

    def __init__(self, settings: TrainSettings, folder: Path, report: Reporter) -> None:
        self.report, self.stopping = report, False
        super().__init__(settings, folder)
        if isinstance(self.schedule, ByClock):
            self.schedule.evaluations, self.schedule.samples = Marks([1.0], 0.0), Marks([], 0.0)
        self.windows = watched_windows(self.data.validation, settings.context_length)
        self.trained_seconds = 0.0
        self.lowest = math.inf  # of the losses during training
        self.kept = copy.deepcopy(self.averaged.state_dict())  # the weights with the lowest loss
        self.kept_seconds = 0.0  # of training, after which they had it
        self.before = (0.0, 0)  # the training loss and the steps between the last two measurements
        self.sentence = sentence_of(self.loaded.tokenizer.decode(self.data.validation[:1000].tolist()))
        self.sentence_ids = self.loaded.tokenizer.encode(self.sentence)[: min(MAX_SENTENCE, settings.context_length)]
        self.began = self.reported = self.clock()
        self.losses = Throttle(self.clock, LOSS_SECONDS, LOSS_PART)
        self.samples = Throttle(self.clock, SAMPLE_SECONDS, SAMPLE_PART)

    @property
    def done(self) -> float:
        return 1.0 if self.stopping else super().done

    def stop(self) -> None:
        """End the run after the current step and keep the trained weights. Can be called from any thread."""
        self.stopping = True

    def run(self) -> bool:
        vocab_size = self.config.vocab_size
        self.report(
            {
                "kind": "start",
                "n_parameters": self.config.n_parameters,
                "n_layer": self.config.n_layer,
                "n_head": self.config.n_head,
                "vocab_size": vocab_size,
                "seconds": self.settings.seconds,
                "train_tokens": len(self.data.train),
                "validation_tokens": len(self.data.validation),
                "watched_tokens": self.windows[1].numel() if self.windows else len(self.data.validation),
                "uniform": uniform_loss(vocab_size),
                "bigram": self.bigram_watched_loss,
                "tokens": [token.text for token in self.loaded.text_tokens(self.sentence_ids)],
            }
        )
        self.report_loss(0, None)
        self.began = self.clock()
        return super().run()

    @property
    def bigram_watched_loss(self) -> float:
        """The bigram model's loss on the tokens that the curve is measured on."""
        if not self.windows:
            return self.bigram_validation_loss
        return bigram_loss(self.data.train, *self.windows, self.config.vocab_size)

    def step(self) -> float:
        loss = super().step()
        now, step = self.clock(), self.progress["step"] + 1
        if now - self.reported >= STEP_SECONDS:
            self.reported = now
            self.report({"kind": "step", "step": step, "seconds": now - self.began, "loss": loss})
        if self.losses.is_due():
            with self.losses:
                self.report_loss(step, self.mean_loss())
        if self.samples.is_due():
            with self.samples:
                self.report({"kind": "sample", "step": step, "text": self.short_sample()})
        return loss

    def mean_loss(self) -> float:
        """The mean training loss since the last call; if fewer steps were taken than before it, of those too."""
        loss, steps = self.progress["recent_loss"], self.progress["recent_steps"]
        earlier_loss, earlier_steps = self.before if steps < self.before[1] else (0.0, 0)  # few batches vary widely
        self.before = loss, steps
        self.progress["recent_loss"], self.progress["recent_steps"] = 0.0, 0
        return (loss + earlier_loss) / (steps + earlier_steps)

    @torch.no_grad()
    def watched_loss(self) -> float:
        """The loss on the held-out tokens used during training, in nats per token."""
        if self.windows is None:
            return self.validation_loss()
        self.averaged.eval()
        inputs, targets = self.windows
        return loss_of(self.averaged, inputs.to(self.device), targets.to(self.device)).item()

    def report_loss(self, step: int, train_loss: float | None) -> None:
        """Measure the loss after ``step`` steps, and keep the weights if it is the lowest so far."""
        loss = self.watched_loss()
        if not math.isfinite(loss):
            raise ValueError("the loss is no longer a number: this text cannot be learned with these settings")
        if train_loss is not None:
            row: Losses = {"step": step, "train_loss": train_loss, "validation_loss": loss}
            self.progress["history"].append(row)
        if loss < self.lowest:
            self.lowest, self.progress["best_step"] = loss, step
            self.kept = copy.deepcopy(self.averaged.state_dict())
            self.kept_seconds = self.progress["seconds"]
        seconds = self.progress["seconds"]
        self.report(
            {"kind": "loss", "step": step, "seconds": seconds, "validation_loss": loss, "train_loss": train_loss}
        )

    def evaluate(self, bar: "tqdm[NoReturn]") -> None:  # noqa: ARG002 - the bar is not shown
        """Measure the final weights like the earlier ones; evaluate the best on all held-out tokens and store them."""
        self.trained_seconds = self.progress["seconds"]  # without measuring the loss on all held-out tokens
        if self.progress["recent_steps"]:  # otherwise they have just been measured
            self.report_loss(self.progress["step"], self.mean_loss())
        self.report({"kind": "finishing", "step": self.progress["step"]})
        last = copy.deepcopy(self.averaged.state_dict())
        self.averaged.load_state_dict(self.kept)
        self.progress["best"] = self.validation_loss()
        self.write_weights()
        self.averaged.load_state_dict(last)

    def snapshot(self) -> None:
        started = self.clock()
        super().snapshot()
        if self.progress["step"] == 0:
            self.report({"kind": "sample", "step": 0, "text": self.short_sample()})
        elif isinstance(self.schedule, ByClock):
            pause = (self.clock() - started) / SNAPSHOT_PART
            self.schedule.snapshots.skip(self.done + pause / self.settings.seconds)

    def keep_snapshot(self, step: int) -> RoleScores | None:
        """Report the heads as well. The last report is about the weights that are kept, which may be earlier ones."""
        scores = super().keep_snapshot(step)
        is_newest = step == self.progress["step"]
        self.report(
            {
                "kind": "snapshot",
                "step": step,
                "seconds": self.progress["seconds"] if is_newest else self.kept_seconds,
                "heads": scores and {**scores.rounded(), "roles": clear_roles(scores)},
                "cells": base64.b64encode(self.attention()).decode(),
            }
        )
        return scores

    def attention(self) -> bytes:
        """Every head's attention weights on the sentence: lower triangles, row by row, encoded like thumbnails."""
        self.averaged.eval()
        text_pass = TextPass(self.averaged, self.sentence_ids)
        weights = torch.cat([text_pass.attention(layer) for layer in range(self.config.n_layer)])
        below = torch.ones(weights.shape[1:], dtype=torch.bool).tril()
        return bytes(encode_weights(weights)[:, below].numpy().tobytes())

    def short_sample(self) -> str:
        """A text written with the current weights; when the context is full, it continues from its newer half."""
        self.averaged.eval()
        ids = list(self.prompt)
        while (n_left := SAMPLE_TOKENS + len(self.prompt) - len(ids)) > 0:
            newest = ids[-(self.config.context_length // 2) :]
            steps = self.loaded.generate(newest, n_left, temperature=0.8, seed=len(ids))
            ids += [step.token_id for step in steps]
        return self.loaded.tokenizer.decode(ids[len(self.prompt) :])

    def finish(self) -> None:
        super().finish()
        self.report(
            {
                "kind": "end",
                "step": self.progress["step"],
                "seconds": self.trained_seconds,
                "loss": self.progress["best"],
                "bigram": self.bigram_validation_loss,
                "kept": self.progress["best_step"],
                "stopped": self.stopping,
                "text": self.short_sample(),
            }
        )


class Throttle:
    """Limits a repeated action: at most every ``least`` seconds, and taking at most about ``part`` of the time."""

    def __init__(self, clock: Callable[[], float], least: float, part: float) -> None:
        self.clock, self.least, self.part = clock, least, part
        self.next = self.clock() + least

    def is_due(self) -> bool:
        return self.clock() >= self.next

    def __enter__(self) -> None:
        self.started = self.clock()

    def __exit__(self, *_: object) -> None:
        now = self.clock()
        self.next = now + max(self.least, (now - self.started) / self.part)


def watched_windows(ids: Tensor, context_length: int) -> tuple[Tensor, Tensor] | None:
    """Inputs and targets ``(WINDOWS, T)`` of evenly spaced windows in ``ids``; None if all tokens can be measured."""
    if len(ids) - 1 <= WINDOWS * context_length:
        return None
    starts = torch.linspace(0, len(ids) - 1 - context_length, WINDOWS).long()
    windows = ids[starts[:, None] + torch.arange(context_length + 1)].long()
    return windows[:, :-1], windows[:, 1:]


def sentence_of(text: str) -> str:
    """A piece of a text on which to show the heads: whole words of its first line that has any, or its beginning."""
    lines = [line.strip() for line in text.split("\n")[1:]]
    line = next((line for line in lines if " " in line and len(line) > MAX_SENTENCE // 2), text[:MAX_SENTENCE])
    if len(line) <= MAX_SENTENCE:
        return line
    return line[:MAX_SENTENCE].rsplit(" ", 1)[0] if " " in line[:MAX_SENTENCE] else line[:MAX_SENTENCE]


class Channel:
    """The lines to and from the other process."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
        self.stopping = False
        self.trainer: LiveTrainer | None = None
        threading.Thread(target=self.listen, daemon=True).start()

    def report(self, event: dict[str, Any]) -> None:
        print(json.dumps(event), file=self.out, flush=True)

    def listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                self.stopping = True
                if self.trainer:
                    self.trainer.stop()
        os._exit(1)

    def watch(self, trainer: LiveTrainer) -> None:
        """Pass stop requests to ``trainer``, including one that arrived before it existed."""
        self.trainer = trainer
        if self.stopping:
            trainer.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m model.train.live", description="Train a GPT and report on it.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the checkpoint to")
    parser.add_argument("--megabytes", type=int, default=0, help="memory that the process may use; 0: no limit")
    parser.add_argument("--writer", default="", help="a checkpoint that writes the text first, into the --data file")
    parser.add_argument("--characters", type=int, default=200_000, help="characters that the --writer writes")
    add_flags(parser)
    given = vars(parser.parse_args())
    out, megabytes, writer, n_characters = (given.pop(name) for name in ("out", "megabytes", "writer", "characters"))
    if megabytes:
        bound_memory(megabytes << 20)
    torch.set_num_threads(min(MAX_THREADS, available_cores()))
    channel = Channel()
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            if writer:
                write_first(channel, writer, n_characters, Path(given["data"]), given.get("seed", 1))
            trainer = LiveTrainer(TrainSettings(**given), out, channel.report)
            channel.watch(trainer)
            trainer.run()
    except (ValueError, CheckpointError, OSError, SafetensorError, MemoryError, RuntimeError) as error:
        is_memory = isinstance(error, MemoryError) or "allocate" in str(error)
        message = f"It needs more than the {megabytes} MB of memory that it may use." if is_memory else str(error)
        if isinstance(error, OSError | SafetensorError):  # an ``OSError`` may name a path on the server
            message = f"The model could not be stored ({getattr(error, 'strerror', None) or error})."
        channel.report({"kind": "error", "message": message})
        return 1
    return 0


def bound_memory(n_bytes: int) -> None:
    """Let this process allocate at most ``n_bytes``, where the system can limit that.

    Its addresses are not limited, because torch's libraries and mapped weights take far more of them than of memory.
    """
    if sys.platform != "win32":
        import resource  # not available on Windows

        with contextlib.suppress(ValueError, OSError):  # a lower limit exists, or macOS refuses this one
            resource.setrlimit(resource.RLIMIT_DATA, (n_bytes, n_bytes))


def write_first(channel: Channel, writer: str, n_characters: int, path: Path, seed: int) -> None:
    """Let the model ``writer`` write the text; if stopped early, the text so far is used."""

    def report(n_written: int, text: str) -> None:
        told = {"kind": "writing", "written": min(n_written, n_characters), "of": n_characters, "text": text}
        channel.report(told)

    report(0, "")
    loaded = load(writer, device="cpu")
    text = write_text(loaded, n_characters, seed=seed, report=report)
    report(n_characters, text[-SHOWN_CHARACTERS:])
    path.write_text(text[:n_characters], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
