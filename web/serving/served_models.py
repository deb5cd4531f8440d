"""The models that are served: what is loading, what is loaded, what failed and why, and what visitors trained.

A model that a visitor trained is seen by that visitor alone. Who is asking is known only while a request of the page is
answered, Ask's under ``/v1/lens`` included: for the rest of ``/v1``, the metrics and Gradio's endpoints these models do
not exist.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import model
from model import InputError
from model.checkpoint.hub import HUB_ID
from model.checkpoint.source import SNAPSHOT
from model.errors import readable

from ..settings import CHECKPOINTS, Settings

LEAST_HASH = 16  # digits that tell one checkpoint from another
VISITOR: ContextVar[str] = ContextVar("visitor", default="")  # the secret in the cookie of the one who is asking
METRICS_NAME = "private"


@dataclass(frozen=True)
class PrivateModel:
    """A model and the checkpoint folder it was loaded from."""

    loaded: model.LoadedModel
    folder: Path


class PrivateModels:
    """At most one model of each visitor."""

    def __init__(self) -> None:
        self.by_visitor: dict[str, PrivateModel] = {}
        self.names: set[str] = set()  # of all that there ever were: such a name never becomes everybody's
        self.lock = threading.Lock()

    def add(self, visitor: str, loaded: model.LoadedModel, folder: Path) -> None:
        with self.lock:
            self.names.add(loaded.name)
            self.by_visitor[visitor] = PrivateModel(loaded, folder)

    def remove(self, visitor: str) -> model.LoadedModel | None:
        """Forget a visitor's model; returns it, if there was one."""
        with self.lock:
            removed = self.by_visitor.pop(visitor, None)
        return removed.loaded if removed else None

    @property
    def mine(self) -> PrivateModel | None:
        """The model of the visitor who is asking."""
        visitor = VISITOR.get()
        return self.by_visitor.get(visitor) if visitor else None

    def may_see(self, name: str) -> bool:
        """Whether the one who is asking may see a model of this name, or a snapshot of it."""
        base = name.partition("@")[0]
        return base not in self.names or (self.mine is not None and self.mine.loaded.name == base)

    def name_in_metrics(self, name: str) -> str:
        """One name for all of them."""
        return METRICS_NAME if name.partition("@")[0] in self.names else name


class NotServed(InputError):
    """No model here has the weights that wrote a text."""

    def __init__(self) -> None:
        super().__init__("sha256", "The model that wrote this text is no longer served here.")


class ServedModels:
    """Models by name. ``load`` fills ``models`` and ``failures``, which are complete once ``ready`` is done.

    Visitors see a model that they trained here after the others.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.private = PrivateModels()
        self.shared_sources = name_sources(settings.checkpoints)
        self.shared: dict[str, model.LoadedModel] = {}  # everybody's
        self.failures: dict[str, str] = {}
        self.ready: Future[None] = Future()
        self.started_at = int(time.time())

    @property
    def models(self) -> dict[str, model.LoadedModel]:
        mine = self.private.mine
        return self.shared | {mine.loaded.name: mine.loaded} if mine else self.shared

    @property
    def sources(self) -> dict[str, Path | str]:
        """Where each model was loaded from, or could not be."""
        mine = self.private.mine
        return self.shared_sources | {mine.loaded.name: mine.folder} if mine else self.shared_sources

    def load(self) -> None:
        """Load every checkpoint. One that cannot be loaded is reported, and does not stop the others."""
        for name, source in self.sources.items():
            try:
                loaded = model.load(source, device=self.settings.device, dtype=self.settings.dtype)
                loaded.name = name  # a whole path where two folders share a name
                check_writes(loaded)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever is in the folder; a panic in Rust is not an Exception
                self.fail(name, error)
            else:
                self.shared[name] = loaded
        if self.models:  # the largest model has the most to gain
            model.choose_threads(max(self.models.values(), key=lambda loaded: loaded.config.n_parameters).gpt)
        if not self.sources:
            print(f"No checkpoint to serve: {CHECKPOINTS} has no folders.", file=sys.stderr, flush=True)
        self.ready.set_result(None)

    def fail(self, name: str, error: BaseException) -> None:
        """Report that a model cannot be served, and why."""
        self.shared.pop(name, None)
        self.failures[name] = for_visitors(error)
        print(f"Cannot serve {name}: {readable(str(error)) or type(error).__name__}", file=sys.stderr, flush=True)

    async def wait(self) -> None:
        """Return once every checkpoint has loaded or failed."""
        await asyncio.shield(asyncio.wrap_future(self.ready))  # a visitor who leaves must not cancel it for all

    def with_hash(self, sha256: str, name: str = "") -> model.LoadedModel | None:
        """The model whose weights have this hash, or begin it with 16 digits; that of this name where several do."""
        if len(sha256) < LEAST_HASH:
            return None
        same = [loaded for loaded in self.models.values() if loaded.sha256.startswith(sha256)]
        return next((loaded for loaded in same if loaded.name == name), next(iter(same), None))

    def with_weights(self, sha256: str, name: str = "") -> model.LoadedModel:
        """The same. Raises ``NotServed`` where there is none."""
        if loaded := self.with_hash(sha256, name):
            return loaded
        raise NotServed

    def problems(self) -> list[str]:
        """What the page says about checkpoints that are not served."""
        lines = [f"{name} cannot be served. {reason}" for name, reason in self.failures.items()]
        if not self.sources:
            lines.append(f"There is no checkpoint to serve. Put a folder into {CHECKPOINTS.name}/ and start again.")
        return lines


def check_writes(loaded: model.LoadedModel) -> None:
    """Raise ``FloatingPointError`` for weights that are finite, but too large for a token to be drawn."""
    next(loaded.generate([0], 1, temperature=0))


def for_visitors(error: BaseException) -> str:
    """What is wrong with a checkpoint, without its path on this machine."""
    if isinstance(error, model.CheckpointError):
        return f"{Path(error.file).name}: {error.reason}"
    reason = readable(str(error)) or type(error).__name__
    return reason[0].upper() + reason[1:]


def is_step_of_folder(path: Path) -> bool:
    """Whether ``path`` is ``FOLDER@NNNNNN`` for a folder that there is."""
    snapshot = SNAPSHOT.fullmatch(str(path))
    return snapshot is not None and Path(snapshot[1]).is_dir()


def name_sources(checkpoints: Sequence[str]) -> dict[str, Path | str]:
    """A short name for each checkpoint, its whole path if two would have the same. A file has its folder's name."""
    sources: dict[str, Path | str] = {}
    for given in checkpoints:
        path = CHECKPOINTS / given  # an absolute path stays as it is
        is_name = len(Path(given).parts) == 1
        if not (path.exists() or is_step_of_folder(path)) and (not is_name or Path(given).exists()):
            path = Path(given).resolve()
        is_hub_id = not path.exists() and HUB_ID.fullmatch(given) is not None
        name = readable(given if is_hub_id else path.parent.name if path.is_file() else path.name)
        sources[readable(str(path)) if name in sources else name] = given if is_hub_id else path
    return sources
