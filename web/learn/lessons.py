"""What computes each answer of the lessons, by the name that the browser asks for it."""

from collections.abc import Callable
from typing import Any

from ..shelf import Shelf
from ..validate import BadInput
from . import attention_rungs, real_rung, text_rungs
from .ask import Ask, check_sentence
from .bigram import choose_writer


def bigram(shelf: Shelf, ask: Ask) -> dict[str, Any]:
    """Rung 3 begins with who would write its text, None while nobody can: it is trained when the visitor says so."""
    check_sentence(ask.sentence)
    try:
        return {"writer": choose_writer(shelf, ask.model).name}
    except BadInput:
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
OF_A_MODEL: dict[str, Callable[[Shelf, Ask], dict[str, Any]]] = {
    "3": bigram,
    "9": real_rung.real,
    "cell": real_rung.cell,
}


def answer(shelf: Shelf, name: str, ask: Ask) -> dict[str, Any] | None:
    """The numbers of one lesson, None where there is none of that name. Raises ``BadInput``."""
    if name in OF_A_MODEL:
        return OF_A_MODEL[name](shelf, ask)
    return LESSONS[name](ask) if name in LESSONS else None
