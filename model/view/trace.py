"""One text read by a model: its attention weights and logits, which a notebook or an HTML file can draw."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..sampling import SAMPLING_OPTIONS
from ..tokenizer import Tokenizer, token_text
from .bundle import pack
from .frame import encode_frame
from .html import display, document, in_frame, pack_numbers
from .metrics import most_selective_head
from .read import Token
from .recording import Recording

HALF_SCALE = 2.0**15  # brings weights up to 1 into the range where float16 has three digits: down to 2e-9
MAX_LOGITS = 100_000  # kept in full up to here; of more, only those of the likeliest tokens
MAX_VOCABULARY = 5_000
N_LIKELIEST = 100
MAX_SHOWN_BYTES = 32 << 20  # of weights in half precision that a notebook draws
TITLE_LENGTH = 40


class Reader(NamedTuple):
    """The model that read a text."""

    name: str
    sha256: str
    tokenizer: Tokenizer
    n_layer: int
    n_head: int
    context_length: int


@dataclass(frozen=True, slots=True, repr=False)
class Trace:
    """The record of one forward pass over ``T`` tokens.

    ``attention`` ``(len(layers), len(heads), T, T)`` and ``logits`` ``(T, vocab_size)`` are float32 on the CPU.
    ``attention[i, j, q, k]`` is the weight that query ``q`` gives to key ``k`` in layer ``layers[i]`` and head
    ``heads[j]``; row ``q`` of the logits predicts token ``q + 1``. The first ``n_prompt`` tokens were given, the others
    written with ``settings``.
    """

    tokens: list[Token]
    attention: Tensor
    logits: Tensor
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    reader: Reader
    n_prompt: int
    head_mask: Tensor | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def logprobs(self) -> Tensor:
        """The log-probability of each token from the second on, in nats: ``(T - 1,)``."""
        ids = torch.tensor([token.id for token in self.tokens[1:]], dtype=torch.long)
        return self.logits[:-1].log_softmax(-1).gather(1, ids[:, None])[:, 0]

    def __repr__(self) -> str:
        shape = tuple(self.attention.shape)
        return (
            f"Trace of {shortened(self.text)!r}, read by {self.reader.name}\n"
            f"attention {shape}: layers, heads, queries, keys; logits {tuple(self.logits.shape)}\n"
            f"{self.problem or 'show() draws it in a notebook, to_html(path) in a file'}"
        )

    def _repr_html_(self) -> str | None:
        """What a notebook draws for a cell that ends in a trace; None for what it cannot draw."""
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
        if not self.is_whole:
            raise ValueError(NOT_WHOLE)
        content = {**self.pictures(exact), **self.predictions(), "exact": exact}
        return document(f"{shortened(self.text)} · {self.reader.name}", content)

    @property
    def is_whole(self) -> bool:
        """Whether it has every layer and head of the model, each in its place."""
        n_layer, n_head = self.reader.n_layer, self.reader.n_head
        return (self.layers, self.heads) == (tuple(range(n_layer)), tuple(range(n_head)))

    @property
    def problem(self) -> str:
        """Why a notebook cannot draw it; "" if it can."""
        if not self.is_whole:
            return NOT_WHOLE
        n_bytes = 2 * self.attention[..., 0].numel() * (len(self.tokens) + 1) // 2
        if n_bytes <= MAX_SHOWN_BYTES:
            return ""
        return f"{n_bytes / 1e6:,.0f} MB of weights are too many for a notebook: to_html(path) writes them to a file"

    def pictures(self, exact: bool) -> dict[str, Any]:
        """What the page asks its server about the heads and tokens of a text."""
        n_layer, n_head, T, _ = self.attention.shape
        recording = Recording(n_layer, n_head, T, keep_weights=False)
        recording.extend(self.attention)
        recording.finish()
        frame = encode_frame(
            recording.thumbnails(), recording.metrics(), 0, self.tokens, [None, *self.logprobs.tolist()]
        )
        queries, keys = torch.tril_indices(T, T)
        triangles = self.attention[..., queries, keys]
        pointer = {
            "state": "saved",
            "run": "prepared",
            "tokens": T,
            "rows": T,
            "n_prompt": max(1, min(self.n_prompt, T - 1)),  # every token after the first can be predicted
            "model": self.reader.name,
            "sha256": self.reader.sha256,
            "n_layer": n_layer,
            "n_head": n_head,
            "context_length": self.reader.context_length,
            "settings": dict(self.settings),
            "head_mask": None if self.head_mask is None else self.head_mask.tolist(),
            "head": most_selective_head(self.attention),
        }
        weights = triangles if exact else (triangles * HALF_SCALE).half()
        return {"pointer": pointer, "frame": pack(frame), "weights": pack_numbers(weights)}

    def predictions(self) -> dict[str, Any]:
        """What the next-token bars show: all logits of a small vocabulary, else those of the likeliest tokens."""
        T, vocab_size = self.logits.shape
        name = self.reader.tokenizer
        if vocab_size <= MAX_VOCABULARY and T * vocab_size <= MAX_LOGITS:
            rows = [(option, row.help, row.slider) for option, row in SAMPLING_OPTIONS.items() if row.slider]
            return {
                "vocabulary": {i: token_text(name, i) for i in range(vocab_size)},
                "vocab_size": vocab_size,
                "logits": pack_numbers(self.logits),
                "controls": [{"name": option, "help": help, **slider._asdict()} for option, help, slider in rows],
            }
        logprobs = self.logits.log_softmax(-1)
        ids = logprobs.topk(min(N_LIKELIEST, vocab_size)).indices
        written = torch.tensor([*(token.id for token in self.tokens[1:]), int(ids[-1, 0])])
        ids = torch.cat([ids, written[:, None]], 1)
        return {
            "vocabulary": {i: token_text(name, i) for i in ids.unique().tolist()},
            "vocab_size": vocab_size,
            "likeliest": pack_numbers(ids.int()),
            "logprobs": pack_numbers(logprobs.gather(1, ids)),
        }


NOT_WHOLE = "a drawing needs all layers and heads: trace the text without `layers` and `heads`"


def shortened(text: str) -> str:
    """The beginning of a text, for one line."""
    return text if len(text) <= TITLE_LENGTH else f"{text[: TITLE_LENGTH - 1]}…"
