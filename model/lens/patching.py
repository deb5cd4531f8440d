"""Activation patching: which heads and positions of the residual stream carry the difference between two prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor

from ..errors import InputError, InvalidValue
from .progress import Progress, ignore
from .text_pass import TextPass, heads_by_layer

MIN_DIFFERENCE = 1e-3  # nats between the logit differences of the two prompts: below it there is nothing to restore

# "denoise" puts activations of the clean prompt into a run of the corrupted one, to see which are sufficient to restore
# its answer. "noise" puts activations of the corrupted prompt into a run of the clean one, to see which are necessary
# (Heimersheim and Nanda 2024).
Direction = Literal["denoise", "noise"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

Numbers = TypeVar("Numbers", float, Tensor)
Measure = Callable[[Tensor], Tensor]  # from the final residual stream (B, T, C) to logit differences (B,)


@dataclass(frozen=True)
class Patching:
    """Logit differences in nats: the logit of the answer minus that of the wrong token, after the last position.

    ``clean`` and ``corrupted`` are those of the two unpatched prompts. ``heads`` ``(n_layer, n_head)`` are those with
    one head's context vectors, at all positions, taken from the other prompt. ``residual`` ``(n_layer + 1, T)`` are
    those with the residual stream before a layer, at one position, taken from the other prompt; the last row is the
    stream after all layers. Both are None unless requested. ``joint`` is the difference with several heads taken from
    the other prompt at once, or None if none were requested.
    """

    clean: float
    corrupted: float
    heads: Tensor | None
    residual: Tensor | None
    joint: float | None = None

    def restored(self, differences: Numbers) -> Numbers:
        """The differences on a scale from 0, the corrupted prompt, to 1, the clean one.

        When noise is removed, this is how much a patch restores; when it is added, how much a patch leaves.
        """
        return (differences - self.corrupted) / (self.clean - self.corrupted)


class PatchRun(NamedTuple):
    """The run into which activations are put, and the one from which they are taken."""

    into: TextPass
    source: TextPass
    measure: Measure


@torch.inference_mode()
def patching(
    clean: TextPass,
    corrupted: TextPass,
    *,
    answer: int,
    wrong: int,
    direction: Direction = "denoise",
    together: Sequence[tuple[int, int]] = (),
    grid: bool = True,
    progress: Progress = ignore,
) -> Patching:
    """Replace activations of one prompt by those of the other, one at a time, and the heads ``together`` at once.

    Activation patching as in Vig et al. 2020 and Meng et al. 2022 (causal tracing), measured by a logit difference as
    in Wang et al. 2023. The clean prompt should favour the token ``answer``, the corrupted one ``wrong``. Everything
    after the patched activation is recomputed; everything before stays unchanged. Without ``grid``, only the heads
    ``together`` are patched. Raises ``InputError`` if the prompts differ in length or give the same logit difference,
    if the two tokens are the same, or if a head does not exist.
    """
    check_prompts(clean.ids, corrupted.ids)
    if direction not in DIRECTIONS:
        raise InvalidValue("direction", direction, "'denoise' or 'noise'")
    if answer == wrong:
        raise InputError("wrong", "answer and wrong must be two different tokens.")
    reading = clean.gpt.lm_head.weight[answer] - clean.gpt.lm_head.weight[wrong]

    def measure(final: Tensor) -> Tensor:
        return clean.gpt.head_input(final[:, -1]) @ reading

    at_clean, at_corrupted = (float(measure(text.stream[-1])) for text in (clean, corrupted))
    if not abs(at_clean - at_corrupted) > MIN_DIFFERENCE:
        raise InputError(
            "corrupted",
            f"Both prompts give a logit difference of {at_clean:.4f}, so there is nothing to restore: they must "
            "differ in how much they favour answer over wrong.",
        )
    run = PatchRun(corrupted, clean, measure) if direction == "denoise" else PatchRun(clean, corrupted, measure)
    joint = patch_together(run, together) if together else None
    heads, residual = patch_all(run, progress) if grid else (None, None)
    progress(1)
    return Patching(at_clean, at_corrupted, heads, residual, joint)


def patch_all(run: PatchRun, progress: Progress) -> tuple[Tensor, Tensor]:
    """The differences with every head, and with every position of the residual stream, from the other prompt."""
    into, source, measure = run
    T, n_layer, n_head = len(into.ids), into.config.n_layer, into.config.n_head
    pairs = zip(into.ids, source.ids, strict=True)
    first = next(position for position, (one, other) in enumerate(pairs) if one != other)
    heads = torch.empty(n_layer, n_head)
    plain = float(measure(into.stream[-1]))
    residual = torch.full((n_layer + 1, T), plain)  # a patch before the first difference changes nothing
    n_variants = n_head + T - first  # per layer
    total, done = sum(n_variants * (n_layer - layer) for layer in range(n_layer)), 0
    for layer in range(n_layer + 1):
        for chosen in torch.arange(first, T).split(into.batch_size):
            x = into.stream[layer].repeat(len(chosen), 1, 1)  # (B, T, C)
            x[torch.arange(len(chosen)), chosen] = source.stream[layer][0, chosen]
            residual[layer, chosen] = measure(into.run_from(layer, x)).cpu()
            done += len(chosen) * (n_layer - layer)
            progress(done / total)
        if layer == n_layer:
            break
        own, other = into.context(layer), source.context(layer)[0].transpose(0, 1)
        for chosen in torch.arange(n_head).split(into.batch_size):
            context = own.repeat(len(chosen), 1, 1, 1)  # (B, T, n_head, head_dim)
            context[torch.arange(len(chosen)), :, chosen] = other[chosen]
            heads[layer, chosen] = measure(into.run_with_context(layer, context)).cpu()
            done += len(chosen) * (n_layer - layer)
            progress(done / total)
    return heads, residual


def patch_together(run: PatchRun, together: Sequence[tuple[int, int]]) -> float:
    """The difference with the context vectors of all these heads, at all positions, from the other prompt."""
    into, source, measure = run
    chosen = heads_by_layer(into.config, together)

    def patch(layer: int, context: Tensor) -> Tensor:
        if layer not in chosen:
            return context
        changed = context.clone()
        changed[:, :, chosen[layer]] = source.context(layer)[:, :, chosen[layer]]
        return changed

    first = min(chosen)
    return float(measure(into.run_from(first, into.stream[first], patch)))


def check_prompts(clean: Sequence[int], corrupted: Sequence[int]) -> None:
    """Raise ``InputError`` unless the prompts differ and have the same number of tokens."""
    if len(clean) != len(corrupted):
        raise InputError(
            "corrupted",
            "Both prompts must have the same number of tokens, so that each position has a counterpart: "
            f"prompt has {len(clean)}, corrupted has {len(corrupted)}.",
        )
    if list(clean) == list(corrupted):
        raise InputError("corrupted", "Both prompts are the same, so there is nothing to restore.")
