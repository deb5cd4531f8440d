"""A forward pass that records the attention weights."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..gpt import GPT
from ..modules.hooks import NO_HOOKS, Hooks


@torch.no_grad()
def read(
    gpt: GPT,
    ids: Sequence[int],
    *,
    head_mask: Tensor | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    hooks: Hooks = NO_HOOKS,
) -> tuple[Tensor, Tensor]:
    """Run ``ids`` through the model once and record the attention weights of ``layers`` and ``heads``, by default all.

    Returns them, ``(len(layers), len(heads), T, T)``, and the logits ``(T, vocab_size)``, both float32 on the CPU.
    ``head_mask`` is ``(n_layer, n_head)``.
    """
    layers = range(gpt.config.n_layer) if layers is None else layers
    result = gpt(torch.tensor([ids], device=gpt.device), head_mask=head_mask, record=set(layers), hooks=hooks)
    return take_weights(result.attention, layers, heads).cpu(), result.logits[0].float().cpu()


def take_weights(attention: dict[int, Tensor], layers: Sequence[int], heads: Sequence[int] | None = None) -> Tensor:
    """The attention weights of the first text of a batch, ``(len(layers), n_head or len(heads), T, S)`` float32.

    Each layer is removed from ``attention`` once copied, so that a long text's weights are never in memory twice.
    """
    n_head, T, S = attention[layers[0]].shape[1:]
    n_head = n_head if heads is None else len(heads)
    taken = torch.empty(len(layers), n_head, T, S, device=attention[layers[0]].device)
    for i, layer in enumerate(layers):
        attn_weights = attention.pop(layer)[0]
        taken[i] = attn_weights if heads is None else attn_weights[list(heads)]
    return taken
