"""Four measures of what one head takes from each key for one query, and how well they agree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, NamedTuple, TypedDict

import torch
from torch import Tensor

from ..drawing.heat_map import Part, in_digits
from ..gpt import Block
from ..modules.mask import causal_mask
from .answer import Answer, NamedToken, NotSent, Shape, TokenId
from .attribution import QueryAttention, attention_at, logits_at, prediction, read_logit
from .progress import Progress, ignore
from .question import HeadIndex, Layer, NextToken, Position
from .text_pass import TextPass

MIN_KEYS = 3  # for a meaningful rank correlation
EDGES_AT_A_TIME = 64  # each needs a row of logits, and of attention scores in every later layer
EDGES_PART = 0.5  # of the total work, roughly
SIGNED = ("attribution", "loss_change")
MEASURES = ("weight", "norm", *SIGNED)


class KeyMeasures(NamedToken):
    position: int
    weight: Annotated[float, "The attention weight."]
    norm: Annotated[float, "The norm of weight * value * W_O (Kobayashi et al. 2020)."]
    attribution: Annotated[float, "What that vector adds to the logit."]
    loss_change: Annotated[float, "In nats, when this weight is set to 0 and the others are unchanged."]


class HeadSums(TypedDict):
    weight: float
    norm: Annotated[float, "The norm of the sum of the vectors, which may cancel."]
    attribution: Annotated[float, "What the head adds to the logit."]
    loss_change: Annotated[float, "The sum over all edges, each cut on its own."]


class Correlation(TypedDict):
    measures: tuple[str, str]
    spearman: Annotated[float | None, "The rank correlation over the keys; null where it is undefined."]


class WithoutHead(TypedDict):
    loss_change: Annotated[float, "The change for this token in nats, with the head removed at all positions."]
    text_loss_change: Annotated[float | None, "The change for the text, in nats per predicted token."]


class HeadContent(TypedDict):
    position: int
    token: Annotated[NamedToken, "The next token whose logit is explained."]
    logit: Annotated[float, "The token's logit, as the model computes it."]
    probability: Annotated[float, "The token's probability, as the model computes it."]
    layer: int
    head: int
    keys: list[KeyMeasures]
    sums: HeadSums
    correlations: Annotated[
        list[Correlation],
        "For all pairs of measures. When compared with a weight or a norm, a signed measure is replaced with its "
        "magnitude.",
    ]
    without_head: WithoutHead


PerKey = Annotated[Tensor, Shape(("position + 1",))]


@dataclass(frozen=True)
class HeadMeasures(Answer):
    """For each key its attention weight, value-weighted norm, part of the logit, and the change of the loss when
    that edge is cut; the sums and rank correlations of these measures; and the change of the loss without the head.

    What belongs to a key is a number for each key of the query.
    """

    layer: int
    head: int
    ids: Annotated[list[int], NotSent(), "The tokens of the keys."]
    position: Annotated[int, "That of the query."]
    token: Annotated[TokenId, "The next token, whose logit is explained."]
    weight: Annotated[PerKey, "The attention weight."]
    norm: Annotated[PerKey, "The norm of weight * value * W_O (Kobayashi et al. 2020)."]
    attribution: Annotated[PerKey, "What that vector adds to the logit."]
    loss_change: Annotated[PerKey, "The change of the token's loss in nats, when this weight is set to 0."]
    logit: Annotated[float, "The token's logit, as the model computes it."]
    probability: Annotated[float, "The token's probability, as the model computes it."]
    output_norm: Annotated[
        float, "The norm of the head's whole output: at most the sum of `norm`, because vectors may cancel."
    ]
    removed: Annotated["HeadRemoved", "The changes of losses with the head removed: `token`, `text`."]

    @property
    def summary(self) -> str:
        return (
            f"The largest weight is that on {self.peak(self.weight, 'T')}. "
            f"The head adds {in_digits(float(self.attribution.sum()))} to the logit of {self.token_texts(self.token)}, "
            f"whose loss changes by {in_digits(self.removed.token)} nats without it."
        )

    def drawn(self) -> Iterator[Part]:
        yield from super().drawn()
        agreements = [{"measures": " ".join(pair), "spearman": each} for pair, each in self.correlations().items()]
        yield Part("correlations", agreements, help="Rank correlations over the keys.")

    def correlations(self) -> dict[tuple[str, str], float | None]:
        """Spearman's correlation over the keys for each pair of measures, None if it is undefined.

        Weights and norms have no sign, so a signed measure enters with its absolute value when compared with them.
        """
        measures = {name: getattr(self, name) for name in MEASURES}
        by_pair: dict[tuple[str, str], float | None] = {}
        for one, other in combinations(measures, 2):
            pair = [measures[name] if {one, other} == set(SIGNED) else measures[name].abs() for name in (one, other)]
            by_pair[one, other] = spearman(*pair)
        return by_pair

    def content(self) -> HeadContent:
        columns = torch.stack([self.weight, self.norm, self.attribution, self.loss_change], 1).tolist()
        return {
            "position": self.position,
            "token": self.named([self.token])[0],
            "logit": self.logit,
            "probability": self.probability,
            "layer": self.layer,
            "head": self.head,
            "keys": [
                {**token, "position": i, "weight": weight, "norm": norm, "attribution": part, "loss_change": change}
                for i, (token, (weight, norm, part, change)) in enumerate(
                    zip(self.named(self.ids), columns, strict=True)
                )
            ],
            "sums": {
                "weight": float(self.weight.sum()),
                "norm": self.output_norm,
                "attribution": float(self.attribution.sum()),
                "loss_change": float(self.loss_change.sum()),
            },
            "correlations": [{"measures": pair, "spearman": value} for pair, value in self.correlations().items()],
            "without_head": {"loss_change": self.removed.token, "text_loss_change": self.removed.text},
        }


class HeadRemoved(NamedTuple):
    """The changes of losses, in nats, with a head removed at every position of the text."""

    token: float  # the loss of the chosen next token
    text: float | None  # the mean loss of the text; None if it has one token


@torch.no_grad()
def head(
    text: TextPass,
    layer: Layer,
    head: HeadIndex,
    *,
    position: Position = None,
    token: NextToken = None,
    progress: Progress = ignore,
) -> HeadMeasures:
    """What one head takes from each token for one prediction, in four measures.

    The four measures of a head for the query at ``position`` and the next token (see ``attribution.prediction``).

    - ``weight``: the attention weight alpha, where the head looks.
    - ``norm``: the length of alpha v W_O, the vector that the key adds to the residual stream (Kobayashi et al. 2020),
      after any norm that comes after attention, with its scale held fixed.
    - ``attribution``: that vector's contribution to the token's logit (``attribution.attribution``); they sum to the
      head's.
    - ``loss_change``: the change of the token's loss when the edge is cut (``edge_losses``), through all later
      layers at this position.

    Raises ``InputError`` for a head, position or token that does not exist.
    """
    text.check_head(layer, head)
    position, token = prediction(text, position, token)
    here = attention_at(text, layer, position)
    added = here.added_by_keys(head)
    direction, _ = read_logit(text, position, token)
    changes, done = [], 0
    for some in edge_losses(text, layer, head, position, token):
        changes.append(some)
        done += len(some)
        progress(EDGES_PART * done / (position + 1))
    logits = logits_at(text, position)
    removed = without_head(text, layer, head, position, token)
    progress(1)
    return HeadMeasures(
        layer,
        head,
        list(text.ids[: position + 1]),
        position,
        token,
        weight=here.weights[head].cpu(),
        norm=added.norm(dim=-1).cpu(),
        attribution=(added @ direction).cpu(),
        loss_change=torch.cat(changes),
        logit=float(logits[token]),
        probability=float(logits.softmax(-1)[token]),
        output_norm=float(added.sum(0).norm()),
        removed=removed,
    )


@torch.no_grad()
def without_head(text: TextPass, layer: int, head: int, position: int, token: int) -> HeadRemoved:
    """The changes of the loss if the head's context vectors are zero at all positions (see ``knockout.knockout``)."""
    contexts = text.context(layer)  # (1, T, n_head, head_dim)
    contexts[:, :, head] = 0
    final, plain = text.run_with_context(layer, contexts), text.stream[-1]

    def change(tokens: Sequence[int], places: slice) -> float:
        """The change of the mean loss of ``tokens``, each predicted from one of ``places``."""
        without, whole = (text.losses_of(tokens, x[:, places]).double() for x in (final, plain))
        return float((without - whole).mean())

    of_token = change([token], slice(position, position + 1))
    return HeadRemoved(of_token, change(text.ids[1:], slice(0, -1)) if len(text.ids) > 1 else None)


def spearman(one: Tensor, other: Tensor) -> float | None:
    """Spearman's rank correlation of two vectors ``(S,)``, with the mean rank for equal values (Spearman 1904).

    None for fewer than three values, or if all values of either are equal.
    """
    if len(one) < MIN_KEYS:
        return None
    a, b = (ranks(values) - (len(values) - 1) / 2 for values in (one, other))
    spread = float((a @ a) * (b @ b)) ** 0.5
    return float(a @ b) / spread if spread else None


def ranks(values: Tensor) -> Tensor:
    """The rank of each value ``(S,)`` from 0, in float64; equal values share their mean rank."""
    _, place, count = values.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double() - 1
    return (last - (count.double() - 1) / 2)[place]


@torch.no_grad()
def edge_losses(text: TextPass, layer: int, head: int, position: int, token: int) -> Iterator[Tensor]:
    """How much the loss of ``token``, predicted after ``position``, changes when one key is cut off from this query.

    Yields ``-log p(token)`` without the edge minus its value with the edge, in nats, for ``position + 1`` keys in
    order, a few at a time. Cutting an edge sets its attention weight to 0 and leaves the other weights of the row as
    they are, so that exactly ``weight * value`` is missing from the context vector: the same term that the other
    measures use. (Masking the key before the softmax would also hand its weight to the other keys.) Everything after
    that is computed again, at this position; earlier positions do not see it.
    """
    here = attention_at(text, layer, position)
    before, attended = text.stream[layer][0, position], here.output
    later = [attention_at(text, i, position) for i in range(layer + 1, text.config.n_layer)]
    plain = logits_at(text, position).log_softmax(-1)[token]
    for terms in here.terms(head).split(EDGES_AT_A_TIME):
        after = text.block(layer)(before, lambda *_, terms=terms: attended - terms)
        logits = finish(text, after, later)
        yield (plain - logits.log_softmax(-1)[:, token]).cpu()


def finish(text: TextPass, x: Tensor, later: list[QueryAttention]) -> Tensor:
    """The logits ``(B, vocab_size)`` from ``B`` versions ``x`` ``(B, C)`` of one position of the residual stream.

    ``later`` is the attention of all later layers at that position; the keys and values of earlier positions stay as
    they are, since no position sees a later one.
    """

    def attend(block: Block, x: Tensor) -> Tensor:
        here = later[block.layer - first]
        position = here.keys.shape[1] - 1
        parts = block.attn.queries_keys_values(x[:, None], start=position)
        query, own_key, own_value = (each[:, :, 0].transpose(0, 1) for each in parts)  # (n_head, B, head_dim) each
        past = query @ here.keys[:, :-1].mT  # (n_head, B, S - 1)
        own = (query * own_key).sum(-1, keepdim=True)
        attn_scores = torch.cat([past, own], -1) * block.attn.scale
        if (seen := causal_mask(1, position + 1, x.device, block.attn.window)) is not None:
            attn_scores = attn_scores.masked_fill(~seen, -torch.inf)
        attn_weights = attn_scores.softmax(-1)
        context = attn_weights[..., :-1] @ here.values[:, :-1] + attn_weights[..., -1:] * own_value
        return block.attn.output((context * here.mask[:, None, None]).transpose(0, 1))

    first = text.config.n_layer - len(later)
    return text.gpt.logits(text.gpt.run_blocks(x, attend, start=first))
