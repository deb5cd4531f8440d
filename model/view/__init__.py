"""Attention weights from any source, drawn like those of a trace, but without a model to ask."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..drawing.drawing import Drawing, shortened
from ..drawing.frame import encode_frame
from ..drawing.metrics import DISTANCES, entropy_in_bits
from ..drawing.thumbnails import SIDE, ThumbnailRows, encode_weights, tile
from ..modules.head_tensors import Head
from ..tokenizer import Token

MAX_ROUNDING = 1e-3  # above 1, from rounding in half precision
MAX_SUM_ERROR = 0.01  # of a row, likewise


@dataclass(frozen=True, repr=False)
class AttentionView(Drawing):
    """Attention weights ``(n_layer, n_head, queries, keys)``, which a notebook or an HTML file can draw.

    For cross-attention, ``tokens`` are the ``n_keys`` keys followed by the queries; otherwise ``n_keys`` is 0, and the
    tokens are both.
    """

    tokens: list[Token]
    attention: Tensor
    n_keys: int = 0

    @property
    def sees_all(self) -> bool:
        return bool(self.n_keys or self.attention.triu(1).any())

    @property
    def title(self) -> str:
        return f"{shortened(self.text)} · attention weights"

    @property
    def open_head(self) -> Head:
        if not self.n_keys:
            return super().open_head
        focused = self.attention[..., min(1, self.n_keys - 1) :].amax(-1).mean(-1)  # the first key may be a sink
        layer, head = divmod(int(focused.argmax()), focused.shape[1])
        return layer, head

    def frame(self) -> bytes:
        return cross_frame(self.attention, self.tokens) if self.n_keys else super().frame()

    @property
    def windows(self) -> list[int | None]:
        """Of each layer, how many tokens a query sees, itself included; None if it sees all so far.

        In a layer with a window, every query has a weight for each key in it, and none for those before it.
        """
        if self.sees_all:
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
        return (
            f"Attention weights {tuple(self.attention.shape)}: layers, heads, queries, keys\n"
            f"over {shortened(self.text)!r}, only drawn: there is no model to ask\n"
            f"{self.problem or 'show() draws them in a notebook, to_html(path) in a file'}"
        )


def cross_frame(attention: Tensor, tokens: Sequence[Token]) -> bytes:
    """The frame of cross-attention ``(n_layer, n_head, queries, keys)``, whose pictures fill square thumbnails.

    No query is a key, so a rollout (see ``drawing.pictures``) has half of the layer's mean and half of the rollout
    below: the rest of a query's residual stream comes from itself.
    """
    n_layer, n_queries, n_keys = len(attention), *attention.shape[-2:]
    factor = 1
    while tile(len(tokens) - 1, factor) >= SIDE:
        factor *= 2
    side = tile(len(tokens) - 1, factor) + 1

    def pooled(pictures: Tensor) -> Tensor:
        """In ``side`` rows and columns: the largest of more weights, and fewer ones repeated."""
        n_rows, n_columns = min(side, n_queries), min(side, n_keys)
        cells = encode_weights(F.adaptive_max_pool2d(pictures, (n_rows, n_columns)))
        return cells[:, torch.arange(side) * n_rows // side][..., torch.arange(side) * n_columns // side]

    def measured(pictures: Tensor) -> Tensor:
        """Each of ``FRAME_MEASURES``; a query has no tokens before it among the keys."""
        back = n_keys + torch.arange(n_queries)[:, None] - torch.arange(n_keys)
        uniform = (pictures - 1 / n_keys).abs().sum(-1) / 2
        found = [entropy_in_bits(pictures), (pictures * back).sum(-1), pictures[..., 0], uniform]
        entropy, distance, first, variation = (each.mean(-1) for each in found)
        none = torch.zeros(len(pictures))
        return torch.stack([entropy, distance, first, none, variation, *[none] * len(DISTANCES)], 1)

    cells, metrics = list[Tensor](), list[Tensor]()
    rollout, total = torch.zeros(1, n_queries, n_keys), torch.zeros(1, n_queries, n_keys)
    for layer, heads in enumerate(attention):
        mean = heads.mean(0, keepdim=True)
        total, rollout = total + mean / n_layer, (mean + rollout) / 2
        cells += map(pooled, (heads, mean, rollout))
        metrics += map(measured, (heads, mean, rollout / (1 - 0.5 ** (layer + 1))))  # whose rows sum to 1
    thumbnails = torch.cat([*cells, pooled(total)]).numpy().tobytes()
    return encode_frame(
        ThumbnailRows(len(tokens), factor, 0, thumbnails),
        torch.cat([*metrics, measured(total)]),
        0,
        tokens,
        [None] * len(tokens),
    )


def view(
    attentions: Any,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    *,
    batch: int | None = None,
    separator: str = "",
) -> AttentionView:
    """Draw attention weights of any model, in a cell that ends in the call, or with ``.show()`` or ``.to_html(path)``.

    ``attentions`` holds one layer after another, ``(n_head, queries, keys)`` each, or one tensor of all; a batch of
    texts may come before the heads, of which ``batch`` is the index of the one to draw. Outputs of ``transformers``
    with ``output_attentions=True`` are accepted whole, or their ``attentions`` (an encoder's and cross-attention too),
    and so are those of its ``generate``, step by step. ``tokens`` are the texts of the queries and, unless
    ``key_tokens`` are given, of the keys; ``separator`` stands between them, such as " " between words. Raises
    ``ValueError`` for other shapes, for tokens that do not fit, and for numbers that are not weights; warns of rows
    that do not sum to 1.
    """
    is_cross = key_tokens is not None
    weights = stacked(attentions_of(attentions, is_cross=is_cross), batch, is_cross=is_cross)
    warn_of_sums(weights)
    n_queries, n_keys = weights.shape[-2:]
    check_tokens("tokens", tokens, n_queries, "queries")
    if key_tokens is None:
        if n_queries != n_keys:
            raise ValueError(
                f"the attention weights have {n_queries} queries and {n_keys} keys: cross-attention needs key_tokens"
            )
        return AttentionView(tokens_named(tokens, separator), weights)
    check_tokens("key_tokens", key_tokens, n_keys, "keys")
    return AttentionView(tokens_named([*key_tokens, *tokens], separator), weights, n_keys)


def attentions_of(output: Any, *, is_cross: bool) -> Any:
    """The attention weights of a model's whole output; anything else as it is."""
    of_a_text = ("attentions", "encoder_attentions", "decoder_attentions")
    if not any(hasattr(output, name) for name in (*of_a_text, "cross_attentions")):
        return output
    wanted = ("cross_attentions",) if is_cross else of_a_text
    found = [name for name in wanted if getattr(output, name, None)]
    if not found:
        raise ValueError(NO_WEIGHTS.format(f"the output's {wanted[0]} is"))
    if len(found) > 1:
        raise ValueError(f"the output has {' and '.join(found)}: give one of them")
    return getattr(output, found[0])


def stacked(attentions: Any, batch: int | None, *, is_cross: bool) -> Tensor:
    """All layers ``(n_layer, n_head, queries, keys)``, float32 on the CPU."""
    if isinstance(attentions, Sequence) and attentions and all(isinstance(each, Sequence) for each in attentions):
        attentions, batch = joined(attentions, batch, is_cross=is_cross), None
    layers = list(layers_of(attentions, batch))
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
    return weights.clamp_(max=1)


def warn_of_sums(weights: Tensor) -> None:
    """Warn if rows do not sum to 1, which attention weights do after the softmax."""
    sums = weights.sum(-1)
    wrong = (sums - 1).abs() > MAX_SUM_ERROR
    if wrong.any():
        layer, head, query = wrong.nonzero()[0].tolist()
        example = f"{float(sums[layer, head, query]):.4g} in layer {layer}, head {head}, query {query}"
        warnings.warn(
            f"{int(wrong.sum()):,} of {wrong.numel():,} rows of attention weights do not sum to 1: {example}. "
            "A model in training drops some (call its eval()), and padding may have none.",
            stacklevel=3,
        )


def layers_of(attentions: Any, batch: int | None) -> Iterator[Tensor]:
    """The layers of one text, ``(n_head, queries, keys)`` each."""
    if attentions is None:
        raise ValueError(NO_WEIGHTS.format("attentions is"))
    for i, layer in enumerate(attentions):
        if layer is None:
            raise ValueError(NO_WEIGHTS.format(f"attentions[{i}] is"))
        weights = torch.as_tensor(layer).detach()
        shape = tuple(weights.shape)
        if batch is not None and weights.dim() != 4:
            raise ValueError(f"batch names a text of (batch, n_head, queries, keys), but attentions[{i}] has {shape}")
        if batch is not None and not (isinstance(batch, int) and 0 <= batch < len(weights)):
            raise ValueError(f"batch must be an integer from 0 to {len(weights) - 1}, found {batch!r}")
        if weights.dim() == 4 and (batch is not None or len(weights) == 1):
            weights = weights[batch or 0]
        if weights.dim() != 3:
            raise ValueError(
                "a layer must have the shape (n_head, queries, keys), or (batch, n_head, queries, keys) with the index "
                f"batch= of the text to draw: attentions[{i}] has {shape}"
            )
        yield weights.float().cpu()


NO_WEIGHTS = (
    "{} None: the model kept no attention weights. In transformers, load it with attn_implementation='eager' and call "
    "it with output_attentions=True"
)


def joined(steps: Sequence[Sequence[Any]], batch: int | None, *, is_cross: bool) -> list[Tensor]:
    """The layers of a text that was written step by step: the rows of all steps, one below the other."""
    if len({len(step) for step in steps}) > 1:
        raise ValueError(f"all steps must have the same layers, found {sorted({len(step) for step in steps})}")
    layers = [list(layer) for layer in zip(*(layers_of(step, batch) for step in steps), strict=True)]
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


def tokens_named(texts: Sequence[str], separator: str) -> list[Token]:
    """Tokens with these texts, and ``separator`` before each but the first; equal texts have equal ids."""
    ids = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return [Token(ids[text], separator + text if i else text) for i, text in enumerate(texts)]
