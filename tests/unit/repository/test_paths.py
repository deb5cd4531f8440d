"""Documents and comments name only files of this repository that exist."""

import re

import pytest

from helpers.files import ROOT

FOLDERS = ("model", "web", "tests", "bench", "docs", "deploy")
FILES = [
    path
    for path in (*ROOT.glob("*.*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")))
    if "node_modules" not in path.parts
]
COMMENT = re.compile(r"^\s*#[^\n]*|\s# [^\n]*|//[^\n]*|/\*.*?\*/|\"\"\".*?\"\"\"", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"(?<![\w./-])((?:[\w-]+/)+[\w-]+\.(?:py|mjs|css|json|md|d\.ts))(?![\w/])")
OUTSIDE = {"v1/openapi.json", "gradio_api/openapi.json", "converted/config.json"}  # routes, and what commands write


@pytest.mark.parametrize("endings", [(".md",), (".py",), (".mjs", ".css", ".d.ts")], ids=lambda endings: endings[0])
def test_paths_that_are_named_exist(endings: tuple[str, ...]) -> None:
    existing = {f"/{path.relative_to(ROOT)}" for path in FILES}
    for path in FILES:
        if not path.name.endswith(endings) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        named = set(NAMED.findall(text if path.suffix == ".md" else "\n".join(COMMENT.findall(text)))) - OUTSIDE
        missing = {name for name in named if not any(file.endswith(f"/{name}") for file in existing)}
        assert not missing, path
