"""Four measures of what one head takes from each key for one query, and how well they agree."""

from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .edges import edge_losses
from .progress import Progress, ignore, part
from .query import attention_at, logits_at, read_logit
from .text_pass import LOGITS_AT_ONCE, TextPass

FEWEST_KEYS = 3  # of which a rank correlation says anything
EDGES_PART = 0.5  # of the work, about
SIGNED = ("attribution", "loss_change")


class HeadMeasures(NamedTuple):
    """What a head takes from each of ``S`` keys for one query: four ``(S,)``, float32 on the CPU, and their sums."""

    weight: Tensor  # the attention weight
    norm: Tensor  # ||weight * value @ W_O||
    attribution: Tensor  # the part of that vector in the logit of the next token
    loss_change: Tensor  # of that token in nats, when the edge is cut
    logit: float  # of that token, the model's own
    probability: float
    output_norm: float  # of what the head adds in all: vectors may cancel, so at most the sum of ``norm``
    removed: "HeadRemoved"

    def correlations(self) -> dict[tuple[str, str], float | None]:
        """Spearman's correlation over the keys for each pair of measures, None where it is not defined.

        A weight and a norm have no sign, so with those a signed measure is taken by its size.
        """
        measures = {name: getattr(self, name) for name in ("weight", "norm", *SIGNED)}
        found: dict[tuple[str, str], float | None] = {}
        for one, other in combinations(measures, 2):
            pair = [measures[name] if {one, other} == set(SIGNED) else measures[name].abs() for name in (one, other)]
            found[one, other] = spearman(*pair)
        return found


class HeadRemoved(NamedTuple):
    """What happens without a head, at every position of the text: changes of losses in nats."""

    token: float  # the loss of the next token that was asked about
    text: float | None  # the mean loss of the text; None where it has one token


@torch.inference_mode()
def head_measures(
    text: TextPass, *, layer: int, head: int, position: int, token: int, progress: Progress = ignore
) -> HeadMeasures:
    """The four measures of a head for the query at ``position`` and the next token ``token``.

    - ``weight``: the attention weight alpha, where the head looks.
    - ``norm``: the length of alpha v W_O, the vector that the key adds to the residual stream (Kobayashi et al. 2020).
    - ``attribution``: that vector's part in the token's logit (``attribution.attribution``); they add up to the head's.
    - ``loss_change``: the change of the token's loss when the edge is cut (``edges.edge_losses``), through all later
      layers at this position.
    """
    here = attention_at(text, layer, position)
    terms = here.terms(head)
    direction, _ = read_logit(text, position, token)
    changes, done = [], 0
    for some in edge_losses(text, layer, head, position, token):
        changes.append(some)
        done += len(some)
        progress(EDGES_PART * done / (position + 1))
    logits = logits_at(text, position)
    return HeadMeasures(
        weight=here.weights[head].cpu(),
        norm=terms.norm(dim=-1).cpu(),
        attribution=(terms @ direction).cpu(),
        loss_change=torch.cat(changes),
        logit=float(logits[token]),
        probability=float(logits.softmax(-1)[token]),
        output_norm=float(terms.sum(0).norm()),
        removed=without_head(text, layer, head, position, token, part(progress, EDGES_PART, 1)),
    )


@torch.inference_mode()
def without_head(
    text: TextPass, layer: int, head: int, position: int, token: int, progress: Progress = ignore
) -> HeadRemoved:
    """The changes of the loss when the head's context vectors are zero at all positions (``knockout.knockout``)."""
    contexts = text.contexts[layer].clone()  # (1, T, n_head, head_dim)
    contexts[:, :, head] = 0
    final, plain = text.run_with_context(layer, contexts), text.stream[-1]
    losses = [-float(text.logits(x[0, position]).log_softmax(-1)[token]) for x in (final, plain)]
    n = len(text.ids) - 1  # tokens that are predicted
    rows = max(1, LOGITS_AT_ONCE // text.config.vocab_size)
    change = 0.0
    for start in range(0, n, rows):
        span = slice(start, min(start + rows, n))
        targets = torch.tensor(text.ids[1:][span], device=text.device)
        without, whole = (F.cross_entropy(text.logits(x[0, span]), targets, reduction="sum") for x in (final, plain))
        change += float(without - whole)
        progress(span.stop / n)
    return HeadRemoved(losses[0] - losses[1], change / n if n else None)


def spearman(one: Tensor, other: Tensor) -> float | None:
    """Spearman's rank correlation of two ``(S,)``, with the mean rank for equal values (Spearman 1904).

    None for fewer than three values, or where all values of one side are equal.
    """
    if len(one) < FEWEST_KEYS:
        return None
    a, b = (ranks(values) - (len(values) - 1) / 2 for values in (one, other))
    spread = float((a @ a) * (b @ b)) ** 0.5
    return float(a @ b) / spread if spread else None


def ranks(values: Tensor) -> Tensor:
    """The rank of each value ``(S,)`` from 0, in float64; equal values share the mean of theirs."""
    _, place, count = values.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double() - 1
    return (last - (count.double() - 1) / 2)[place]
