"""Attention weights from any source, drawn like those of a trace, but without a model to ask."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..drawing.drawing import Drawing, shortened
from ..drawing.metrics import FIRST_QUERIES, METRICS
from ..tokenizer import Token

MAX_ROUNDING = 1e-3  # above 1, from rounding in half precision


@dataclass(frozen=True, repr=False)
class AttentionView(Drawing):
    """Attention weights ``(n_layer, n_head, T, T)`` over tokens, which a notebook or an HTML file can draw.

    For cross-attention, the tokens are the ``n_keys`` keys followed by the queries; otherwise ``n_keys`` is 0. Rollouts
    of it are drawn too, but keys do not attend there, so they mean little.
    """

    tokens: list[Token]
    attention: Tensor
    n_keys: int = 0

    @property
    def is_square(self) -> bool:
        return bool(self.attention.triu(1).any())

    @property
    def title(self) -> str:
        return f"{shortened(self.text)} · attention weights"

    def corrected(self, metrics: Tensor) -> Tensor:
        if not self.n_keys:
            return metrics
        heads = self.attention[..., self.n_keys :, : self.n_keys]
        n_queries = heads.shape[2]
        # The rows of the keys are empty.
        metrics = metrics * ((len(self.tokens) - FIRST_QUERIES).clamp_min(1) / n_queries)
        mean = heads.mean(1, keepdim=True)  # a rollout's rows are not weights over the keys: it gets the mean's number
        pictures = torch.cat([torch.cat([heads, mean, mean], 1).flatten(0, 1), mean.mean(0)])
        metrics[:, METRICS.index("uniform")] = (pictures - 1 / self.n_keys).abs().sum(-1).mean(-1) / 2
        return metrics

    @property
    def windows(self) -> list[int | None]:
        """Of each layer, how many tokens a query sees, itself included; None if it sees all so far.

        In a layer with a window, every query has a weight for each key in it, and none for those before it.
        """
        if self.n_keys or self.is_square:
            return [None] * len(self.attention)
        queries, keys = torch.tril_indices(*self.attention.shape[-2:])
        distances = queries - keys
        found: list[int | None] = []
        for seen in (self.attention[:, :, queries, keys] > 0).unbind(0):
            window = int((distances * seen.any(0)).max()) + 1
            found.append(window if torch.equal(seen, (distances < window).expand_as(seen)) else None)
        return [window if window and window < len(self.tokens) else None for window in found]

    def content(self) -> dict[str, Any]:
        name = "Cross-attention: keys, then queries" if self.n_keys else "Attention weights"
        return {"pointer": {"model": name, "windows": self.windows}, "vocabulary": {}, "vocab_size": 0}

    def __repr__(self) -> str:
        n_layer, n_head, T, _ = self.attention.shape
        shape = f"({n_layer}, {n_head}, {T - self.n_keys}, {self.n_keys or T})"
        return (
            f"Attention weights {shape}: layers, heads, queries, keys\n"
            f"over {shortened(self.text)!r}, only drawn: there is no model to ask\n"
            f"{self.problem or 'show() draws them in a notebook, to_html(path) in a file'}"
        )


def view(attentions: Any, tokens: Sequence[str], key_tokens: Sequence[str] | None = None) -> AttentionView:
    """Draw attention weights of any model, in a cell that ends in the call, or with ``.show()`` or ``.to_html(path)``.

    ``attentions`` holds one layer after another, ``(n_head, queries, keys)`` each, or one tensor of all; a batch of one
    text may come before the heads. The ``attentions`` of ``transformers`` with ``output_attentions=True`` are accepted
    as they are (an encoder's and cross-attention too), and so are those of its ``generate``, step by step. ``tokens``
    are the texts of the queries and, unless ``key_tokens`` are given, of the keys. Raises ``ValueError`` for other
    shapes, for tokens that do not fit, and for numbers that are not weights.
    """
    for name in ("attentions", "cross_attentions"):
        if hasattr(attentions, name):
            raise ValueError(f"attentions is the whole output of a model: give its .{name}")
    weights = stacked(attentions, is_cross=key_tokens is not None)
    n_queries, n_keys = weights.shape[-2:]
    check_tokens("tokens", tokens, n_queries, "queries")
    if key_tokens is None:
        if n_queries != n_keys:
            raise ValueError(
                f"the attention weights have {n_queries} queries and {n_keys} keys: cross-attention needs key_tokens"
            )
        return AttentionView(tokens_named(tokens), weights)
    check_tokens("key_tokens", key_tokens, n_keys, "keys")
    # The keys, then the queries, each of which sees all keys: a text like any other.
    return AttentionView(tokens_named([*key_tokens, *tokens]), F.pad(weights, (0, n_queries, n_keys, 0)), n_keys)


def stacked(attentions: Any, *, is_cross: bool) -> Tensor:
    """All layers ``(n_layer, n_head, queries, keys)``, float32 on the CPU."""
    if isinstance(attentions, Sequence) and attentions and all(isinstance(each, Sequence) for each in attentions):
        attentions = joined(attentions, is_cross=is_cross)
    layers = list(layers_of(attentions))
    if not layers:
        raise ValueError("attentions must have at least one layer, found none")
    for i, layer in enumerate(layers):
        if layer.shape != layers[0].shape:
            found, first = tuple(layer.shape), tuple(layers[0].shape)
            raise ValueError(f"all layers must have the same shape: attentions[0] has {first}, attentions[{i}] {found}")
    weights = torch.stack(layers)
    if not weights.numel():
        raise ValueError(f"attentions must have heads, queries and keys, found the shape {tuple(weights.shape)}")
    wrong = ((weights >= 0) & (weights <= 1 + MAX_ROUNDING)).logical_not()  # NaN too
    if wrong.any():
        layer, head, query, key = wrong.nonzero()[0].tolist()
        number, where = float(weights[layer, head, query, key]), f"layer {layer}, head {head}, query {query}, key {key}"
        raise ValueError(f"attention weights must be from 0 to 1, after the softmax: found {number:.6g} in {where}")
    return weights.clamp(max=1)


def layers_of(attentions: Any) -> Iterator[Tensor]:
    """The layers, ``(n_head, queries, keys)`` each."""
    if attentions is None:
        raise ValueError(NO_WEIGHTS.format("attentions is"))
    for i, layer in enumerate(attentions):
        if layer is None:
            raise ValueError(NO_WEIGHTS.format(f"attentions[{i}] is"))
        weights = torch.as_tensor(layer).detach().float().cpu()
        if weights.dim() == 4 and len(weights) == 1:
            weights = weights[0]
        if weights.dim() != 3:
            raise ValueError(
                "a layer must have the shape (n_head, queries, keys), or (1, n_head, queries, keys), a batch of one: "
                f"attentions[{i}] has {tuple(weights.shape)}"
            )
        yield weights


NO_WEIGHTS = (
    "{} None: the model kept no attention weights. In transformers, load it with attn_implementation='eager' and call "
    "it with output_attentions=True"
)


def joined(steps: Sequence[Sequence[Any]], *, is_cross: bool) -> list[Tensor]:
    """The layers of a text that was written step by step: the rows of all steps, one below the other."""
    if len({len(step) for step in steps}) > 1:
        raise ValueError(f"all steps must have the same layers, found {sorted({len(step) for step in steps})}")
    layers = [list(layer) for layer in zip(*(layers_of(step) for step in steps), strict=True)]
    if is_cross and (n_keys := {rows.shape[-1] for layer in layers for rows in layer}) and len(n_keys) > 1:
        raise ValueError(f"all steps of cross-attention must have the same keys, found {sorted(n_keys)} of them")
    return [torch.cat(layer if is_cross else over_one_text(layer), -2) for layer in layers]


def over_one_text(steps: Sequence[Tensor]) -> list[Tensor]:
    """The rows of one layer's steps over the keys of the whole text, as the queries are its tokens.

    A step's last key is its last query: a sliding window holds only the keys before it. A cache of fixed size begins at
    the first key and has room left over at its end.
    """
    ends = list(accumulate(rows.shape[-2] for rows in steps))
    placed = []
    for i, (rows, end) in enumerate(zip(steps, ends, strict=True)):
        if rows[..., end:].any():
            raise ValueError(
                f"step {i} has weights on {rows.shape[-1]} keys, but the text has only {end} tokens up to there: "
                "cross-attention needs key_tokens"
            )
        shown = rows[..., :end]
        placed.append(F.pad(shown, (end - shown.shape[-1], ends[-1] - end)))
    return placed


def check_tokens(name: str, tokens: Sequence[str], n: int, axis: str) -> None:
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"{name} must be a list of texts, one for each token")
    if len(tokens) != n:
        raise ValueError(f"the attention weights have {n} {axis}, found {len(tokens)} {name}")


def tokens_named(texts: Sequence[str]) -> list[Token]:
    """Tokens with these texts; equal texts have equal ids."""
    ids = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return [Token(ids[text], text) for text in texts]
