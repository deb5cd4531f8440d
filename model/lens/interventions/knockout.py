"""Knockout: the loss of a text with heads removed, one at a time or several together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import InvalidValue
from ...head_tensors import Head
from ..answer import Answer
from ..progress import Progress, ignore
from ..text_pass import TextPass, replacing
from .reference import Method, check_method, replacement


@dataclass(frozen=True)
class Knockout(Answer):
    """Losses in nats. Column ``t`` of the per-token losses is about token ``t + 1``, given the tokens before it.

    - ``loss``: the mean loss of the text as it is; ``token_loss`` ``(T - 1,)`` is that of each token.
    - ``delta`` ``(n_layer, n_head)``: the mean loss with that head removed, minus ``loss``. If positive, the text is
      predicted worse without the head. ``token_delta`` ``(n_layer, n_head, T - 1)`` is the same for each token.
    """

    PER_HEAD = ("delta",)

    loss: float
    token_loss: Tensor
    delta: Tensor
    token_delta: Tensor


@dataclass(frozen=True)
class Removal(Answer):
    """Losses in nats, with several heads removed together.

    - ``loss``: the mean loss of the text as it is; ``delta``: the mean loss without these heads, minus ``loss``.
    - ``token_loss`` and ``token_delta`` ``(T - 1,)`` are the same for each token, as in ``Knockout``.
    """

    loss: float
    token_loss: Tensor
    delta: float
    token_delta: Tensor


@torch.inference_mode()
def removal(
    text: TextPass, heads: Sequence[Head], *, method: Method = "zero", reference: Tensor | None = None
) -> Removal:
    """Remove the heads ``(layer, head)`` together and measure how much worse the text is predicted.

    ``method`` and ``reference`` are as in ``knockout``, and for one head the result is the same. ``text_mean``
    averages over the text with no head removed. Raises ``InputError`` as ``knockout`` does, and for a head that does
    not exist.
    """
    check(text, method, reference)
    remove = replacing(text.config, heads, lambda layer: replacement(text, layer, method, reference))
    plain = text.losses(text.stream[-1])[0]
    first = min((layer for layer, _ in heads), default=text.config.n_layer)
    token_delta = text.losses(text.run_from(first, text.stream[first], remove))[0] - plain
    return Removal(float(plain.mean()), plain.cpu(), float(token_delta.mean()), token_delta.cpu())


@torch.inference_mode()
def knockout(
    text: TextPass, *, method: Method = "zero", reference: Tensor | None = None, progress: Progress = ignore
) -> Knockout:
    """Remove every head in turn and measure how much worse the text is predicted (Michel et al. 2019).

    ``method`` says what replaces a head's context vectors (see ``reference.Method``); for "mean" and "resample" it is
    ``reference``, from ``mean_contexts`` or ``contexts_of``. Each pass starts at the head's own layer, from the
    residual stream of the plain pass. Raises ``InputError`` for an unknown method, for a reference that does not fit,
    and for a text of a single token.
    """
    check(text, method, reference)
    n_layer, n_head, T = text.config.n_layer, text.config.n_head, len(text.ids)
    plain = text.losses(text.stream[-1])[0]
    token_delta = torch.empty(n_layer, n_head, T - 1)
    cost = [n_layer - layer - 1 / 3 for layer in range(n_layer)]  # layers to run again; attention is a third of a layer
    done = 0.0
    for layer in range(n_layer):
        context = text.context(layer)  # (1, T, n_head, head_dim)
        instead = replacement(text, layer, method, reference)
        for heads in torch.arange(n_head).split(text.batch_size):
            changed = context.repeat(len(heads), 1, 1, 1)  # (B, T, n_head, head_dim)
            changed[torch.arange(len(heads)), :, heads] = instead[0].transpose(0, 1)[heads]
            losses = text.losses(text.run_with_context(layer, changed))
            token_delta[layer, heads] = (losses - plain).cpu()
            done += cost[layer] * len(heads) / n_head
            progress(done / sum(cost))
    return Knockout(float(plain.mean()), plain.cpu(), token_delta.mean(-1), token_delta)


def check(text: TextPass, method: str, reference: Tensor | None) -> None:
    check_method(text, method, reference)
    check_two_tokens(text.ids)


def check_two_tokens(ids: Sequence[int]) -> None:
    """Raise ``InputError`` for a text in which no token is predicted from another."""
    if len(ids) < 2:
        raise InvalidValue("prompt", f"{len(ids)} token", "at least two tokens, so that one is predicted from another")
