"""Snapshots of weights during training: which ones exist, what training.json says about them, loading on demand."""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

import orjson

import model
from model import CheckpointError, InputError, LoadedModel
from model.checkpoint.files import read_json
from model.checkpoint.folder_format import SNAPSHOTS
from model.errors import MAX_SHOWN
from model.lens.head_roles import CLEAR_ROLE

from ..bounded_cache import BoundedCache
from ..settings import MAX_SNAPSHOT_BYTES
from .inputs import find_model, parse_index
from .served_models import ServedModels, for_visitors

MAX_REPORT_BYTES = 4_000_000
MAX_STEP_DIGITS = 18
STEP = re.compile(r"\d{1,9}", re.ASCII)
STEP_FILE = re.compile(r"(\d{6,})\.safetensors", re.ASCII)

NameAndStep = tuple[str, int]  # of a served model, and a step of its training
HeadScores = dict[str, list[list[float]]]  # [layer][head] by role


def read_report(source: Path | str) -> dict[str, Any]:
    """The training.json in a checkpoint's folder; empty if it is missing or unreadable."""
    try:
        report = read_json(Path(source) / "training.json", MAX_REPORT_BYTES)
        report = orjson.loads(orjson.dumps(report))  # replaces NaN with null, which browsers can read
    except (CheckpointError, TypeError):  # the file is missing, or holds values that JSON cannot
        return {}
    return report if isinstance(report, dict) else {}


def weight_bytes(loaded: LoadedModel) -> int:
    """Bytes of a model's weights in memory."""
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in loaded.gpt.state_dict().values()}.values())


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
        # Of trainings on the Hub: the scores of all heads by step, and the steps to be scored, the next one last.
        self.scores: dict[str, dict[int, HeadScores]] = {}
        self.unscored: dict[NameAndStep, None] = {}
        self.changed = threading.Condition()  # guards both

    def steps(self, name: str) -> list[int]:
        """The training steps that have snapshots, in order."""
        if name in self.served.revisions:
            return list(self.served.revisions[name])
        folder = Path(self.served.sources.get(name, "")) / SNAPSHOTS
        if not folder.is_dir():
            return []
        found = (STEP_FILE.fullmatch(path.name) for path in folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def training(self, name: str) -> dict[str, Any]:
        """Losses, and every head's scores at each step, from training.json. Empty if there is none.

        A training on the Hub has no losses, and the scores computed so far.
        """
        if name in self.served.revisions:
            with self.changed:
                rows = [{"step": step, **row} for step, row in sorted(self.scores.get(name, {}).items())]
                scoring = name not in self.scores or any(of == name for of, _ in self.unscored)
            return {"history": [], "heads": rows, "kept": max(self.served.revisions[name]), "scoring": scoring}
        report = read_report(self.served.sources.get(name, ""))
        if not {"history", "heads"} <= report.keys():
            return {}
        return {"history": report["history"], "heads": report["heads"], "kept": report.get("best_step")}

    def formed_head(self, name: str) -> tuple[int, int] | None:
        """The induction head that formed while a model with snapshots was trained, or None if none did."""
        training = self.training(name) if self.steps(name) else {}
        heads = training.get("heads")
        try:
            now = [row for row in heads or () if row["step"] == training["kept"]] or heads
            scores = now[-1]["induction"] if now else []
            places = [(score, (layer, head)) for layer, row in enumerate(scores) for head, score in enumerate(row)]
            score, place = max(places, default=(0.0, (0, 0)))
            return place if score >= CLEAR_ROLE else None
        except (KeyError, TypeError, IndexError):
            return None  # the report has an unexpected shape

    def get(self, name: str, step: Any) -> LoadedModel:
        """The model of that name with the weights it had after ``step``. Raises ``InputError``."""
        steps = self.steps(name)
        if not steps:
            raise InputError("model", f"{name[:MAX_SHOWN]} has no snapshots.")
        step = parse_index("step", step, steps[0], steps[-1])
        if step not in steps:
            raise InputError(
                "step", f"There is no snapshot of step {step}. Available steps: {', '.join(map(str, steps))}"
            )
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
        self.ask_for_scores(name, step)
        return loaded

    def ask_for_scores(self, name: str, step: int) -> None:
        """Let the heads of this step be scored next, if it is one of a training on the Hub and has no scores."""
        with self.changed:
            if step not in self.scores.get(name, {step: None}):
                self.unscored.pop((name, step), None)
                self.unscored[name, step] = None
                self.changed.notify_all()

    def next_to_score(self) -> NameAndStep:
        """The step that was asked for last, once there is one."""
        with self.changed:
            self.changed.wait_for(lambda: self.unscored)
            return next(reversed(self.unscored))

    def set_scores(self, name: str, step: int, scores: HeadScores | None) -> None:
        """Record the scores of a step; None if they could not be computed."""
        with self.changed:
            self.unscored.pop((name, step), None)
            if scores is not None:
                self.scores[name][step] = scores
            self.changed.notify_all()

    def release(self, snapshot: LoadedModel) -> None:
        for call in self.on_drop:
            call(snapshot)

    def model_or_snapshot(self, name: object) -> LoadedModel:
        """The model of that name, or the snapshot that ``NAME@STEP`` names, which is loaded if needed.

        The first model if no name is given. Raises ``InputError``.
        """
        if self.is_snapshot(name):
            model_name, _, step = name.rpartition("@")
            return self.get(model_name, int(step))
        return find_model(self.served, name)

    def is_snapshot(self, name: object) -> TypeGuard[str]:
        """Whether ``name`` is NAME@STEP with the name of a served model, even if there is no snapshot of that step."""
        if not isinstance(name, str):
            return False
        model_name, at, step = name.rpartition("@")
        is_step = step.isascii() and step.isdigit() and len(step) <= MAX_STEP_DIGITS
        return bool(at) and is_step and name not in self.served.models and model_name in self.served.models

    def with_hash(self, sha256: str) -> LoadedModel | None:
        """The snapshot whose weights have this hash, if it was ever loaded here and the current visitor may see it."""
        found = self.by_hash.get(sha256)
        return self.get(*found) if found and self.served.private.may_see(found[0]) else None

    def forget(self, name: str) -> None:
        """Remove the snapshots of a model that is no longer served."""
        for snapshot in self.cache.remove(lambda key, _: key[0] == name):
            self.release(snapshot)
        for sha256 in [sha256 for sha256, (of, _) in list(self.by_hash.items()) if of == name]:
            self.by_hash.pop(sha256, None)

    def with_weights(self, sha256: str) -> LoadedModel:
        """The model or the snapshot whose weights have this hash. Raises ``NotServed``."""
        return self.served.with_hash(sha256) or self.with_hash(sha256) or self.served.with_weights(sha256)

    def named(self, name: str) -> LoadedModel | None:
        """The snapshot called NAME@STEP, or None if there is no such snapshot."""
        base, _, step = name.rpartition("@")
        if base not in self.served.sources or not STEP.fullmatch(step) or int(step) not in self.steps(base):
            return None
        return self.get(base, int(step))
