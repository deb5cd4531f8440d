"""What a notebook or an HTML file can draw: attention weights over tokens."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..modules.head_tensors import Head
from ..tokenizer import Token
from .bundle import pack
from .frame import encode_frame
from .html import display, document, in_frame, pack_numbers
from .metrics import most_selective_head
from .recording import Recording

HALF_SCALE = 2.0**15  # brings weights up to 1 into the range where float16 has three digits: down to 2e-9
MAX_SHOWN_BYTES = 32 << 20  # of weights in half precision that a notebook draws
TITLE_LENGTH = 40


class Drawing(ABC):
    """A base of classes with ``tokens`` and ``attention`` ``(n_layer, n_head, T, T)``, float32 on the CPU.

    Where every query ``sees_all`` keys, ``attention`` may also have the rows of the last tokens alone, over the first.
    """

    tokens: list[Token]
    attention: Tensor

    @property
    def text(self) -> str:
        return "".join(token.shown for token in self.tokens)

    @property
    def sees_all(self) -> bool:
        """Whether every query sees all keys, later ones too, so that pictures are rectangles and not triangles."""
        return False

    @property
    @abstractmethod
    def title(self) -> str: ...

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What is drawn in addition to the pictures, with the ``pointer`` that names the text."""

    def _repr_html_(self) -> str | None:
        """What a notebook draws for a cell that ends in it; None if it cannot be drawn."""
        return None if self.problem else in_frame(self.html())

    def show(self, *, exact: bool = False) -> None:
        """Draw every head in the cell that is running.

        Weights are drawn from half precision and shown to three digits; ``exact`` draws the float32 weights. Raises
        ``ValueError`` for what ``problem`` names, and ``RuntimeError`` outside a notebook.
        """
        if self.problem:
            raise ValueError(self.problem)
        display(in_frame(self.html(exact=exact)), repr(self))

    def to_html(self, path: str | Path, *, exact: bool = False) -> None:
        """Write a file that shows every head in any browser, without a server or a network.

        Weights are stored in half precision and shown to three digits; ``exact`` stores them as float32. Raises
        ``ValueError`` for a trace of some layers or heads.
        """
        Path(path).write_text(self.html(exact=exact), encoding="utf-8")

    def html(self, *, exact: bool = False) -> str:
        """The content of that file."""
        content = self.content()
        weights = self.attention.flatten(-2) if self.sees_all else self.triangles
        drawn = {
            "frame": pack(self.frame()),
            "weights": pack_numbers(weights if exact else (weights * HALF_SCALE).half()),
            "n_keys": self.attention.shape[-1] if self.sees_all else 0,
            "exact": exact,
        }
        return document(self.title, content | drawn | {"pointer": self.pointer() | content["pointer"]})

    @property
    def problem(self) -> str:
        """Why a notebook cannot draw it; "" if it can."""
        n_layer, n_head, rows, keys = self.attention.shape
        n_bytes = 2 * n_layer * n_head * (rows * keys if self.sees_all else rows * (rows + 1) // 2)
        if n_bytes <= MAX_SHOWN_BYTES:
            return ""
        return f"{n_bytes / 1e6:,.0f} MB of weights are too many for a notebook: to_html(path) writes them to a file"

    @property
    def triangles(self) -> Tensor:
        queries, keys = torch.tril_indices(*self.attention.shape[-2:])
        return self.attention[..., queries, keys]

    @property
    def open_head(self) -> Head:
        """The layer and head that is drawn large at first."""
        return most_selective_head(self.attention)

    @property
    def known_logprobs(self) -> Sequence[float | None]:
        """The log-probability of each token in nats, None if unknown."""
        return [None] * len(self.tokens)

    def pointer(self) -> dict[str, Any]:
        """What the page requests from its server for the text as a whole."""
        T, (n_layer, n_head) = len(self.tokens), self.attention.shape[:2]
        return {
            "state": "saved",
            "run": "prepared",
            "tokens": T,
            "rows": T,
            "n_prompt": T,
            "sha256": "",
            "n_layer": n_layer,
            "n_head": n_head,
            "context_length": T,
            "settings": {},
            "head_mask": None,
            "head": self.open_head,
        }

    def frame(self) -> bytes:
        """Thumbnails and metrics of all pictures, as the page gets them from its server."""
        n_layer, n_head, T, _ = self.attention.shape
        recording = Recording(n_layer, n_head, T, keep_weights=False, is_square=self.sees_all)
        recording.extend(self.attention)
        recording.finish()
        return encode_frame(recording.thumbnails(), recording.metrics(), 0, self.tokens, self.known_logprobs)


def shortened(text: str) -> str:
    """The beginning of a text, for one line."""
    return text if len(text) <= TITLE_LENGTH else f"{text[: TITLE_LENGTH - 1]}…"
