"""Packages that this environment lacks, or has in another version. Without them a test is skipped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..files import ROOT


def own_python(folder: Path, *packages: str) -> Path:
    """Python in a new virtual environment with ``packages``, for clients, which need nothing of ours."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    install(python, *packages)
    return python


def with_packages(folder: Path, *packages: str) -> dict[str, str]:
    """Environment variables with which this Python finds ``packages`` before its own, and our modules after them."""
    target = folder / "packages"
    install(Path(sys.executable), "--target", str(target), *packages)
    paths = {"PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])}
    return {**os.environ, **paths, "PATH": os.pathsep.join([str(target / "bin"), os.environ["PATH"]])}


def install(python: Path, *arguments: str) -> None:
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
    installed = subprocess.run(command, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"cannot be installed here: {' '.join(arguments)}: {installed.stderr.strip()[-200:]}")
