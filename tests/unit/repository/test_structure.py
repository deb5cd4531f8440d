"""Files and folders stay small enough to read, and imports point downward only."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import model
from helpers.files import ROOT, nodes_of

MAX_LINES = 500
MAX_LINES_OF_FORWARD_PASS = 380  # attention.py and gpt.py together: what one reads first
MAX_LINES_OF_APP = 100  # app.py
MAX_ENTRIES = 20
MARKERS = ("__init__.py", "py.typed")  # files that only say what a folder is
SOURCES = {".py", ".js", ".mjs", ".css"}

# A layer may import itself and the layers after it.
WEB_LAYERS = [
    {"web.page", "web.replicas", "web.edge"},
    {"web.learn", "web.training"},
    {"web.api", "web.publish"},
    {"web.services"},
    {"web.gauges"},
    {"web.runs", "web.ask"},
    {"web.body_types", "web.seams"},
    {"web.serving"},
    {
        "web.prometheus",
        "web.settings",
        "web.assets",
        "web.client",
        "web.request_path",
    },
]
MODEL_LAYERS = [
    {"model.train"},
    {"model.serving", "model.ladder", "model.view"},
    {"model.loaded"},
    {"model.lens"},
    {"model.generate", "model.drawing", "model.checkpoint"},
    {"model.points"},
    {"model.sampling", "model.tokenizer", "model.kernels"},
    {"model.gpt"},
    {"model.attention"},
    {"model.modules"},
    {"model.config"},
    {"model.errors", "model.seams"},
]
# What a package may not import.
FORBIDDEN = {
    "model": {"web", "app", "bench", "gradio", "fastapi", "starlette", "uvicorn", "prometheus_client"},
    "web": {"app", "bench"},
    "web.api": {"web.page", "web.learn"},
    "web.learn": {"web.page", "web.api"},
    "web.serving": {"gradio"},
    "web.runs": {"gradio"},
    "web.ask": {"gradio"},
}


@cache
def sources() -> list[Path]:
    folders = [ROOT / name for name in ("model", "web", "tests", "bench")]
    return [ROOT / "app.py", *(path for folder in folders for path in sorted(folder.rglob("*")) if is_source(path))]


def is_source(path: Path) -> bool:
    return path.suffix in SOURCES and "node_modules" not in path.parts


def n_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imported(path: Path) -> set[str]:
    """The full names of all that a file imports, at its top or inside a function."""
    package = path.relative_to(ROOT).parts[:-1]
    found: set[str] = set()
    for node in nodes_of(path):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=module, level=level, names=names):
                above = package[: len(package) - level + 1] if level else ()
                stem = ".".join([*above, *([module] if module else [])])
                found.update(f"{stem}.{alias.name}" for alias in names)
    return found


def nearest(name: str, known: set[str]) -> str | None:
    """The module of ``model`` or ``web`` that an imported name is in."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


@cache
def graph() -> dict[str, set[str]]:
    """Which module of ``model`` and ``web`` imports which."""
    files = {dotted(path): path for path in sources() if path.suffix == ".py" and path.parts[-1] != "app.py"}
    files = {name: path for name, path in files.items() if name.split(".")[0] in ("model", "web")}
    found = {name: {nearest(target, set(files)) for target in imported(path)} for name, path in files.items()}
    return {name: {target for target in targets if target and target != name} for name, targets in found.items()}


def package_of(name: str) -> str:
    """``model.drawing`` for ``model.drawing.pictures``; a file directly in ``model`` counts as a package."""
    return ".".join(name.split(".")[:2])


def packages() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, targets in graph().items():
        found.setdefault(package_of(name), set()).update(package_of(target) for target in targets)
    return {name: targets - {name} for name, targets in found.items()}


def cycle_in(edges: dict[str, set[str]]) -> list[str]:
    """The names along a cycle, if there is one."""
    try:
        list(TopologicalSorter(edges).static_order())
    except CycleError as error:
        return list(error.args[1])
    return []


def is_inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_files_can_be_read_in_one_sitting() -> None:
    assert not {str(path.relative_to(ROOT)): n_lines(path) for path in sources() if n_lines(path) > MAX_LINES}
    forward = n_lines(ROOT / "model" / "attention.py") + n_lines(ROOT / "model" / "gpt.py")
    assert forward <= MAX_LINES_OF_FORWARD_PASS
    assert n_lines(ROOT / "app.py") <= MAX_LINES_OF_APP


@pytest.mark.parametrize("top", ["model", "web", "tests"])
def test_folders_can_be_read_at_a_glance(top: str) -> None:
    folders = [path for path in (ROOT / top).rglob("*") if path.is_dir() and not is_hidden(path)]
    for folder in [ROOT / top, *folders]:
        entries = [path.name for path in folder.iterdir() if not is_hidden(path) and path.name not in MARKERS]
        assert len(entries) <= MAX_ENTRIES, (folder, sorted(entries))


def is_hidden(path: Path) -> bool:
    return any(part == "__pycache__" or part.startswith(".") for part in path.relative_to(ROOT).parts)


def test_no_public_name_hides_a_package() -> None:
    for name in model.__all__:
        assert {path.stem for path in (ROOT / "model" / name).glob("*.py")} <= {"__init__", "__main__"}


def test_no_import_cycles() -> None:
    assert cycle_in(graph()) == []


def test_no_import_cycles_between_packages() -> None:
    # ``model`` itself gathers the public names of its packages, which do not import it.
    assert cycle_in({name: targets - {"model", "web"} for name, targets in packages().items()}) == []


@pytest.mark.parametrize("part", FORBIDDEN)
def test_forbidden_imports(part: str) -> None:
    for path in sources():
        if path.suffix == ".py" and is_inside(dotted(path), part):
            wrong = {name for name in imported(path) if any(is_inside(name, other) for other in FORBIDDEN[part])}
            assert not wrong, path


@pytest.mark.parametrize("layers", [WEB_LAYERS, MODEL_LAYERS], ids=["web", "model"])
def test_imports_point_downward(layers: list[set[str]]) -> None:
    level = {name: i for i, names in enumerate(layers) for name in names}
    top = layers[0].copy().pop().split(".")[0]
    here = {name: targets for name, targets in packages().items() if name.startswith(f"{top}.")}
    assert set(level) == set(here), "every package is in one layer"
    for name, targets in here.items():
        upward = {target for target in targets if target in level and level[target] < level[name]}
        assert not upward, f"{name} imports {upward}"


def test_tests_import_no_test() -> None:
    tests = ROOT / "tests"
    for path in tests.rglob("*.py"):
        parts = {part for name in imported(path) for part in name.split(".")}
        assert not {part for part in parts if part.startswith("test_") or part == "conftest"}, path


def test_docstrings_quote_code_in_double_backticks() -> None:
    """Except in ``web``, where docstrings may be descriptions of routes, which are Markdown."""
    quoted = re.compile(r":(func|meth|class|mod):`|(?<!`)`[^`\n]+`(?!`)")
    found = {}
    for path in sources():
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in ("model", "tests", "bench"):
            documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            texts = [ast.get_docstring(node) or "" for node in nodes_of(path) if isinstance(node, documented)]
            if any(map(quoted.search, texts)):
                found[path.relative_to(ROOT).as_posix()] = [text for text in texts if quoted.search(text)]
    assert not found
