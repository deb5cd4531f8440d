"""Activation patching: which heads, and which positions of the residual stream, carry what two prompts differ in."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import InputError
from .progress import Progress, ignore
from .text_pass import TextPass

LEAST_DIFFERENCE = 1e-3  # nats between the logit differences of the two prompts: below it there is nothing to restore


@dataclass(frozen=True)
class Patching:
    """Logit differences in nats: the logit of the answer minus that of the wrong token, after the last position.

    ``clean`` and ``corrupted`` are those of the two prompts as they are. ``heads`` ``(n_layer, n_head)`` are those of
    the corrupted prompt with one head's context vectors, at all positions, taken from the clean one. ``residual``
    ``(n_layer + 1, T)`` are those of the corrupted prompt with the residual stream before a layer, at one position,
    taken from the clean one; the last row is the stream after all layers.
    """

    clean: float
    corrupted: float
    heads: Tensor
    residual: Tensor

    def restored(self, differences: Tensor) -> Tensor:
        """How much of the difference between the prompts each patch restores: 0 is corrupted, 1 is clean."""
        return (differences - self.corrupted) / (self.clean - self.corrupted)


@torch.inference_mode()
def patching(clean: TextPass, corrupted: TextPass, *, answer: int, wrong: int, progress: Progress = ignore) -> Patching:
    """Replace activations of the corrupted prompt by those of the clean one, one at a time.

    Activation patching as in Vig et al. 2020 and Meng et al. 2022 (causal tracing), measured by a logit difference as
    in Wang et al. 2023. The clean prompt should favour the token ``answer``, the corrupted one ``wrong``. Whatever
    comes after the patched activation is computed from it; whatever comes before is the corrupted prompt's. Raises
    ``InputError`` if the prompts differ in length or give the same logit difference, or if the tokens are the same.
    """
    check_prompts(clean.ids, corrupted.ids)
    if answer == wrong:
        raise InputError("wrong", "answer and wrong must be two different tokens.")
    direction = clean.gpt.lm_head.weight[answer] - clean.gpt.lm_head.weight[wrong]

    def difference(final: Tensor) -> Tensor:
        """The logit difference after the last position, ``(B, T, C) -> (B,)``."""
        return clean.gpt.ln_f(final[:, -1]) @ direction

    at_clean, at_corrupted = (float(difference(text.stream[-1])) for text in (clean, corrupted))
    if not abs(at_clean - at_corrupted) > LEAST_DIFFERENCE:
        raise InputError(
            "corrupted",
            f"Both prompts give a logit difference of {at_clean:.4f}, so there is nothing to restore: they must "
            "differ in how much they favour answer over wrong.",
        )
    T, n_layer, n_head = len(clean.ids), clean.config.n_layer, clean.config.n_head
    pairs = zip(clean.ids, corrupted.ids, strict=True)
    first = next(position for position, (one, other) in enumerate(pairs) if one != other)
    heads = torch.empty(n_layer, n_head)
    residual = torch.full((n_layer + 1, T), at_corrupted)  # a patch before the first difference changes nothing
    n_variants = n_head + T - first  # in each layer
    total, done = sum(n_variants * (n_layer - layer) for layer in range(n_layer)), 0
    for layer in range(n_layer + 1):
        for chosen in torch.arange(first, T).split(corrupted.batch_size):
            x = corrupted.stream[layer].repeat(len(chosen), 1, 1)  # (B, T, C)
            x[torch.arange(len(chosen)), chosen] = clean.stream[layer][0, chosen]
            residual[layer, chosen] = difference(corrupted.run_from(layer, x)).cpu()
            done += len(chosen) * (n_layer - layer)
            progress(done / total)
        if layer == n_layer:
            break
        for chosen in torch.arange(n_head).split(corrupted.batch_size):
            context = corrupted.contexts[layer].repeat(len(chosen), 1, 1, 1)  # (B, T, n_head, head_dim)
            context[torch.arange(len(chosen)), :, chosen] = clean.contexts[layer][0].transpose(0, 1)[chosen]
            heads[layer, chosen] = difference(corrupted.run_with_context(layer, context)).cpu()
            done += len(chosen) * (n_layer - layer)
            progress(done / total)
    return Patching(at_clean, at_corrupted, heads, residual)


def check_prompts(clean: Sequence[int], corrupted: Sequence[int]) -> None:
    """Raise ``InputError`` unless the prompts have as many tokens, and not the same ones."""
    if len(clean) != len(corrupted):
        raise InputError(
            "corrupted",
            "Both prompts must have the same number of tokens, so that each position has its counterpart: "
            f"prompt has {len(clean)}, corrupted has {len(corrupted)}.",
        )
    if list(clean) == list(corrupted):
        raise InputError("corrupted", "Both prompts are the same, so there is nothing to restore.")
