"""Models that visitors trained here: each is seen by the visitor who trained it, and by nobody else.

Who is asking is known while a request of the page is answered, Ask's under ``/v1/lens`` included, and nowhere else: to
the rest of ``/v1``, the metrics and Gradio's endpoints these models do not exist.
"""

import threading
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from model import LoadedModel

VISITOR: ContextVar[str] = ContextVar("visitor", default="")  # the secret in the cookie of the one who is asking
METRICS_NAME = "private"


@dataclass(frozen=True)
class PrivateModel:
    """A model and the checkpoint folder it was loaded from."""

    loaded: LoadedModel
    folder: Path


class PrivateModels:
    """At most one model of each visitor."""

    def __init__(self) -> None:
        self.by_visitor: dict[str, PrivateModel] = {}
        self.names: set[str] = set()  # of all that there ever were: such a name never becomes everybody's
        self.lock = threading.Lock()

    def add(self, visitor: str, loaded: LoadedModel, folder: Path) -> None:
        with self.lock:
            self.names.add(loaded.name)
            self.by_visitor[visitor] = PrivateModel(loaded, folder)

    def remove(self, visitor: str) -> LoadedModel | None:
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
