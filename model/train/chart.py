"""Numbers over the steps of a training run as a picture: a small SVG that needs nothing to be drawn or shown."""

import math
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 148, 16, 40
LABEL = 15.0  # height of a line of text
GREY = "#808080"  # readable on white and on black


class Line(NamedTuple):
    """One curve: its name, its colour, and (step, value) for each of its points."""

    label: str
    colour: str
    points: list[tuple[int, float]]


def chart(title: str, unit: str, lines: list[Line], knee: int = 0) -> str:
    """The text of an SVG with ``lines`` over the step.

    With a ``knee`` the steps are evenly spaced up to about there and on a log scale beyond: log(1 + step / knee).
    """
    values = [value for line in lines for _, value in line.points]
    last = max(step for line in lines for step, _ in line.points)
    ticks = nice_ticks(min(values), max(values))
    low, high = min([*ticks, *values]), max([*ticks, *values])

    def x(step: float) -> float:
        part = math.log1p(step / knee) / math.log1p(last / knee) if knee else step / last
        return LEFT + (WIDTH - LEFT - RIGHT) * part

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / ((high - low) or 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="{GREY}" role="img">',
        f"<title>{escape(title)}</title>",
    ]
    for tick in ticks:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-opacity=".3"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for step in log_ticks(knee, last) if knee else nice_ticks(0, last):
        parts.append(f'<text x="{x(step):.1f}" y="{HEIGHT - 20}" text-anchor="middle">{step:g}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 4}">step ({escape(unit)})</text>')
    lines = sorted(lines, key=lambda line: -line.points[-1][1])
    for line, label_y in zip(lines, label_places([y(line.points[-1][1]) + 4 for line in lines]), strict=True):
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in line.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{line.colour}" stroke-width="2"/>')
        label = f"{escape(line.label)} {line.points[-1][1]:.3f}"
        parts.append(f'<text x="{WIDTH - RIGHT + 6}" y="{label_y:.1f}" fill="{line.colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def label_places(wanted: list[float]) -> list[float]:
    """Where labels stand that want to be at these heights, from the top down: none on another, none below the axis."""
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + LABEL) if places else place)
    limit = HEIGHT - BOTTOM + 4.0
    for i in reversed(range(len(places))):
        places[i] = min(places[i], limit)
        limit = places[i] - LABEL
    return places


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``: steps of 1, 2 or 5 times a power of ten, as fine as ``most`` allows."""
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * m for m in (1, 2, 5, 10) if span / (power * m) <= most)
    first = math.ceil(low / step)
    return [round((first + i) * step, 10) for i in range(math.floor(high / step) - first + 1)]


def log_ticks(knee: int, last: int) -> list[int]:
    """0, powers of ten from about ``knee``, and ``last``; none so near to the last that the two would touch."""
    powers = [10**power for power in range(12) if knee / 2 <= 10**power <= last / 2]
    return [0, *powers, last]
