"""Charts of numbers over the steps of a training run, as small self-contained SVGs."""

import math
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 148, 16, 40
LABEL = 15.0  # minimum distance between two labels
GREY = "#808080"  # readable on white and on black


class Curve(NamedTuple):
    """A curve: its label, its colour, and its points as (step, value)."""

    label: str
    colour: str
    points: list[tuple[int, float]]


def chart(title: str, unit: str, curves: list[Curve], log_from: int = 0) -> str:
    """The text of an SVG that shows ``curves`` over the steps.

    With ``log_from``, the axis is linear up to about that step and logarithmic beyond: log(1 + step / log_from).
    """
    values = [value for curve in curves for _, value in curve.points]
    last = max(1, *(step for curve in curves for step, _ in curve.points))  # step 0 may be the only one so far
    ticks = nice_ticks(min(values), max(values))
    low, high = min([*ticks, *values]), max([*ticks, *values])

    def x(step: float) -> float:
        fraction = math.log1p(step / log_from) / math.log1p(last / log_from) if log_from else step / last
        return LEFT + (WIDTH - LEFT - RIGHT) * fraction

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / ((high - low) or 1)

    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="{GREY}" role="img">',
        f"<title>{escape(title)}</title>",
    ]
    for tick in ticks:
        elements.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-opacity=".3"/>')
        elements.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for step in log_ticks(log_from, last) if log_from else nice_ticks(0, last):
        elements.append(f'<text x="{x(step):.1f}" y="{HEIGHT - 20}" text-anchor="middle">{step:g}</text>')
    elements.append(f'<text x="{LEFT}" y="{HEIGHT - 4}">step ({escape(unit)})</text>')
    curves = sorted(curves, key=lambda curve: -curve.points[-1][1])
    for curve, label_y in zip(curves, spread_labels([y(curve.points[-1][1]) + 4 for curve in curves]), strict=True):
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in curve.points)
        elements.append(f'<polyline points="{points}" fill="none" stroke="{curve.colour}" stroke-width="2"/>')
        if len(curve.points) == 1:  # a line with one point would be invisible
            [(step, value)] = curve.points
            elements.append(f'<circle cx="{x(step):.1f}" cy="{y(value):.1f}" r="3" fill="{curve.colour}"/>')
        label = f"{escape(curve.label)} {curve.points[-1][1]:.3f}"
        elements.append(f'<text x="{WIDTH - RIGHT + 6}" y="{label_y:.1f}" fill="{curve.colour}">{label}</text>')
    return "\n".join([*elements, "</svg>"]) + "\n"


def spread_labels(wanted: list[float]) -> list[float]:
    """The y coordinates of labels, as close as possible to the ``wanted`` ones, which are sorted from top to bottom.

    No label overlaps another or lies below the axis.
    """
    heights: list[float] = []
    for height in wanted:
        heights.append(max(height, heights[-1] + LABEL) if heights else height)
    limit = HEIGHT - BOTTOM + 4.0
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], limit)
        limit = heights[i] - LABEL
    return heights


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``: multiples of 1, 2 or 5 times a power of ten, about ``most`` of them."""
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * m for m in (1, 2, 5, 10) if span / (power * m) <= most)
    first = math.ceil(low / step)
    return [round((first + i) * step, 10) for i in range(math.floor(high / step) - first + 1)]


def log_ticks(log_from: int, last: int) -> list[int]:
    """0, the powers of ten from about ``log_from``, and ``last``; without powers whose labels would overlap that of
    ``last``.
    """
    powers = [10**power for power in range(12) if log_from / 2 <= 10**power <= last / 2]
    return [0, *powers, last]
