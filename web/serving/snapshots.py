"""Snapshots of weights during training: which ones exist, what training.json says about them, loading on demand."""

import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

import model
from model import CheckpointError, InputError, LoadedModel
from model.checkpoint.files import read_json
from model.checkpoint.folder_format import SNAPSHOTS
from model.errors import MAX_SHOWN
from model.lens.head_roles import CLEAR_ROLE
from model.modules.head_tensors import Head

from ..settings import MAX_SNAPSHOT_BYTES
from .bounded_cache import BoundedCache
from .inputs import parse_index
from .served_models import MIN_HASH, NotServed, ServedModels, for_visitors
from .step_scores import NameAndStep, StepScores

MAX_REPORT_BYTES = 4_000_000
STEP = re.compile(r"\d{1,18}", re.ASCII)
STEP_FILE = re.compile(r"(\d{6,})\.safetensors", re.ASCII)


def read_report(source: Path | str) -> dict[str, Any]:
    """The training.json in a checkpoint's folder; empty if it is missing or unreadable."""
    try:
        report = read_json(Path(source) / "training.json", MAX_REPORT_BYTES)
        report = orjson.loads(orjson.dumps(report))  # replaces NaN with null, which browsers can read
    except (CheckpointError, TypeError):  # the file is missing, or holds values that JSON cannot
        return {}
    return report if isinstance(report, dict) else {}


def split_name_and_step(name: object) -> NameAndStep | None:
    """The parts of NAME@STEP, or None if ``name`` is something else."""
    base, _, step = name.rpartition("@") if isinstance(name, str) else ("", "", "")
    return (base, int(step)) if base and STEP.fullmatch(step) else None


def weight_bytes(loaded: LoadedModel) -> int:
    """Bytes of a model's weights in memory."""
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in loaded.gpt.state_dict().values()}.values())


class NoSnapshot(InputError):
    """A training step that has no snapshot, or none that can be used."""

    def __init__(self, step: int | None, steps: Sequence[int]) -> None:
        super().__init__("step", f"There is no snapshot of step {step}. Available steps: {', '.join(map(str, steps))}")


class Snapshots:
    """The snapshots of the served models, in a cache of the most recently used ones.

    The functions ``on_drop`` are called with each snapshot that leaves the cache, to release everything made with it.
    """

    def __init__(self, served: ServedModels, *on_drop: Callable[[LoadedModel], None]) -> None:
        self.served, self.on_drop = served, on_drop
        self.cache = BoundedCache[NameAndStep, LoadedModel](
            max_bytes=MAX_SNAPSHOT_BYTES, size=weight_bytes, on_evict=self.release
        )
        self.by_hash: dict[str, NameAndStep] = {}  # all snapshots ever loaded, by the hash of their weights
        self.loading = threading.Lock()  # one at a time, because of the memory that loading takes
        self.scores = StepScores()

    def steps(self, name: str) -> list[int]:
        """The training steps that have snapshots, in order."""
        if name in self.served.revisions:
            return list(self.served.revisions[name])
        try:
            files = os.listdir(Path(self.served.sources.get(name, "")) / SNAPSHOTS)
        except OSError:  # there is no such folder, or it cannot be read
            return []
        matches = map(STEP_FILE.fullmatch, files)
        return sorted(int(match[1]) for match in matches if match)

    def steps_on_disk(self, name: str) -> list[int]:
        """Those that open without a download, in order."""
        hub, revisions = self.served.hub_steps, self.served.revisions.get(name)
        if hub is None or revisions is None:
            return self.steps(name)
        return [step for step, revision in revisions.items() if hub.cached(revision)]

    def training(self, name: str) -> dict[str, Any]:
        """Losses, and every head's scores at each step, from training.json. Empty if there is none.

        A training on the Hub has no losses, and the scores computed so far.
        """
        if name in self.served.revisions:
            return {"history": [], "kept": max(self.served.revisions[name]), **self.scores.report(name)}
        report = read_report(self.served.sources.get(name, ""))
        if not {"history", "heads"} <= report.keys():
            return {}
        return {"history": report["history"], "heads": report["heads"], "kept": report.get("best_step")}

    def formed_head(self, name: str) -> Head | None:
        """The induction head that formed while a model with snapshots was trained, or None if none did."""
        training = self.training(name) if self.steps(name) else {}
        heads = training.get("heads")
        try:
            now = [row for row in heads or () if row["step"] == training["kept"]] or heads
            scores = now[-1]["induction"] if now else []
            scored = [(score, (layer, head)) for layer, row in enumerate(scores) for head, score in enumerate(row)]
            score, strongest = max(scored, default=(0.0, (0, 0)))
            return strongest if score >= CLEAR_ROLE else None
        except (KeyError, TypeError, IndexError):
            return None  # the report has an unexpected shape

    def get(self, name: str, step: Any) -> LoadedModel:
        """The model of that name with the weights it had after ``step``. Raises ``InputError``."""
        steps = self.steps(name)
        if not steps:
            raise InputError("model", f"{name[:MAX_SHOWN]} has no snapshots.")
        step = parse_index("step", step, steps[0], steps[-1])
        if step not in steps:
            raise NoSnapshot(step, steps)
        return self.cache.get_or_compute((name, step), lambda: self.load(name, step))

    def load(self, name: str, step: int) -> LoadedModel:
        settings = self.served.settings
        try:
            with self.served.files(name, step) as files, self.loading:
                loaded = model.load(files, device=settings.device, dtype=settings.dtype)
        except (model.CheckpointError, ValueError, RuntimeError, OSError, MemoryError) as error:
            message = f"The snapshot of step {step} cannot be loaded: {for_visitors(error)}"
            raise InputError("step", message) from None
        loaded.name = f"{name}@{step}"
        self.by_hash[loaded.sha256] = name, step
        self.scores.request(name, step)
        return loaded

    def release(self, snapshot: LoadedModel) -> None:
        for call in self.on_drop:
            call(snapshot)

    def find(self, name: object) -> LoadedModel:
        """The model of that name, or the snapshot that ``NAME@STEP`` names, which is loaded if needed.

        The first model if no name is given. Raises ``InputError``.
        """
        name_and_step = split_name_and_step(name)
        if name_and_step and self.is_snapshot(name):
            return self.get(*name_and_step)
        return self.served.find(name)

    def is_snapshot(self, name: object) -> bool:
        """Whether ``name`` is NAME@STEP with the name of a served model, even if there is no snapshot of that step."""
        name_and_step = split_name_and_step(name)
        return name_and_step is not None and name_and_step[0] in self.served.models and name not in self.served.models

    def with_hash(self, sha256: str, name: str = "") -> LoadedModel:
        """The model or the snapshot whose weights have this hash, or a prefix of at least 16 digits.

        ``name`` breaks ties between models. A snapshot is found if it was loaded here before, or has this name. Raises
        ``NotServed`` if there is none, and ``InputError`` if the snapshot cannot be loaded.
        """
        with suppress(NotServed):
            return self.served.with_hash(sha256, name)
        places = [place for known, place in list(self.by_hash.items()) if known.startswith(sha256)]
        model_name, step = split_name_and_step(name) or ("", -1)
        if model_name in self.served.sources and step in self.steps(model_name):
            places.append((model_name, step))
        for place in places if len(sha256) >= MIN_HASH else ():
            if self.served.private.may_see(f"{place[0]}@") and (snapshot := self.get(*place)).sha256.startswith(sha256):
                return snapshot
        raise NotServed

    def forget(self, name: str) -> None:
        """Remove the snapshots of a model that is no longer served."""
        for snapshot in self.cache.remove(lambda key, _: key[0] == name):
            self.release(snapshot)
        for sha256 in [sha256 for sha256, (of, _) in list(self.by_hash.items()) if of == name]:
            self.by_hash.pop(sha256, None)
