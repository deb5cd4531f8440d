"""Numbers as an HTML table whose cells are coloured by value: light and dark, without a script."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

MAX_CELLS = 4_000  # of one table
RISE, FALL = "210, 90, 40", "40, 110, 220"  # above and below zero


def draw_numbers(title: str, numbers: Mapping[str, Any], per_head: Sequence[str], texts: Sequence[str] = ()) -> str:
    """All ``numbers`` by name: single ones in a line, tensors as tables, larger ones as their shape.

    ``per_head`` names the matrices with a row for each layer and a column for each head. ``texts`` are those of the
    tokens that were read; they stand above the columns of other tables that have as many, or all but the first.
    """
    tables, words = [], []
    for name, value in flattened(numbers):
        if isinstance(value, Tensor) and value.dim() in (1, 2) and 0 < value.numel() <= MAX_CELLS:
            is_per_head, n = name.split(" ")[-1] in per_head, value.shape[-1]
            columns = [] if is_per_head or not 0 <= len(texts) - n <= 1 else texts[len(texts) - n :]
            tables.append(draw_tensor(name, value, ("L", "H") if is_per_head else ("", ""), columns))
        elif isinstance(value, list):
            tables.append(draw_words(name, value, texts))
        elif isinstance(value, Tensor):
            words.append(f"{name}: a tensor {tuple(value.shape)}")
        else:
            words.append(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")
    line = "".join(f"<span style='margin-right: 1.5em'>{html.escape(each)}</span>" for each in words)
    return f"<div><p><b>{html.escape(title)}</b></p><p>{line}</p>{''.join(tables)}</div>"


def flattened(numbers: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and tensors in nested dictionaries and lists, each with its names; everything else is left out."""
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name} ")
        elif isinstance(value, list) and value and all(is_words(each) for each in value):
            yield f"{prefix}{name}", value
        elif isinstance(value, list):
            tensors = {str(i): each for i, each in enumerate(value) if isinstance(each, Tensor)}
            yield from flattened(tensors, f"{prefix}{name} ")
        elif isinstance(value, Tensor | float | int):
            yield f"{prefix}{name}", value


def is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def draw_words(name: str, rows: Sequence[Sequence[str]], texts: Sequence[str]) -> str:
    """A table of texts, below those of the tokens that were read."""
    head = "".join(f"<th>{html.escape(each)}</th>" for each in texts)
    cells = ["".join(f"<td>{html.escape(each)}</td>" for each in row) for row in rows]
    body = "".join(f"<tr><th>{i}</th>{row}</tr>" for i, row in enumerate(cells))
    caption = f"<caption style='text-align: left'>{html.escape(name)}</caption>"
    return f"<div style='overflow-x: auto'><table>{caption}<tr><th></th>{head}</tr>{body}</table></div>"


def draw_tensor(name: str, tensor: Tensor, letters: tuple[str, str], texts: Sequence[str] = ()) -> str:
    """A table of a matrix, or of a vector as a single row. Hovering over a number shows all of its digits."""
    row, column = letters  # in front of the numbers of rows and columns
    rows = tensor.double() if tensor.dim() == 2 else tensor.double()[None]
    most = float(rows.abs().max()) or 1.0
    names = list(map(html.escape, texts)) or [f"{column}{i}" for i in range(rows.shape[1])]
    head = "".join(f"<th>{each}</th>" for each in names)
    body = "".join(
        f"<tr><th>{f'{row}{i}' if tensor.dim() == 2 else ''}</th>{''.join(cell(each, most) for each in values)}</tr>"
        for i, values in enumerate(rows.tolist())
    )
    caption = f"<caption style='text-align: left'>{html.escape(name)}</caption>"
    return f"<div style='overflow-x: auto'><table>{caption}<tr><th></th>{head}</tr>{body}</table></div>"


def cell(value: float, most: float) -> str:
    colour = f"rgba({RISE if value > 0 else FALL}, {0.7 * abs(value) / most:.2f})"
    return f"<td style='background: {colour}; text-align: right' title='{value!r}'>{value:.3g}</td>"
