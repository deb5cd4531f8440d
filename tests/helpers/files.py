"""The repository's folder, its parsed sources, and files of a checkpoint that a test changes."""

import ast
import gc
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import model

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a Python file, in the order of ``ast.walk``.

    The garbage collector does not look at them: it would take most of the time.
    """
    gc.disable()
    try:
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        gc.freeze()
    finally:
        gc.enable()
    return nodes


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_json(path: Path, **changes: Any) -> None:
    """Set keys of a JSON file; the value ``...`` removes the key."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    write_json(path, {name: value for name, value in content.items() if value is not ...})


def refused(folder: Path, file: str, message: str) -> str:
    """Assert that loading ``folder`` fails because of ``file``, and return the error message."""
    with pytest.raises(model.CheckpointError) as caught:
        model.load(folder, device="cpu")
    error = caught.value
    assert error.file == str(folder / file)
    assert error.found and error.expected
    assert str(error) == f"{error.file}: found {error.found}, expected {error.expected}"
    assert re.search(message, str(error)), str(error)
    assert str(error).encode()
    return str(error)


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: ``("COPY", "app.py ./")``."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = (line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    return [(name, rest) for name, rest in lines]


def copied() -> list[str]:
    """The files of the repository that the image contains."""
    return [source for name, rest in dockerfile() if name == "COPY" for source in rest.split()[:-1]]
