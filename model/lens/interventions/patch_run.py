"""Two prompts between which activations are patched, and what is measured of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ...errors import InputError, InvalidValue
from ...gpt import GPT
from ..text_pass import TextPass

MIN_DIFFERENCE = 1e-3  # nats between the logit differences of the two prompts: below it there is nothing to restore

# "denoise" puts activations of the clean prompt into a run of the corrupted one, to see which are sufficient to restore
# its answer. "noise" puts activations of the corrupted prompt into a run of the clean one, to see which are necessary
# (Heimersheim and Nanda 2024).
Direction = Literal["denoise", "noise"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

Measure = Callable[[Tensor], Tensor]  # from the final residual stream (B, T, C) to logit differences (B,)

Metric = Callable[[Tensor], Tensor | float]  # from the logits (1, T, vocab_size) of one text to a number


class PatchRun(NamedTuple):
    """The run into which activations are put, the one from which they are taken, and what is measured."""

    into: TextPass
    source: TextPass
    measure: Measure
    clean: float
    corrupted: float
    answer: int | None  # both None if a metric is given
    wrong: int | None
    instead: Mapping[str, Tensor] | None = None  # by site: (n_layer, T, ...), in place of what ``source`` has there

    @property
    def plain(self) -> float:
        """The logit difference of the run into which activations are put."""
        return float(self.measure(self.into.stream[-1]))

    @property
    def first(self) -> int:
        """The first position at which the prompts differ: a patch before it changes nothing."""
        pairs = zip(self.into.ids, self.source.ids, strict=True)
        return next(position for position, (one, other) in enumerate(pairs) if one != other)


@torch.no_grad()
def patch_run(
    clean: TextPass,
    corrupted: TextPass,
    *,
    answer: str | int | None = None,
    wrong: str | int | None = None,
    direction: Direction = "denoise",
    metric: Metric | None = None,
) -> PatchRun:
    """Check the arguments of ``patch``, and prepare the two runs."""
    answer, wrong = clean.token_id(answer, "answer"), clean.token_id(wrong, "wrong")
    check_prompts(clean.ids, corrupted.ids)
    if direction not in DIRECTIONS:
        raise InvalidValue("direction", direction, "'denoise' or 'noise'")
    if metric is None:
        answer = most_probable(clean) if answer is None else answer
        wrong = most_probable(corrupted, other_than=answer) if wrong is None else wrong
        if answer == wrong:
            raise InputError("wrong", "answer and wrong must be two different tokens.")
        measure = partial(logit_difference, clean.gpt, answer, wrong)
    elif answer is None and wrong is None:
        measure = partial(measured, clean.gpt, metric)
    else:
        raise InputError("metric", "A metric stands in the place of answer and wrong: give either it or them.")
    at_clean, at_corrupted = (float(measure(text.stream[-1])) for text in (clean, corrupted))
    if not abs(at_clean - at_corrupted) > MIN_DIFFERENCE:
        raise InputError(
            "corrupted",
            f"Both prompts give a {'metric' if metric else 'logit difference'} of {at_clean:.4f}, so there is nothing "
            f"to restore: they must differ in {'it' if metric else 'how much they favour answer over wrong'}.",
        )
    into, source = (corrupted, clean) if direction == "denoise" else (clean, corrupted)
    return PatchRun(into, source, measure, at_clean, at_corrupted, answer, wrong)


def logit_difference(gpt: GPT, answer: int, wrong: int, final: Tensor) -> Tensor:
    """The logit of ``answer`` minus that of ``wrong`` after the last position, ``(B,)``."""
    return gpt.head_input(final[:, -1]) @ (gpt.lm_head.weight[answer] - gpt.lm_head.weight[wrong])


def measured(gpt: GPT, metric: Metric, final: Tensor) -> Tensor:
    """The ``metric`` of each text, ``(B,)``. Raises ``InputError`` unless it gives a single number."""
    found = [torch.as_tensor(metric(gpt.logits(each[None]))) for each in final]
    for each in found:
        if each.numel() != 1:
            raise InvalidValue("metric", f"one that gives {tuple(each.shape)}", "a function that gives one number")
    return torch.stack([each.float().reshape(()) for each in found])


def most_probable(text: TextPass, other_than: int | None = None) -> int:
    """The id of the most probable token after a text, other than ``other_than``."""
    first, second = text.logits(len(text.ids) - 1, len(text.ids))[0].topk(2).indices.tolist()
    return int(second if first == other_than else first)


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
