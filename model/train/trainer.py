"""A training run: its steps and validations, what it stores, and how it stops and resumes."""

import copy
import math
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import NoReturn

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn
from tqdm import tqdm

from ..checkpoint.folder_format import TOKENIZER, WEIGHTS, family_of
from ..checkpoint.load import choose_device, has_bfloat16
from ..checkpoint.vocabulary import read_tokenizer
from ..checkpoint.weights import read_weights, weight_files
from ..checkpoint.write import remove_leftovers, write_snapshot
from ..config import GPTConfig
from ..errors import counted
from ..gpt import GPT
from ..lens.head_roles import MIN_CONTEXT_LENGTH, RoleScores, role_scores
from ..loaded import LoadedModel
from ..modules.initial_weights import init_weights
from ..tokenizer import END_OF_TEXT
from .card import Report, write_report
from .data import load_text, make_dataset, random_batch, train_tokenizer
from .losses import bigram_loss, loss_of, validation_loss
from .optimizers import make_optimizers
from .schedule import ByClock, ByStep, Schedule
from .settings import TrainSettings
from .state import STATE_FILE, Losses, RunProgress, TrainingState, new_progress, saved_progress

Attention = Callable[..., Tensor]

HALF_PRECISION_COST = 0.001  # nats per token that storing the weights in half precision may cost
SAMPLE_SEEDS = (1, 2, 3)
SAMPLE_TEMPERATURE = 0.8
SAMPLE_LENGTH = 200


def make_gpt(config: GPTConfig, device: torch.device, *, use_bfloat16: bool) -> GPT:
    """A model with random weights, to be trained in float32 or under autocast."""
    gpt = GPT(config)
    init_weights(gpt, config.n_layer)
    gpt = gpt.to(device)
    if use_bfloat16 and device.type == "cpu":
        keep_attention_in_float32(gpt)
    return gpt


def keep_attention_in_float32(gpt: GPT) -> None:
    """Let the fused attention of ``gpt`` compute in float32 under autocast.

    On a CPU, its backward pass in bfloat16 takes six times as long, which is half the time of a whole step.
    """
    for attention in (block.attn for block in gpt.blocks):
        attention.fused = in_float32(attention.fused)  # type: ignore[method-assign]


def in_float32(attend: Attention) -> Attention:
    """``attend`` with queries, keys and values in float32, whatever autocast says."""

    def fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):
            return attend(query.float(), key.float(), value.float(), mask)

    return fused


class Trainer:
    """A training run and the folder it writes to."""

    clock = staticmethod(time.monotonic)  # in seconds, for runs with a time limit

    def __init__(self, settings: TrainSettings, folder: Path, resume: bool = False) -> None:
        self.settings, self.folder = settings, folder
        remove_leftovers(folder)
        self.device = choose_device(settings.device)
        self.use_bfloat16 = settings.autocast == "bfloat16" or (
            settings.autocast == "auto" and has_bfloat16(self.device)
        )

        validation = Path(settings.validation) if settings.validation else None
        text, held_out, sha256 = load_text(Path(settings.data), validation)
        if resume and saved_progress(folder)["data"] != sha256:
            raise ValueError(f"{settings.data}: not the data that the stopped run was trained on (its SHA-256 differs)")
        torch.manual_seed(settings.seed)
        if resume and (folder / TOKENIZER).exists():
            self.tokenizer = read_tokenizer(folder)
        else:  # also for a run that was interrupted before it had written any weights
            self.tokenizer = train_tokenizer(settings.tokenizer, text, held_out, settings.vocab_size)
        self.config = settings.config(self.tokenizer.vocab_size)
        self.data = make_dataset(self.tokenizer, text, held_out, sha256, settings.context_length)
        self.gpt = make_gpt(self.config, self.device, use_bfloat16=self.use_bfloat16)
        # The weights to validate, sample from and keep: a moving average, or the trained weights themselves.
        self.averaged = copy.deepcopy(self.gpt) if settings.average else self.gpt
        self.loaded = LoadedModel(folder.name, self.averaged, self.tokenizer, self.end_token, self.end_token)
        start = ("\n" if "\n" in text else held_out[0]) if self.end_token is None else [self.end_token]
        self.prompt = self.loaded.parse_prompt(settings.prompt or start)
        self.state = TrainingState(
            {"gpt": self.gpt, "averaged": self.averaged},
            make_optimizers(self.gpt, settings),
            batches=torch.Generator().manual_seed(settings.seed),
            progress=new_progress(settings, sha256),
        )
        if resume:
            self.state.restore(folder)
        self.schedule: Schedule = ByClock(settings, self.done) if settings.seconds else ByStep(settings)
        self.finished = False
        self.stop_signal = 0

    @property
    def end_token(self) -> int | None:
        return self.tokenizer.special_tokens.get(END_OF_TEXT)

    @property
    def progress(self) -> RunProgress:
        return self.state.progress

    @property
    def done(self) -> float:
        """The completed fraction of the run: 1 after the last step, or when its time is up."""
        by_step = self.progress["step"] / self.settings.steps
        limit = self.settings.seconds
        return min(1.0, max(by_step, self.progress["seconds"] / limit if limit else 0.0))

    def run(self) -> bool:
        """Train until the end of the run or a signal. Returns whether the end was reached."""
        settings, progress, schedule = self.settings, self.progress, self.schedule
        handlers = {s: signal.signal(s, self.on_signal) for s in (signal.SIGINT, signal.SIGTERM)}
        bar = tqdm(total=settings.steps, initial=progress["step"], unit="step", file=sys.stdout, dynamic_ncols=True)
        began = self.clock() - progress["seconds"]
        last = False
        try:
            if progress["step"] == 0:  # before any weights, so that a folder with a partial run can always be resumed
                self.folder.mkdir(parents=True, exist_ok=True)
                self.state.save(self.folder)
            if progress["step"] == 0 and schedule.snapshot_due(0, 0.0):
                self.write_weights()  # from the start, the folder is a complete checkpoint
                self.snapshot()
            while not last:
                loss = self.step()
                progress["step"] += 1
                progress["seconds"] = self.clock() - began
                bar.update()
                bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
                step, done = progress["step"], self.done
                last = done >= 1
                if schedule.evaluation_due(step, done):
                    self.evaluate(bar)
                if schedule.snapshot_due(step, done):
                    self.snapshot()
                if schedule.sample_due(step, done):
                    bar.write(f"---\n{settings.prompt}{self.sample()}\n---")
                progress["seconds"] = self.clock() - began
                if not last and (step % settings.save_every == 0 or self.stop_signal):
                    self.save()
                if self.stop_signal and not last:
                    return False
        finally:
            bar.close()
            for number, handler in handlers.items():
                signal.signal(number, handler)
        self.finish()
        return True

    def step(self) -> float:
        """One optimizer step on one random batch; returns its loss in nats per token."""
        settings = self.settings
        self.gpt.train()
        for optimizer, rate in zip(self.state.optimizers, (settings.muon_lr, settings.adamw_lr), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * settings.learning_rate(self.progress["step"], self.done)
        inputs, targets = random_batch(
            self.data.train, settings.batch_size, settings.context_length, self.state.batches, settings.repeated
        )
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.use_bfloat16):
            loss = loss_of(self.gpt, inputs.to(self.device), targets.to(self.device))
        loss.backward()
        for optimizer in self.state.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        if self.averaged is not self.gpt:
            # A shorter average at first, or it would be dominated by the random initial weights.
            decay = min(settings.average, (self.progress["step"] + 1) / (self.progress["step"] + 10))
            average = get_ema_multi_avg_fn(decay)
            average(list(self.averaged.parameters()), list(self.gpt.parameters()), self.progress["step"])
        self.progress["recent_loss"] += loss.item()
        self.progress["recent_steps"] += 1
        return loss.item()

    def validation_loss(self) -> float:
        return validation_loss(self.averaged, self.data.validation, self.settings.context_length)

    def evaluate(self, bar: "tqdm[NoReturn]") -> None:
        """Validate, record the losses, and store the weights if they are the best so far."""
        loss = self.validation_loss()
        train_loss = self.progress["recent_loss"] / self.progress["recent_steps"]
        self.progress["recent_loss"], self.progress["recent_steps"] = 0.0, 0
        row: Losses = {"step": self.progress["step"], "train_loss": train_loss, "validation_loss": loss}
        self.progress["history"].append(row)
        bar.write(f"step {row['step']}: training {train_loss:.4f}, validation {loss:.4f} nats per token")
        if not math.isfinite(loss):
            raise ValueError(f"the validation loss is {loss} at step {row['step']}: try lower learning rates")
        if self.progress["best"] is None or loss < self.progress["best"]:
            self.progress["best"], self.progress["best_step"] = loss, row["step"]
            self.write_weights()

    def snapshot(self) -> None:
        """Store the weights of this step, and score the roles of their heads."""
        self.keep_snapshot(self.progress["step"])

    def keep_snapshot(self, step: int) -> RoleScores | None:
        """Store the current weights of ``averaged`` as those of ``step``, with the scores of their heads."""
        write_snapshot(self.folder, step, self.config, self.averaged.state_dict())
        if self.config.context_length < MIN_CONTEXT_LENGTH:
            return None
        scores, heads = role_scores(self.loaded), self.progress["heads"]
        heads.append({"step": step, **scores.rounded()})
        heads.sort(key=lambda row: row["step"])
        return scores

    def sample(self, seed: int = SAMPLE_SEEDS[0]) -> str:
        """A text that the current weights generate from the prompt."""
        self.averaged.eval()
        steps = self.loaded.generate(self.prompt, SAMPLE_LENGTH, temperature=SAMPLE_TEMPERATURE, seed=seed)
        return "".join(step.text for step in steps)

    def write_weights(self, dtype: torch.dtype = torch.float32) -> None:
        self.loaded.save(self.folder, dtype)

    def save(self) -> None:
        """Write the state that --resume needs, and the weights if there are none in the folder yet."""
        if not (self.folder / WEIGHTS).is_file():
            self.write_weights()
        self.state.save(self.folder)
        self.write_report()

    @torch.no_grad()
    def finish(self) -> None:
        """Store the best weights, in half precision if that costs less than 0.001 nats, and the final report."""
        shapes = {name: parameter.shape for name, parameter in self.averaged.named_parameters()}
        best = read_weights(weight_files(self.folder), family_of(self.config), self.config, shapes)
        for name, parameter in self.averaged.named_parameters():
            parameter.copy_(best[name].half())
        best_loss, loss = self.progress["best"], self.validation_loss()
        assert best_loss is not None  # the last step is always validated
        if abs(loss - best_loss) < HALF_PRECISION_COST:
            self.progress["best"] = loss
            self.write_weights(torch.float16)
        else:
            for name, parameter in self.averaged.named_parameters():
                parameter.copy_(best[name])
        best_step = self.progress["best_step"]
        if self.settings.snapshots and best_step not in {row["step"] for row in self.progress["heads"]}:
            self.keep_snapshot(best_step)
        self.finished = True
        self.write_report([self.sample(seed) for seed in SAMPLE_SEEDS])
        (self.folder / STATE_FILE).unlink(missing_ok=True)

    @cached_property
    def bigram_validation_loss(self) -> float:
        """Nats per token on the validation split of a bigram model that has counted the pairs of the training split."""
        ids = self.data.validation
        return bigram_loss(self.data.train, ids[:-1], ids[1:], self.config.vocab_size)

    def write_report(self, samples: Sequence[str] = ()) -> None:
        """Write training.json, its charts and the model card, which shows the ``samples``."""
        settings = asdict(self.settings)
        settings |= {name: Path(settings[name]).name for name in ("data", "validation") if settings[name]}
        report: Report = {
            "step": self.progress["step"],
            "seconds": self.progress["seconds"],
            "history": self.progress["history"],
            "heads": self.progress["heads"],
            "settings": settings,
            "samples": [
                {
                    "prompt": settings["prompt"],
                    "prompt_tokens": self.prompt,
                    "seed": seed,
                    "temperature": SAMPLE_TEMPERATURE,
                    "max_new_tokens": SAMPLE_LENGTH,
                    "text": text,
                }
                for seed, text in zip(SAMPLE_SEEDS, samples, strict=False)
            ],
            "finished": self.finished,
            "best_validation_loss": self.progress["best"],
            "bigram_validation_loss": self.bigram_validation_loss,
            "best_step": self.progress["best_step"],
            "n_parameters": self.config.n_parameters,
            "data_sha256": self.data.sha256,
            "train_tokens": len(self.data.train),
            "validation_tokens": len(self.data.validation),
            "validation_bytes": self.data.validation_bytes,
            "autocast": "bfloat16" if self.use_bfloat16 else "float32",
            "torch": torch.__version__,
            "machine": f"{platform.machine()}, {counted(torch.get_num_threads(), 'thread')}, {self.device.type}",
        }
        write_report(self.folder, report)

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Ask the loop to save and exit; a second signal of the same kind ends the process at once."""
        self.stop_signal = number
        signal.signal(number, signal.SIG_DFL)
