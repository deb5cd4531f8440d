"""The notebooks of ``examples`` are short, run, and find what their words say."""

import ast
import json
from collections.abc import Callable
from typing import Any

import pytest

from helpers.files import ROOT

MAX_LINES = 60  # of code in a notebook


def probe_finds_it(found: dict[str, Any]) -> bool:
    at_end = found["by_place"][found["at_end"]]
    return bool(at_end[0] == 0.5 and min(at_end[3:]) > 0.9 and found["control"] < 0.6)


FOUND: dict[str, Callable[[dict[str, Any]], bool]] = {
    "induction_over_training": lambda found: found["losses"][3000][1] < 0.1 and found["cut"] > 4,
    "indirect_objects": lambda found: found["best"] == (5, 0) and found["effects"].max() > 0.7,
    "steering": lambda found: found["moved"] > 5 > abs(found["moved_by_chance"]) + 4,
    "probe": probe_finds_it,
}


def test_every_notebook_is_run() -> None:
    assert {path.stem for path in (ROOT / "examples").iterdir()} == FOUND.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_an_example_finds_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sum(len(source.splitlines()) for source in sources) <= MAX_LINES
    assert not any(cell.get("outputs") for cell in cells)
    monkeypatch.chdir(ROOT / "examples")
    found: dict[str, Any] = {}
    drawn = False
    for source in sources:
        *before, last = ast.parse(source).body
        exec(compile(ast.Module(before, []), name, "exec"), found)
        if isinstance(last, ast.Expr):  # what the cell shows
            shown = eval(compile(ast.Expression(last.value), name, "eval"), found)
            drawn |= "<iframe" in getattr(shown, "_repr_html_", str)()
        else:
            exec(compile(ast.Module([last], []), name, "exec"), found)
    assert drawn
    assert FOUND[name](found)
