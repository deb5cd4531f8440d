"""Numbers as an HTML table whose cells are coloured by value: light and dark, without a script."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

MAX_CELLS = 4_000  # of one table
RISE, FALL = "210, 90, 40", "40, 110, 220"  # above and below zero


def draw_numbers(title: str, numbers: Mapping[str, Any], over_tokens: Sequence[str] = ()) -> str:
    """All ``numbers`` by name: single ones in a line, tensors as tables, larger ones as their shape.

    The rows of a matrix are layers, and its columns heads, or tokens for the names in ``over_tokens``.
    """
    tables, words = [], []
    for name, value in named(numbers):
        if isinstance(value, Tensor) and value.dim() in (1, 2) and 0 < value.numel() <= MAX_CELLS:
            column = "H" if value.dim() == 2 and name.split(" ")[-1] not in over_tokens else ""
            tables.append(draw_tensor(name, value, column))
        elif isinstance(value, Tensor):
            words.append(f"{name}: a tensor {tuple(value.shape)}")
        else:
            words.append(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
    line = "".join(f"<span style='margin-right: 1.5em'>{html.escape(each)}</span>" for each in words)
    return f"<div><p><b>{html.escape(title)}</b></p><p>{line}</p>{''.join(tables)}</div>"


def named(numbers: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers in nested dictionaries, each with its names."""
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            yield from named(value, f"{prefix}{name} ")
        elif not isinstance(value, list):
            yield f"{prefix}{name}", value


def draw_tensor(name: str, tensor: Tensor, column: str) -> str:
    """A table of a matrix, or of a vector as a single row. Hovering over a number shows all of its digits."""
    rows = tensor.double() if tensor.dim() == 2 else tensor.double()[None]
    most = float(rows.abs().max()) or 1.0
    head = "".join(f"<th>{column}{i}</th>" for i in range(rows.shape[1]))
    body = "".join(
        f"<tr><th>{f'L{i}' if tensor.dim() == 2 else ''}</th>{''.join(cell(each, most) for each in row)}</tr>"
        for i, row in enumerate(rows.tolist())
    )
    caption = f"<caption style='text-align: left'>{html.escape(name)}</caption>"
    return f"<div style='overflow-x: auto'><table>{caption}<tr><th></th>{head}</tr>{body}</table></div>"


def cell(value: float, most: float) -> str:
    colour = f"rgba({RISE if value > 0 else FALL}, {0.7 * abs(value) / most:.2f})"
    return f"<td style='background: {colour}' title='{value!r}'>{value:.3g}</td>"
