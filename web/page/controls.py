"""The controls of the page that say how a text is written, made from the table of options."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..serving.inputs import OPTIONS, SLIDERS

# What a visitor can choose, in the order in which the page sends it.
FIELDS = ("prompt", "model", *SLIDERS, "seed", "context_shift")
SETTINGS = (*SLIDERS, "seed")  # those that a link carries
WORDS = {"max_new_tokens": "length"}  # settings that a link calls otherwise


class Control(NamedTuple):
    """A setting as the browser needs it. ``word`` is its name in links; a seed has no slider."""

    name: str
    word: str
    label: str
    help: str
    least: float | None
    most: float | None
    step: float | None
    start: float | None


def control(name: str) -> Control:
    slider, word = SLIDERS.get(name), WORDS.get(name, name)
    if slider is None:
        return Control(name, word, name, OPTIONS[name].help, None, None, None, None)
    return Control(name, word, slider.label, OPTIONS[name].help, slider.least, slider.most, slider.step, slider.start)


CONTROLS = [control(name) for name in SETTINGS]


def as_fields(values: Sequence[Any]) -> dict[str, Any]:
    """What the page sends, by name."""
    return dict(zip(FIELDS, values, strict=True))
