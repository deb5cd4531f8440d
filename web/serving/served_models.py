"""The served models: those that are loading or loaded, those that failed and why, and those that visitors trained.

Only the visitor who trained a model can see it, and those to whom it is lent. Which visitor asks is known while a
request is answered whose secret opens its path (``OPENS``). For all others, for the metrics and for Gradio's endpoints,
these models do not exist.
"""

import asyncio
import hmac
import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

import model
from model import InputError
from model.checkpoint.hub import HUB_ID, SEVERAL
from model.checkpoint.hub_steps import HubSteps, Revision
from model.checkpoint.source import SNAPSHOT
from model.errors import HubError, readable, shorten

from ..settings import CHECKPOINTS, MEGABYTE, Settings

log = logging.getLogger(__name__)

MIN_HASH = 16  # hex digits: enough to tell one checkpoint from another
# The secrets in the cookies with a request that is being answered: the visitor's, and that of a model lent to them.
VISITOR: ContextVar[str] = ContextVar("visitor", default="")
LOAN: ContextVar[str] = ContextVar("loan", default="")
# The paths that each secret of a trained model opens. A loan shows nothing of the training: a borrowed model has no
# source, from which the losses and the weights after earlier steps are read.
OPENS = {
    "visitor": ("/look/", "/learn/", "/v1/lens/", "/train/"),
    "token": ("/v1/", "/tokenize", "/detokenize"),
    "loan": ("/look/", "/learn/", "/v1/lens/"),
}
METRICS_NAME = "private"
PRIVATE_PREFIX = "your-gpt-"  # of the names of models that visitors trained
TOKEN_HEADER = "Headscope-Model-Token"


@dataclass(frozen=True)
class PrivateModel:
    """A model, the folder it was loaded from, the token for programs, and the secret with which it is lent, or "".

    ``until`` is when a lent model is deleted at the latest, in seconds since 1970.
    """

    loaded: model.LoadedModel
    folder: Path
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    loan: str = ""
    until: int = 0


class PrivateModels:
    """The models that visitors trained, at most one per visitor."""

    def __init__(self) -> None:
        self.by_visitor: dict[str, PrivateModel] = {}
        # All names ever used, so that none of them becomes visible to everyone after its model is gone.
        self.names: set[str] = set()
        self.lock = threading.Lock()

    def reserve_name(self, name: str) -> bool:
        """Reserve ``name`` for a model to come; False if a model ever had it."""
        with self.lock:
            is_new = name not in self.names
            self.names.add(name)
        return is_new

    def add(self, visitor: str, loaded: model.LoadedModel, folder: Path) -> PrivateModel:
        with self.lock:
            self.names.add(loaded.name)
            self.by_visitor[visitor] = PrivateModel(loaded, folder)
            return self.by_visitor[visitor]

    def owner_of(self, token: str) -> str | None:
        """The visitor whose model has this token."""
        with self.lock:
            tokens = {visitor: each.token for visitor, each in self.by_visitor.items()}
        return with_secret(tokens, token)

    def lend(self, visitor: str, until: int) -> str:
        """The secret with which a visitor's model is lent, a new one unless it is lent already."""
        with self.lock:
            mine = self.by_visitor[visitor]
            loan = mine.loan or secrets.token_urlsafe(24)
            self.by_visitor[visitor] = replace(mine, loan=loan, until=until)
        return loan

    def withdraw(self, visitor: str) -> None:
        """Lend a visitor's model no more."""
        with self.lock:
            if mine := self.by_visitor.get(visitor):
                self.by_visitor[visitor] = replace(mine, loan="")

    def is_lent(self, visitor: str) -> bool:
        mine = self.by_visitor.get(visitor)
        return mine is not None and mine.loan != ""

    def lent(self, loan: str) -> PrivateModel | None:
        """The model that is lent with this secret."""
        with self.lock:
            loans = {visitor: each.loan for visitor, each in self.by_visitor.items() if each.loan}
            visitor = with_secret(loans, loan)
            return self.by_visitor[visitor] if visitor else None

    def remove(self, visitor: str) -> model.LoadedModel | None:
        """Remove a visitor's model and return it, if there was one."""
        with self.lock:
            removed = self.by_visitor.pop(visitor, None)
        return removed.loaded if removed else None

    @property
    def mine(self) -> PrivateModel | None:
        """The model of the visitor whose request is being answered."""
        visitor = VISITOR.get()
        return self.by_visitor.get(visitor) if visitor else None

    @property
    def borrowed(self) -> PrivateModel | None:
        """The model that is lent to the visitor whose request is being answered."""
        loan = LOAN.get()
        return self.lent(loan) if loan else None

    def may_see(self, name: str) -> bool:
        """Whether the current visitor may see a model of this name, or a snapshot of it, which is never lent."""
        base, is_snapshot, _ = name.partition("@")
        seen = [self.mine] if is_snapshot else [self.mine, self.borrowed]
        return base not in self.names or any(each is not None and each.loaded.name == base for each in seen)

    def name_in_metrics(self, name: str) -> str:
        """``name`` itself, or one common name for all models that visitors trained."""
        return METRICS_NAME if name.partition("@")[0] in self.names else name


def with_secret(secrets_of: Mapping[str, str], given: str) -> str | None:
    """The key of a secret. Every one is compared, and each in constant time."""
    found = [key for key, each in secrets_of.items() if hmac.compare_digest(each.encode(), given.encode())]
    return found[0] if found else None


class NotServed(InputError):
    """No model here has the weights that wrote a text."""

    def __init__(self) -> None:
        super().__init__("sha256", "The model that wrote this text is no longer served here.")


class UnknownModel(InputError):
    """A model that this server does not have."""

    code = "model_not_found"

    def __init__(self, message: str) -> None:
        super().__init__("model", message)


class ServedModels:
    """Models by name. ``load`` fills ``models`` and ``failures``, which are complete once ``ready`` is done.

    A model that a visitor trained here comes last, and only that visitor and those to whom it is lent see it.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.private = PrivateModels()
        self.shared_sources = name_sources(settings.checkpoints)
        self.shared: dict[str, model.LoadedModel] = {}  # visible to all visitors
        self.failures: dict[str, str] = {}
        self.hub_steps = (
            HubSteps(settings.cache / "hub", settings.limits.max_steps_mb * MEGABYTE) if settings.cache else None
        )
        # By model and training step; of models from the Hub whose training is served.
        self.revisions: dict[str, dict[int, Revision]] = {}
        self.ready: Future[None] = Future()
        self.started_at = int(time.time())

    @property
    def models(self) -> dict[str, model.LoadedModel]:
        seen = {each.loaded.name: each.loaded for each in (self.private.mine, self.private.borrowed) if each}
        return self.shared | seen if seen else self.shared

    @property
    def sources(self) -> dict[str, Path | str]:
        """The source of each model, including those that could not be loaded; a borrowed model has none."""
        mine = self.private.mine
        return self.shared_sources | {mine.loaded.name: mine.folder} if mine else self.shared_sources

    def load(self) -> None:
        """Load every checkpoint. A failure is reported and does not stop the others."""
        for name, source in self.sources.items():
            try:
                if names_steps(source):
                    self.revisions[name] = self.find_steps(str(source))
                with self.files(name) as files:
                    loaded = model.load(files, device=self.settings.device, dtype=self.settings.dtype)
                loaded.name = name  # a full path where two folders share a name
                check_writes(loaded)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a folder may hold anything, and a Rust panic is not an Exception
                self.fail(name, error)
            else:
                self.shared[name] = loaded
        if self.models:  # the largest model benefits most
            model.choose_threads(max(self.models.values(), key=lambda loaded: loaded.config.n_parameters).gpt)
        if not self.sources:
            log.error("No checkpoint to serve: %s has no folders.", CHECKPOINTS)
        self.ready.set_result(None)

    def find_steps(self, source: str) -> dict[int, Revision]:
        if self.hub_steps is None:
            raise ValueError("training steps need a folder to be kept in: --cache")
        return self.hub_steps.find(source)

    @contextmanager
    def files(self, name: str, step: int | None = None) -> Iterator[Path | str]:
        """What ``model.load`` opens for a model, or for its weights after ``step``. Raises ``CheckpointError``.

        Steps from the Hub are downloaded first. The last one is the model itself, whose files are never deleted.
        """
        source, revisions = self.sources[name], self.revisions.get(name)
        if revisions is not None and self.hub_steps is not None:
            last = max(revisions)
            step = last if step is None else step
            with self.hub_steps.files(revisions[step], keep=step == last) as folder:
                yield folder
        else:
            yield source if step is None else f"{source}@{step:06d}"

    def fail(self, name: str, error: BaseException) -> None:
        """Report that a model cannot be served, and why."""
        self.shared.pop(name, None)
        self.failures[name] = for_visitors(error)
        log.error("Cannot serve %s: %s", name, readable(str(error)) or type(error).__name__)

    async def wait(self) -> None:
        """Return once every checkpoint has loaded or failed."""
        await asyncio.shield(asyncio.wrap_future(self.ready))  # a visitor who leaves must not cancel it for the others

    def find(self, name: object) -> model.LoadedModel:
        """The model of that name, or the first model if no name is given. Raises ``UnknownModel``."""
        if not self.ready.done():
            raise UnknownModel("The checkpoints are still loading. Try again in a moment.")
        if not self.models:
            raise UnknownModel(" ".join(self.problems()))
        if name is None or name == "":
            return next(iter(self.models.values()))
        if isinstance(name, str) and name in self.failures:
            raise UnknownModel(f"{name} cannot be served. {self.failures[name]}")
        if not isinstance(name, str) or name not in self.models:
            message = f"There is no model {shorten(name)}. Available: {', '.join(self.models)}"
            is_private = isinstance(name, str) and name.startswith(PRIVATE_PREFIX)
            if is_private and LOAN.get():
                message = (
                    f"{shorten(name)} is not open to you. If it was lent to you, whoever lent it has ended the loan, "
                    "or its hour is over."
                )
            elif is_private:
                message += f". A model that was trained on the page needs its token, in the header {TOKEN_HEADER}"
            raise UnknownModel(message)
        return self.models[name]

    def with_hash(self, sha256: str, name: str = "") -> model.LoadedModel:
        """The model whose weights have this hash, or a prefix of at least 16 digits; ``name`` breaks ties.

        Raises ``NotServed``.
        """
        same = [loaded for loaded in self.models.values() if loaded.sha256.startswith(sha256)]
        if len(sha256) < MIN_HASH or not same:
            raise NotServed
        return next((loaded for loaded in same if loaded.name == name), same[0])

    def problems(self) -> list[str]:
        """The page's messages about checkpoints that cannot be served."""
        lines = [f"{name} cannot be served. {reason}" for name, reason in self.failures.items()]
        if not self.sources:
            lines.append(
                f"There is no checkpoint to serve. Put a folder into {CHECKPOINTS.name}/ and restart the server."
            )
        return lines


def check_writes(loaded: model.LoadedModel) -> None:
    """Raise ``FloatingPointError`` if the weights are finite but so large that no token can be drawn."""
    next(loaded.generate([0], 1, temperature=0))


def for_visitors(error: BaseException) -> str:
    """The reason why a checkpoint cannot be served, without its path on this machine."""
    if isinstance(error, HubError):
        return str(error)  # a repository's id is no path
    if isinstance(error, model.CheckpointError):
        return f"{Path(error.file).name}: {error.reason}"
    words = error.strerror if isinstance(error, OSError) else None  # an OSError's full text names the file
    reason = readable(words or str(error)) or type(error).__name__
    return reason[0].upper() + reason[1:]


def is_step_of_folder(path: Path) -> bool:
    """Whether ``path`` is ``FOLDER@NNNNNN`` and the folder exists."""
    snapshot = SNAPSHOT.fullmatch(str(path))
    return snapshot is not None and Path(snapshot[1]).is_dir()


def names_steps(source: Path | str) -> bool:
    """Whether this is a pattern for revisions of a Hub repository, the steps of a training."""
    return isinstance(source, str) and SEVERAL.search(source) is not None


def name_sources(checkpoints: Sequence[str]) -> dict[str, Path | str]:
    """Checkpoints by short name, or by full path where two short names would clash.

    A file takes its folder's name, and a training on the Hub its repository's.
    """
    sources: dict[str, Path | str] = {}
    for given in checkpoints:
        path = CHECKPOINTS / given  # an absolute path stays as it is
        is_name = len(Path(given).parts) == 1
        if not (path.exists() or is_step_of_folder(path)) and (not is_name or Path(given).exists()):
            path = Path(given).resolve()
        is_hub_id = not path.exists() and HUB_ID.fullmatch(given) is not None
        name = readable(given if is_hub_id else path.parent.name if path.is_file() else path.name)
        if is_hub_id and names_steps(given) and (repository := given.partition("@")[0]) not in checkpoints:
            name = given if repository in sources else repository
        sources[readable(str(path)) if name in sources else name] = given if is_hub_id else path
    return sources
