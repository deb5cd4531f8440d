"""The function that computes each lesson, by the name that the browser requests."""

from collections.abc import Callable

from model import InputError

from ..serving.served_models import ServedModels
from . import self_attention, tokens_and_windows, trained_head
from .ask import Ask, check_sentence
from .bigram import choose_writer


def bigram(served: ServedModels, ask: Ask) -> dict[str, object]:
    """Rung 3, before the visitor starts the training: the name of the model that would write the text, if any."""
    check_sentence(ask.sentence)
    try:
        return {"writer": choose_writer(served, ask.model).name}
    except InputError:
        return {"writer": None}


LESSONS: dict[str, Callable[[Ask], dict[str, object]]] = {
    "1": tokens_and_windows.tokens,
    "2": tokens_and_windows.windows,
    "4": self_attention.averages_of_the_past,
    "5": self_attention.without_weights,
    "6": self_attention.with_trainable_weights,
    "scale": self_attention.scaled_scores,
    "7": self_attention.causal,
    "8": self_attention.multi_head,
    "times": self_attention.running_times,
}
# Those that have to wait until the models are loaded.
LESSONS_WITH_MODEL: dict[str, Callable[[ServedModels, Ask], dict[str, object]]] = {
    "3": bigram,
    "9": trained_head.whole_head,
    "cell": trained_head.one_cell,
}


def answer(served: ServedModels, name: str, ask: Ask) -> dict[str, object] | None:
    """The numbers of the lesson ``name``, or None if there is no such lesson. Raises ``InputError``."""
    if name in LESSONS_WITH_MODEL:
        return LESSONS_WITH_MODEL[name](served, ask)
    return LESSONS[name](ask) if name in LESSONS else None
