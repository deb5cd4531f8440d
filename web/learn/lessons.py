"""What computes each answer of the lessons, by the name that the browser asks for it."""

from collections.abc import Callable
from typing import Any

from model import InputError

from ..serving.served_models import ServedModels
from . import loaded_head as real_rung
from . import self_attention as attention_rungs
from . import tokens_and_windows as text_rungs
from .ask import Ask, check_sentence
from .bigram import choose_writer


def bigram(served: ServedModels, ask: Ask) -> dict[str, Any]:
    """Rung 3 begins with who would write its text, None while nobody can: it is trained when the visitor says so."""
    check_sentence(ask.sentence)
    try:
        return {"writer": choose_writer(served, ask.model).name}
    except InputError:
        return {"writer": None}


LESSONS: dict[str, Callable[[Ask], dict[str, Any]]] = {
    "1": text_rungs.tokens,
    "2": text_rungs.windows,
    "4": attention_rungs.averages,
    "5": attention_rungs.plain,
    "6": attention_rungs.trainable,
    "scale": attention_rungs.scale,
    "7": attention_rungs.causal,
    "8": attention_rungs.many,
    "times": attention_rungs.timed,
}
OF_A_MODEL: dict[str, Callable[[ServedModels, Ask], dict[str, Any]]] = {
    "3": bigram,
    "9": real_rung.real,
    "cell": real_rung.cell,
}


def answer(served: ServedModels, name: str, ask: Ask) -> dict[str, Any] | None:
    """The numbers of one lesson, None where there is none of that name. Raises ``InputError``."""
    if name in OF_A_MODEL:
        return OF_A_MODEL[name](served, ask)
    return LESSONS[name](ask) if name in LESSONS else None
