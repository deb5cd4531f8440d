"""One text read by a model: its attention weights and logits, which a notebook or an HTML file can draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..config import GPTConfig
from ..sampling import SAMPLING_OPTIONS
from ..tokenizer import Token, Tokenizer, token_text
from .drawing import Drawing, shortened
from .html import pack_numbers

MAX_LOGITS = 100_000  # kept in full up to this number; beyond it, only those of the likeliest tokens
MAX_VOCABULARY = 5_000
N_LIKELIEST = 100


class TracedBy(NamedTuple):
    """The model that read a text."""

    name: str
    sha256: str
    tokenizer: Tokenizer
    config: GPTConfig


@dataclass(frozen=True, repr=False)
class Trace(Drawing):
    """The record of one forward pass over ``T`` tokens.

    ``attention`` ``(len(layers), len(heads), T, T)`` and ``logits`` ``(T, vocab_size)`` are float32 on the CPU.
    ``attention[i, j, q, k]`` is the weight that query ``q`` gives to key ``k`` in layer ``layers[i]`` and head
    ``heads[j]``; row ``q`` of the logits predicts token ``q + 1``. The first ``n_prompt`` tokens were given, the others
    written with ``settings``. ``precision`` is that in which the numbers were computed, and that of the weights.
    """

    tokens: list[Token]
    attention: Tensor
    logits: Tensor
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    traced_by: TracedBy
    n_prompt: int
    head_mask: Tensor | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    precision: str = "float32"

    @property
    def logprobs(self) -> Tensor:
        """The log-probability of each token from the second on, in nats: ``(T - 1,)``."""
        ids = torch.tensor([token.id for token in self.tokens[1:]], dtype=torch.long)
        return self.logits[:-1].log_softmax(-1).gather(1, ids[:, None])[:, 0]

    def __repr__(self) -> str:
        shape = tuple(self.attention.shape)
        return (
            f"Trace of {shortened(self.text)!r}, read by {self.traced_by.name} in {self.precision}\n"
            f"attention {shape}: layers, heads, queries, keys; logits {tuple(self.logits.shape)}\n"
            f"{self.problem or 'show() draws it in a notebook, to_html(path) in a file'}"
        )

    @property
    def title(self) -> str:
        return f"{shortened(self.text)} · {self.traced_by.name}"

    @property
    def is_whole(self) -> bool:
        """Whether it has every layer and head of the model, each in its place."""
        n_layer, n_head = self.traced_by.config.n_layer, self.traced_by.config.n_head
        return (self.layers, self.heads) == (tuple(range(n_layer)), tuple(range(n_head)))

    @property
    def problem(self) -> str:
        return super().problem if self.is_whole else NOT_WHOLE

    @property
    def known_logprobs(self) -> Sequence[float | None]:
        return [None, *self.logprobs.tolist()]

    def content(self) -> dict[str, Any]:
        """What the next-token bars show, and the model behind it. Raises ``ValueError`` unless the trace is whole."""
        if not self.is_whole:
            raise ValueError(NOT_WHOLE)
        pointer = {
            # Every token after the first can be predicted.
            "n_prompt": max(1, min(self.n_prompt, len(self.tokens) - 1)),
            "model": self.traced_by.name,
            "sha256": self.traced_by.sha256,
            "n_kv_head": self.traced_by.config.n_kv_head,
            "windows": self.traced_by.config.windows,
            "context_length": self.traced_by.config.context_length,
            "before": self.traced_by.tokenizer.text_before([token.id for token in self.tokens]),
            "settings": dict(self.settings),
            "head_mask": None if self.head_mask is None else self.head_mask.tolist(),
        }
        return self.predictions() | {"pointer": pointer}

    def predictions(self) -> dict[str, Any]:
        """What the next-token bars show: all logits of a small vocabulary, else those of the likeliest tokens."""
        T, vocab_size = self.logits.shape
        tokenizer = self.traced_by.tokenizer
        if vocab_size <= MAX_VOCABULARY and T * vocab_size <= MAX_LOGITS:
            rows = [(option, row.help, row.slider) for option, row in SAMPLING_OPTIONS.items() if row.slider]
            return {
                "vocabulary": {i: token_text(tokenizer, i) for i in range(vocab_size)},
                "vocab_size": vocab_size,
                "logits": pack_numbers(self.logits),
                "controls": [{"name": option, "help": help, **slider._asdict()} for option, help, slider in rows],
            }
        logprobs = self.logits.log_softmax(-1)
        ids = logprobs.topk(min(N_LIKELIEST, vocab_size)).indices
        written = torch.tensor([*(token.id for token in self.tokens[1:]), int(ids[-1, 0])])
        ids = torch.cat([ids, written[:, None]], 1)
        return {
            "vocabulary": {i: token_text(tokenizer, i) for i in ids.unique().tolist()},
            "vocab_size": vocab_size,
            "likeliest": pack_numbers(ids.int()),
            "logprobs": pack_numbers(logprobs.gather(1, ids)),
        }


NOT_WHOLE = "a drawing needs all layers and heads: trace the text without `layers` and `heads`"
