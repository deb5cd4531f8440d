"""What computes each answer of the lessons, by the name that the browser asks for it."""

from collections.abc import Callable
from typing import Any

from ..shelf import Shelf
from . import attention_rungs, real_rung, text_rungs
from .ask import Ask, check_sentence


def bigram(ask: Ask) -> dict[str, Any]:
    """Rung 3 begins with nothing: the model is trained when the visitor says so."""
    check_sentence(ask.sentence)
    return {}


LESSONS: dict[str, Callable[[Ask], dict[str, Any]]] = {
    "1": text_rungs.tokens,
    "2": text_rungs.windows,
    "3": bigram,
    "4": attention_rungs.averages,
    "5": attention_rungs.plain,
    "6": attention_rungs.trainable,
    "scale": attention_rungs.scale,
    "7": attention_rungs.causal,
    "8": attention_rungs.many,
    "times": attention_rungs.timed,
}
OF_A_MODEL: dict[str, Callable[[Shelf, Ask], dict[str, Any]]] = {"9": real_rung.real, "cell": real_rung.cell}


def answer(shelf: Shelf, name: str, ask: Ask) -> dict[str, Any] | None:
    """The numbers of one lesson, None where there is none of that name. Raises ``BadInput``."""
    if name in OF_A_MODEL:
        return OF_A_MODEL[name](shelf, ask)
    return LESSONS[name](ask) if name in LESSONS else None
