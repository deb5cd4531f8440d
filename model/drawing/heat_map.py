"""The parts of an answer as HTML: tables whose cells are coloured by value, light and dark, without a script."""

import html
import math
import re
from collections.abc import Sequence
from itertools import groupby, product
from typing import Any, NamedTuple

from torch import Tensor

MAX_CELLS = 4_000  # of one table
TINY = 1e-4
MAX_UNBROKEN = 24  # characters of a cell that stay in one line
N_LARGEST = 20  # of the numbers of a larger one
RISE, FALL = "210, 90, 40", "40, 110, 220"  # above and below zero

# How the places along an axis are called, from the names of axes in declarations: by a letter and a number, or, where
# the axis runs over tokens of the text, by those, from the given one on.
LETTERS = {
    "n_layer": "L",
    "layer": "L",
    "later": "L",
    "n_head": "H",
    "head": "H",
    "key-value head": "KV",
    "neuron": "N",
}
FIRST_TOKEN = {"T": 0, "position": 0, "position + 1": 0, "query + 1": 0, "T - 1": 1}
SPACES = str.maketrans({" ": "\u00b7", "\n": "\u21b5", "\t": "\u21e5"})  # a middle dot, and arrows


class Part(NamedTuple):
    """A named part of an answer: a single value; records, one a row; or a tensor, or nested lists of texts, with axes.

    An axis is a name of a declaration, or the labels of its places. Cells are coloured by their difference from
    ``plain``. The tables of one ``family`` share their colours and their digits; those with a title in ``folded`` are
    shown once a reader opens it.
    """

    name: str
    value: Any
    axes: tuple[str | Sequence[str], ...] = ()
    help: str = ""
    plain: float = 0.0
    family: str = ""
    folded: str = ""


class Scale(NamedTuple):
    """What numbers that are read together share: their decimals, and the difference that has the strongest colour."""

    places: int
    most: float
    plain: float = 0.0


def scale_of(values: Sequence[float], plain: float = 0.0) -> Scale:
    differences = (abs(value - plain) for value in values if math.isfinite(value))
    return Scale(decimals(values), max(differences, default=0.0) or 1.0, plain)


def shown_token(text: str) -> str:
    """The text of a token, with visible spaces and line breaks."""
    return text.translate(SPACES)


def in_context(tokens: Sequence[str], at: int) -> str:
    """Shown tokens in a row, with the one ``at`` an index between brackets."""
    return "".join(f"[{token}]" if i == at else token for i, token in enumerate(tokens))


def labels(axis: str | Sequence[str], n: int, texts: Sequence[str]) -> Sequence[str]:
    """What the ``n`` places along an axis are called; ``texts`` are those of the tokens that were read."""
    if not isinstance(axis, str):
        return axis
    if axis == "n_layer + 1":
        return ["embedded", *(f"after L{i}" for i in range(n - 1))]
    first = FIRST_TOKEN.get(axis, len(texts))
    if first + n <= len(texts):
        return [shown_token(text) for text in texts[first : first + n]]
    return [f"{LETTERS.get(axis, '')}{i}" for i in range(n)]


def places(axes: Sequence[str | Sequence[str]], sizes: Sequence[int], texts: Sequence[str]) -> list[str]:
    """What the places of several axes are called, in the order of their numbers."""
    return [" ".join(each) for each in product(*map(labels, axes, sizes, [texts] * len(sizes)))]


def largest(part: Part, texts: Sequence[str], n: int = 1) -> list[tuple[str, float]]:
    """The places and values of the numbers that are furthest from zero."""
    numbers = part.value.flatten()
    found = numbers.double().abs().nan_to_num(-1).topk(min(n, len(numbers))).indices.tolist()
    names = places(part.axes, part.value.shape, texts)
    return [(names[i], float(numbers[i])) for i in found]


def decimals(values: Sequence[float]) -> int:
    """How many places after the decimal point all of some numbers have: three digits of the largest."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return 2 if most >= 10 else 3 if most == 0 else min(9, max(3, 2 - math.floor(math.log10(most))))


def in_digits(value: float, places: int | None = None) -> str:
    """A number with so many decimals; with three digits of its own without them, or as a power of ten if it is tiny."""
    if places is None and 0 < abs(value) < TINY:
        digits, power = f"{value:.1e}".split("e")
        return f"{digits}e{int(power)}"
    shown = f"{value:.{decimals([value]) if places is None else places}f}"
    return shown[1:] if shown.startswith("-") and not shown.strip("-0.") else shown  # no minus in front of zero


def draw(title: str, summary: str, parts: Sequence[Part], texts: Sequence[str] = ()) -> str:
    """An answer: what it says in a sentence, its single values in a line, then its records, then its numbers."""
    single = [part for part in parts if not part.axes and not isinstance(part.value, list)]
    line = "".join(f"<span style='margin-right: 1.5em'>{html.escape(each)}</span>" for each in map(in_a_line, single))
    said = f"<p>{html.escape(summary)}</p>" if summary else ""
    shown = ""
    for title_of_fold in dict.fromkeys(["", *(part.folded for part in parts)]):
        drawn = draw_tables([part for part in parts if part.folded == title_of_fold], texts)
        folded = f"<details><summary>{html.escape(title_of_fold)}</summary>{drawn}</details>"
        shown += folded if title_of_fold else drawn
    return f"<div style='{STYLE}'><p><b>{html.escape(title)}</b></p>{said}<p>{line}</p>{shown}</div>"


def draw_tables(parts: Sequence[Part], texts: Sequence[str]) -> str:
    """Records, tables and vectors, as many side by side as fit."""
    records = [part for part in parts if not part.axes and isinstance(part.value, list)]
    vectors = [part for part in parts if is_row(part)]
    tables = [part for part in parts if part.axes and not is_row(part)]
    scales = family_scales(tables)
    drawn = [draw_records(part) for part in records]
    drawn += [draw_matrix(part, texts, scales.get(part.family)) for part in tables]
    drawn += [
        draw_vectors(list(some), texts) for _, some in groupby(vectors, lambda each: (each.axes, len(each.value)))
    ]
    return f"<div style='display: flex; flex-wrap: wrap; gap: 1em 2em'>{''.join(drawn)}</div>"


def family_scales(tables: Sequence[Part]) -> dict[str, Scale]:
    """The scale of each family, by name."""
    found = {}
    for family in dict.fromkeys(part.family for part in tables if part.family):
        own = [part for part in tables if part.family == family]
        numbers = [(value, part.plain) for part in own for value in part.value.flatten().tolist()]
        differences = scale_of([value - plain for value, plain in numbers])
        found[family] = differences._replace(places=decimals([value for value, _ in numbers]))
    return found


STYLE = "font-variant-numeric: tabular-nums"
BOX = "overflow: auto; min-width: min(16em, 100%); max-width: 100%; max-height: 32em"
CAPTION = "width: 0; min-width: 100%"  # as wide as the box, which it does not widen


def is_row(part: Part) -> bool:
    return len(part.axes) == 1 and len(part.value) <= MAX_CELLS


def in_a_line(part: Part) -> str:
    value = in_digits(part.value) if isinstance(part.value, float) else part.value
    return f"{part.name}: {value}"


def draw_records(part: Part) -> str:
    """A table of dictionaries with the same names."""
    names = list(dict.fromkeys(name for record in part.value for name in record))
    columns = [cells([record.get(name, "") for record in part.value]) for name in names]
    return table(part, names, [("", row) for row in zip(*columns, strict=True)])


def draw_matrix(part: Part, texts: Sequence[str], scale: Scale | None = None) -> str:
    """A table of a tensor or of lists of texts: with more than two axes, the rows or columns are those of two.

    ``scale`` is that of its family.
    """
    if isinstance(part.value, Tensor) and part.value.numel() > MAX_CELLS:
        found = largest(part, texts, N_LARGEST)
        name = f"{part.name}: the largest of {part.value.numel():,}"
        return draw_records(Part(name, [{"": place, "value": value} for place, value in found], help=part.help))
    is_tensor, n_rows = isinstance(part.value, Tensor), (len(part.axes) + 1) // 2
    shape = part.value.shape if is_tensor else (len(part.value), len(part.value[0]))
    rows = places(part.axes[:n_rows], shape[:n_rows], texts)
    columns = places(part.axes[n_rows:], shape[n_rows:], texts)
    values = part.value.reshape(len(rows), len(columns)) if is_tensor else part.value
    if is_tensor and 4 * len(columns) < len(rows):
        rows, columns, values = columns, rows, values.T
    flat = values.flatten().tolist() if is_tensor else [text for row in values for text in row]
    own = scale_of([value for value in flat if isinstance(value, float)], part.plain)
    flat = cells(flat, own if scale is None else scale._replace(plain=part.plain))
    n = len(columns)
    return table(part, columns, [(name, flat[i * n : (i + 1) * n]) for i, name in enumerate(rows)])


def draw_vectors(parts: Sequence[Part], texts: Sequence[str]) -> str:
    """A table with a row for each of some vectors along the same axis."""
    columns = labels(parts[0].axes[0], len(parts[0].value), texts)
    rows = [(each.name, cells(each.value.tolist() if isinstance(each.value, Tensor) else each.value)) for each in parts]
    return table(Part("", None), columns, rows)


def table(about: Part, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr><th>{html.escape(name)}</th>{''.join(row)}</tr>" for name, row in rows)
    help = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(about.help))
    caption = f"<b>{html.escape(about.name)}</b> {help}" if about.name else ""
    caption = f"<div style='{CAPTION}'>{caption}</div>"
    return f"<div style='{BOX}'>{caption}<table><tr><th></th>{head}</tr>{body}</table></div>"


def cells(values: Sequence[Any], scale: Scale | None = None) -> list[str]:
    """Cells that are read together: numbers with as many decimals, coloured; hovering over one shows all its digits."""
    n, most, plain = scale_of([value for value in values if isinstance(value, float)]) if scale is None else scale

    def cell(value: Any) -> str:
        if not isinstance(value, float):
            text = str("" if value is None else value)
            in_words = " style='white-space: nowrap'" if " " in text and len(text) <= MAX_UNBROKEN else ""
            style = " style='text-align: right'" if isinstance(value, int) else in_words
            return f"<td{style}>{html.escape(text)}</td>"
        if not math.isfinite(value):
            return f"<td style='text-align: right'>{value}</td>"
        colour = f"rgba({RISE if value > plain else FALL}, {0.7 * abs(value - plain) / most:.2f})"
        return f"<td style='background: {colour}; text-align: right' title='{value!r}'>{in_digits(value, n)}</td>"

    return [cell(value) for value in values]
