"""Checkpoints in the peers' own formats, converted once and kept in the temporary folder."""

import shutil
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
