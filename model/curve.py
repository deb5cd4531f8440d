"""The losses of a training run as a picture: a small SVG that needs nothing to be drawn or shown."""

import math
from typing import Any

from .errors import counted

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 96, 16, 40
LINES = {"train_loss": ("#d97706", "training"), "validation_loss": ("#2563eb", "validation")}
GREY = "#808080"  # readable on white and on black


def loss_curve(history: list[dict[str, Any]], unit: str = "token") -> str:
    """The text of an SVG with the training and the validation loss of each row of ``history`` over its step."""
    steps = [row["step"] for row in history]
    losses = [row[name] for row in history for name in LINES]
    ticks = nice_ticks(min(losses), max(losses))
    low, high, last = min([*ticks, *losses]), max([*ticks, *losses]), max(steps)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / last

    def y(loss: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (loss - low) / ((high - low) or 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="{GREY}" role="img">',
        f"<title>Loss over {counted(last, 'step')} of training, in nats per {unit}</title>",
    ]
    for tick in ticks:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="{GREY}" stroke-opacity=".3"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for step in nice_ticks(0, last):
        parts.append(f'<text x="{x(step):.1f}" y="{HEIGHT - 20}" text-anchor="middle">{step:g}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 4}">step (loss in nats per {unit})</text>')
    label_y = 0.0
    for name, (colour, label) in sorted(LINES.items(), key=lambda line: y(history[-1][line[0]])):
        points = " ".join(f"{x(row['step']):.1f},{y(row[name]):.1f}" for row in history)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        label_y = max(y(history[-1][name]) + 4, label_y + 15)  # labels do not lie on each other
        value = f"{history[-1][name]:.3f}"
        parts.append(f'<text x="{x(last) + 6:.1f}" y="{label_y:.1f}" fill="{colour}">{label} {value}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``: steps of 1, 2 or 5 times a power of ten, as fine as ``most`` allows."""
    span = (high - low) or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * m for m in (1, 2, 5, 10) if span / (power * m) <= most)
    first = math.ceil(low / step)
    return [round((first + i) * step, 10) for i in range(math.floor(high / step) - first + 1)]
