"""The training that rung 3 opens with: the lecture's own, recorded by ``bench/lecture.py``."""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..tokens_and_windows import SHOWN_TOKENS

FILE = Path(__file__).with_name("lecture.json")


@cache
def recorded() -> dict[str, Any]:
    """The reports "before", "training" and "after", and "table", ``[this][next]`` probabilities."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def lecture_training(sentence: str) -> list[dict[str, object]]:
    """What a visitor who had trained it would have been sent, with the probabilities of ``sentence``."""
    found = recorded()
    rated = rate(sentence[:SHOWN_TOKENS], found["before"]["characters"], found["table"])
    return [found["before"], found["training"], found["after"] | {"sentence": rated, "n_sentence": len(sentence)}]


def rate(sentence: str, characters: list[str], table: list[list[float]]) -> list[dict[str, object]]:
    """Each character with its probability after the one before it, None where the text lacks either."""
    places = {character: place for place, character in enumerate(characters)}
    found = [places.get(character) for character in sentence]
    pairs = [None if a is None or b is None else table[a][b] for a, b in pairwise(found)]
    return [
        {"text": character, "known": character in places, "probability": p}
        for character, p in zip(sentence, [None, *pairs], strict=True)
    ]
