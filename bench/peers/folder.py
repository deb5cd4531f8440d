"""Checkpoints in the peers' own formats, converted once and kept in the temporary folder, and the peers' commands."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.harness import CACHE


def converted(folder: Path, name: str, convert: Callable[[Path], None]) -> Path:
    """The checkpoint in ``folder`` as file or folder ``name``; ``convert`` writes it unless it is there already."""
    changed = int((folder / "model.safetensors").stat().st_mtime)
    target = CACHE / f"{folder.name}-{changed}-{name}"
    if not target.exists():
        part = target.with_name(f"{target.name}.part")
        if part.is_dir():
            shutil.rmtree(part)
        convert(part)
        part.rename(target)
    return target


def run(*command: str | Path) -> None:
    """Run a command, and show what it printed only if it fails."""
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}")
