"""Everything a stopped run needs to continue exactly, in one safetensors file: nothing is pickled."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from ..checkpoint.files import locate, open_file
from ..checkpoint.write import write_atomic
from ..errors import CheckpointError
from ..lens.head_roles import RoundedScores
from .settings import TrainSettings

STATE_FILE = "resume.safetensors"


class Losses(TypedDict):
    """The losses at one validation, in nats per token."""

    step: int
    train_loss: float  # mean since the previous validation
    validation_loss: float


class SnapshotScores(RoundedScores):
    """The role scores of every head at one snapshot."""

    step: int


class RunProgress(TypedDict):
    """The part of a run's state that is plain JSON."""

    step: int
    seconds: float
    best: float | None  # the lowest validation loss
    best_step: int  # the step at which it was measured, whose weights are kept
    history: list[Losses]
    heads: list[SnapshotScores]
    recent_loss: float  # summed since the last validation
    recent_steps: int
    settings: dict[str, Any]
    data: str  # SHA-256 of the text


def new_progress(settings: TrainSettings, sha256: str) -> RunProgress:
    """That of a run which has not begun; ``sha256`` is that of its text."""
    return {
        "step": 0,
        "seconds": 0.0,
        "best": None,
        "best_step": 0,
        "history": [],
        "heads": [],
        "recent_loss": 0.0,
        "recent_steps": 0,
        "settings": asdict(settings),
        "data": sha256,
    }


@dataclass
class TrainingState:
    """Everything that changes during training: weights, optimizers, random generators and the plain ``progress``."""

    gpts: dict[str, nn.Module]  # the trained weights and, if there is one, their average
    optimizers: list[Optimizer]
    batches: torch.Generator  # draws the training windows
    progress: RunProgress

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters of all ``gpts`` with unique names; a model that appears twice is listed once."""
        seen: set[int] = set()
        for kind, gpt in self.gpts.items():
            if id(gpt) not in seen:
                yield from ((f"{kind}.{name}", parameter) for name, parameter in gpt.named_parameters())
            seen.add(id(gpt))

    def save(self, folder: Path) -> None:
        """Write the state file in ``folder``, atomically."""
        tensors: dict[str, Tensor] = {name: p.detach() for name, p in self.parameters()}
        plain: list[dict[int, dict[str, object]]] = []  # the optimizers' state other than tensors
        for i, optimizer in enumerate(self.optimizers):
            content = optimizer.state_dict()
            for j, values in content["state"].items():
                tensors |= {f"optimizer.{i}.{j}.{k}": v for k, v in values.items() if isinstance(v, Tensor)}
            plain.append(
                {j: {k: v for k, v in s.items() if not isinstance(v, Tensor)} for j, s in content["state"].items()}
            )
        tensors["random.batches"] = self.batches.get_state()
        tensors["random.cpu"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        metadata = {"progress": json.dumps(self.progress), "optimizers": json.dumps(plain)}
        write_atomic(folder / STATE_FILE, lambda path: save_file(tensors, path, metadata))

    def restore(self, folder: Path) -> None:
        """Restore the state file in ``folder``. Raises ``CheckpointError`` if it belongs to a different run."""
        path = folder / STATE_FILE
        metadata = read_metadata(folder)
        try:
            with safe_open(locate(path, "the state of a training run"), framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
            with torch.no_grad():
                for name, parameter in self.parameters():
                    parameter.copy_(tensors[name])
            plain = json.loads(metadata["optimizers"])
            for i, optimizer in enumerate(self.optimizers):
                state: dict[int, dict[str, object]] = {int(j): dict(values) for j, values in plain[i].items()}
                for name, tensor in tensors.items():
                    if name.startswith(f"optimizer.{i}."):
                        _, _, j, key = name.split(".")
                        state[int(j)][key] = tensor
                optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
            self.batches.set_state(tensors["random.batches"])
            torch.set_rng_state(tensors["random.cpu"])
            if torch.cuda.is_available() and "random.cuda" in tensors:
                torch.cuda.set_rng_state(tensors["random.cuda"])
            self.progress |= json.loads(metadata["progress"])
        except (KeyError, IndexError, ValueError, RuntimeError, SafetensorError) as error:
            raise CheckpointError(
                path, f"the state of a different run ({error})", "the state of this training run"
            ) from None


def is_finished(folder: Path) -> bool:
    """Whether the run in ``folder`` has finished, according to its last report."""
    try:
        with open_file(folder / "training.json", "the report of a training run") as file:
            report = json.load(file)
    except (CheckpointError, OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("finished") is True


def saved_progress(folder: Path) -> RunProgress:
    """The plain part of the state file in ``folder``. Raises ``CheckpointError`` if there is none."""
    progress: RunProgress = json.loads(read_metadata(folder)["progress"])
    return progress


def read_metadata(folder: Path) -> dict[str, str]:
    """The metadata of the state file in ``folder``. Raises ``CheckpointError`` if there is none."""
    path = folder / STATE_FILE
    real = locate(path, "the state of a training run that was stopped")
    try:
        with safe_open(real, framework="pt") as file:
            metadata = dict(file.metadata() or {})
    except SafetensorError as error:
        raise CheckpointError(path, f"invalid safetensors ({error})", "the state of a training run") from None
    if not {"progress", "optimizers"} <= metadata.keys():
        raise CheckpointError(path, "other metadata", "the state of a training run")
    return metadata
