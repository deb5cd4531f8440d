"""What one forward pass recorded, and how its attention weights are pooled and coded for a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from .gpt import GPT


class Token(NamedTuple):
    """A token id and its text for showing, ``<0xE2>`` for a byte inside a character."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One reading of ``T`` tokens: ``attention[i, j, q, k]`` is how much query ``q`` looks at key ``k``.

    ``attention`` ``(len(layers), len(heads), T, T)`` and ``logits`` ``(T, vocab_size)`` are float32 on the CPU; row
    ``q`` of the logits speaks of token ``q + 1``. ``layers`` and ``heads`` are those that were asked for.
    """

    tokens: list[Token]
    attention: Tensor
    logits: Tensor
    layers: tuple[int, ...]
    heads: tuple[int, ...]


@torch.inference_mode()
def read(
    gpt: GPT,
    ids: Sequence[int],
    *,
    head_mask: Tensor | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """One forward pass over ``ids``: attention ``(n_layer, n_head, T, T)`` and logits ``(T, vocab_size)``, float32.

    ``layers`` and ``heads`` name those to record, all by default; ``head_mask`` is ``(n_layer, n_head)``.
    """
    layers = range(gpt.config.n_layer) if layers is None else layers
    result = gpt(torch.tensor([ids], device=gpt.wte.weight.device), head_mask=head_mask, record=set(layers))
    return take_weights(result.attention, layers, heads).cpu(), result.logits[0].float().cpu()


def take_weights(attention: dict[int, Tensor], layers: Sequence[int], heads: Sequence[int] | None = None) -> Tensor:
    """The attention weights of the first text of a batch, ``(len(layers), n_head or len(heads), T, S)`` float32.

    Each layer leaves ``attention`` once it is copied: those of a long text are not in memory twice.
    """
    n_head, T, S = attention[layers[0]].shape[1:]
    n_head = n_head if heads is None else len(heads)
    taken = torch.empty(len(layers), n_head, T, S, device=attention[layers[0]].device)
    for i, layer in enumerate(layers):
        attn_weights = attention.pop(layer)[0]
        taken[i] = attn_weights if heads is None else attn_weights[list(heads)]
    return taken
