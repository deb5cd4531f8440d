"""``pip install .`` gives the library as the package ``headscope``, and nothing else."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.files import ROOT
from helpers.models import tiny_model
from model.drawing import bundle

OFFLINE = "--no-deps --no-index --no-build-isolation --disable-pip-version-check --quiet".split()
USE = """
import sys
import headscope
loaded = headscope.load(sys.argv[1], device="cpu")
assert isinstance(loaded, headscope.LoadedModel)
assert loaded.trace("To be").attention.shape == (2, 2, 5, 5)
assert len(list(loaded.generate("To be", max_new_tokens=3))) == 3
loaded.trace("To be").to_html("text.html")
assert not {"model", "web", "gradio", "fastapi"} & {name.partition(".")[0] for name in sys.modules}
print(headscope.__file__)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel is installed; it is built from a copy, since building writes next to its sources."""
    work = tmp_path_factory.mktemp("wheel")
    source, target = work / "source", work / "installed"
    for name in ("model", "web/js"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "install", *OFFLINE, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.mark.slow
def test_wheel_is_one_package(installed: Path) -> None:
    found = {path.name for path in installed.iterdir()}
    assert {re.sub(r"-.*\.dist-info$", " (metadata)", name) for name in found} == {"headscope", "headscope (metadata)"}
    files = {path.relative_to(installed / "headscope") for path in (installed / "headscope").rglob("*.py")}
    assert files == {path.relative_to(ROOT / "model") for path in (ROOT / "model").rglob("*.py")}
    assert (installed / "headscope" / "py.typed").exists()


@pytest.mark.slow
def test_wheel_works_without_the_app(installed: Path, tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "tiny")
    env = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", USE, str(tmp_path / "tiny")]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(done.stdout.strip()).is_relative_to(installed)
    assert bundle.packed() in (tmp_path / "text.html").read_text(encoding="utf-8")  # the modules of the clone
