"""Knockout: the loss of a text with heads removed, one at a time or several together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from ...errors import InvalidValue
from ...modules.head_tensors import Head
from ..answer import Answer, PerHead, Shape
from ..progress import Progress, ignore
from ..question import Reads
from ..text_pass import TextPass, replacing
from .reference import HeadReplacement, Reference, ReferenceSet, read_reference, replacement

PerPrediction = Annotated[Tensor, Shape(("T - 1",))]


@dataclass(frozen=True)
class Knockout(Answer):
    """The loss of the text in nats per token, and for each layer and head how much the loss rises without it.

    Column ``t`` of the losses of tokens is about token ``t + 1``, given the tokens before it.
    """

    method: str
    reference: ReferenceSet | None
    loss: Annotated[float, "Nats per predicted token."]
    delta: Annotated[PerHead, "`[layer][head]`: the loss without the head, minus `loss`."]
    token_loss: Annotated[PerPrediction, "For each token from the second to the last, in nats."]
    token_delta: Annotated[
        Tensor, Shape(("n_layer", "n_head", "T - 1")), "`[layer][head][token]`, from the second token to the last."
    ]

    @property
    def summary(self) -> str:
        return f"The loss is {self.loss:.3f} nats per token. It changes most without {self.peak(self.delta)}."


@dataclass(frozen=True)
class Removal(Answer):
    """The loss of the text in nats per token, how much it rises without these heads, and both for each token."""

    method: str
    reference: ReferenceSet | None
    heads: list[list[int]]
    loss: Annotated[float, "Nats per predicted token."]
    delta: Annotated[float, "The loss without these heads, minus `loss`."]
    token_loss: Annotated[PerPrediction, "For each token from the second to the last, in nats."]
    token_delta: Annotated[PerPrediction, "The change for each token in `token_loss`."]

    @property
    def summary(self) -> str:
        heads = ", ".join(f"L{layer} H{head}" for layer, head in self.heads)
        return f"The loss is {self.loss:.3f} nats per token, and changes by {self.delta:.3f} without {heads}."


@torch.no_grad()
def removal(
    text: TextPass,
    heads: Annotated[Sequence[Head], Reads.HEADS, "The heads to remove together, each as `[layer, head]`."],
    *,
    method: HeadReplacement = "zero",
    reference: Reference = None,
) -> Removal:
    """How much worse a model predicts a text without several of its heads at once.

    Remove the heads ``(layer, head)`` together and measure how much worse the text is predicted.

    ``method`` and ``reference`` are as in ``knockout``, and for one head the result is the same. ``text_mean``
    averages over the text with no head removed. Raises ``InputError`` as ``knockout`` does, and for a head that does
    not exist.
    """
    check_two_tokens(text.ids)
    contexts, read = read_reference(text, method, reference)
    remove = replacing(text.config, heads, lambda layer: replacement(text, layer, method, contexts))
    plain = text.losses(text.stream[-1])[0]
    first = min((layer for layer, _ in heads), default=text.config.n_layer)
    token_delta = text.losses(text.run_from(first, text.stream[first], remove))[0] - plain
    return Removal(
        method,
        read,
        [list(head) for head in heads],
        loss=float(plain.mean()),
        delta=float(token_delta.mean()),
        token_loss=plain.cpu(),
        token_delta=token_delta.cpu(),
    )


@torch.no_grad()
def knockout(
    text: TextPass, *, method: HeadReplacement = "zero", reference: Reference = None, progress: Progress = ignore
) -> Knockout:
    """How much worse a model predicts a text without each of its heads.

    Remove every head in turn and measure how much worse the text is predicted (Michel et al. 2019).

    ``method`` says what replaces a head's context vectors (see ``reference.Method``); for "mean" and "resample" it is
    made of the texts of ``reference``. Each pass starts at the head's own layer, from the
    residual stream of the plain pass. Raises ``InputError`` for an unknown method, for a reference that does not fit,
    and for a text of a single token.
    """
    check_two_tokens(text.ids)
    contexts, read = read_reference(text, method, reference)
    n_layer, n_head, T = text.config.n_layer, text.config.n_head, len(text.ids)
    plain = text.losses(text.stream[-1])[0]
    token_delta = torch.empty(n_layer, n_head, T - 1)
    cost = [n_layer - layer - 1 / 3 for layer in range(n_layer)]  # layers to run again; attention is a third of a layer
    done = 0.0
    for layer in range(n_layer):
        context = text.context(layer)  # (1, T, n_head, head_dim)
        instead = replacement(text, layer, method, contexts)
        for heads in torch.arange(n_head).split(text.batch_size):
            changed = context.repeat(len(heads), 1, 1, 1)  # (B, T, n_head, head_dim)
            changed[torch.arange(len(heads)), :, heads] = instead[0].transpose(0, 1)[heads]
            losses = text.losses(text.run_with_context(layer, changed))
            token_delta[layer, heads] = (losses - plain).cpu()
            done += cost[layer] * len(heads) / n_head
            progress(done / sum(cost))
    return Knockout(method, read, float(plain.mean()), token_delta.mean(-1), plain.cpu(), token_delta)


def check_two_tokens(ids: Sequence[int]) -> None:
    """Raise ``InputError`` for a text in which no token is predicted from another."""
    if len(ids) < 2:
        raise InvalidValue("prompt", f"{len(ids)} token", "at least two tokens, so that one is predicted from another")
