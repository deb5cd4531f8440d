"""The requirements files name every package that is imported, and no package that is not."""

import ast
import fnmatch
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.files import ROOT, nodes_of

LOCK = (ROOT / "deploy" / "requirements.lock").read_text()
OWN = {"app", "bench", "helpers", "model", "web"}
# Packages whose name is not that of the module.
PACKAGES = {"PIL": "pillow", "yaml": "pyyaml"}
# Imported where they are present: ray has a requirements file of its own, Spaces bring theirs, gguf writes GGUF files,
# and Triton comes with PyTorch for GPUs.
OPTIONAL = {"gguf", "mcp", "ray", "spaces", "triton"}
# Run in environments of their own.
ELSEWHERE = {"llama_cpp.py", "openai_clients.py", "transformer_bridge.py", "transformers_4.py"}
# Commands, plugins and stubs, which nothing imports.
TOOLS = {"mypy", "pytest-rerunfailures", "pytest-timeout", "pytest-xdist", "ruff", "setuptools", "types-tqdm"}


@functools.cache
def imported(part: str) -> set[str]:
    """The packages that Python files import, in any scope, without the standard library and our own modules."""
    files = python_files(ROOT / part)
    modules = {name for file in files for name in imports(nodes_of(file))}
    return {PACKAGES.get(name, name) for name in modules - OWN - set(sys.stdlib_module_names)}


def python_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*.py") if file.name not in ELSEWHERE]


def imports(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name.partition(".")[0] for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]


def required(path: str) -> set[str]:
    """The packages that a requirements file names itself."""
    lines = (ROOT / path).read_text().splitlines()
    return {re.match(r"[\w-]+", line)[0] for line in lines if line and line[0].isalpha()}  # type: ignore[index]


def test_requirements_name_what_the_app_imports() -> None:
    assert (imported("app.py") | imported("model") | imported("web")) - OPTIONAL == required("requirements.txt")


def test_the_library_requires_what_it_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert imported("model") - OPTIONAL == {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}  # type: ignore[index]


def test_development_requirements_name_what_the_tests_import() -> None:
    named = required("requirements-dev.txt")
    assert imported("tests") - required("requirements.txt") <= named
    assert named - imported("tests") - {"ctranslate2"} == TOOLS


def test_benchmark_requirements_name_what_the_benchmarks_import() -> None:
    assert imported("bench") - required("requirements.txt") == required("bench/requirements.txt")


def test_the_lock_file_has_hashes_and_versions_that_requirements_allow() -> None:
    locked = r"^([\w-]+)==(\S+)(?: ;[^\\\n]*)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+$"
    versions = dict(re.findall(locked, LOCK, re.MULTILINE))
    assert len(versions) == len(re.findall(r"^\w", LOCK, re.MULTILINE))
    for line in (ROOT / "requirements.txt").read_text().splitlines():
        if found := re.match(r"([\w-]+)(?:==(\S+))?", line):
            name, allowed = found.groups(default="*")
            assert fnmatch.fnmatch(versions[name.replace("_", "-")], allowed), name


@pytest.mark.slow
def test_installed_packages_satisfy_the_requirements() -> None:
    name = "requirements-dev.txt"
    assert "-r requirements.txt" in (ROOT / name).read_text().splitlines()
    command = [sys.executable, *"-m pip install --dry-run --no-index --quiet -r".split(), name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
