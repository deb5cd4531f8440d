"""The function that computes each lesson, by the name that the browser requests."""

from collections.abc import Callable

from model import InputError

from ..serving.served_models import ServedModels
from ..settings import MAX_LESSON_CHARACTERS
from . import averages, block, causal, many_heads, self_attention, tokens_and_windows
from .ask import Ask, check_sentence
from .bigram.lecture import lecture_training
from .bigram.training import choose_writer
from .loaded import one_number, whole_model


def bigram(served: ServedModels, ask: Ask) -> dict[str, object]:
    """Rung 3, before the visitor starts a training: a recorded one, and the model that would write the text, if any."""
    check_sentence(ask.sentence)
    try:
        writer = choose_writer(served, ask.model).name
    except InputError:
        writer = None
    example = lecture_training(ask.sentence)
    return {"writer": writer, "most_characters": MAX_LESSON_CHARACTERS, "example": example}


LESSONS: dict[str, Callable[[Ask], dict[str, object]]] = {
    "1": tokens_and_windows.tokens,
    "2": tokens_and_windows.windows,
    "scale": self_attention.scaled_scores,
    "times": many_heads.running_times,
}
# Those that have to wait until the models are loaded.
LESSONS_WITH_MODEL: dict[str, Callable[[ServedModels, Ask], dict[str, object]]] = {
    "3": bigram,
    "4": averages.averages_of_the_past,
    "5": self_attention.without_weights,
    "6": self_attention.with_trainable_weights,
    "transfer": self_attention.transferred_weights,
    "7": causal.causal,
    "8": many_heads.multi_head,
    "9": block.rest_of_a_block,
    "10": whole_model.whole_model,
    "cell": one_number.one_cell,
    "number": one_number.one_number,
}


def answer(served: ServedModels, name: str, ask: Ask) -> dict[str, object] | None:
    """The numbers of the lesson ``name``, or None if there is no such lesson. Raises ``InputError``."""
    if name in LESSONS_WITH_MODEL:
        return LESSONS_WITH_MODEL[name](served, ask)
    return LESSONS[name](ask) if name in LESSONS else None
