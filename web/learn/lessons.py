"""The function that computes each lesson, by the name that the browser requests."""

from collections.abc import Callable

from ..serving.served_models import ServedModels
from . import bigram, block, multi_head, one_number, self_attention, tokens_and_windows, whole_model
from .lesson_request import LessonRequest

LESSONS: dict[str, Callable[[LessonRequest], dict[str, object]]] = {
    "tokens": tokens_and_windows.tokens,
    "windows": tokens_and_windows.windows,
    "scale": self_attention.scaled_scores,
    "times": multi_head.running_times,
}
# Lessons that have to wait until the models are loaded.
LESSONS_WITH_MODEL: dict[str, Callable[[ServedModels, LessonRequest], dict[str, object]]] = {
    "untrained-bigram": bigram.before_training,
    "averages": self_attention.averages_of_the_past,
    "self-attention": self_attention.without_weights,
    "trainable-weights": self_attention.with_trainable_weights,
    "transfer": self_attention.transferred_weights,
    "causal-masking": multi_head.causal,
    "many-heads": multi_head.multi_head,
    "block": block.rest_of_a_block,
    "whole-model": whole_model.whole_model,
    "cell": one_number.one_cell,
    "number": one_number.one_number,
}


def answer(served: ServedModels, name: str, request: LessonRequest) -> dict[str, object] | None:
    """The numbers of the lesson ``name``, or None if there is no such lesson. Raises ``InputError``."""
    if name in LESSONS_WITH_MODEL:
        return LESSONS_WITH_MODEL[name](served, request)
    return LESSONS[name](request) if name in LESSONS else None
