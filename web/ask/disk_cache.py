"""Results that are computed once per checkpoint, as JSON files in the user's cache folder."""

import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MAX_BYTES = 16_000_000  # of one file
MAX_FILES = 200  # including those about models that visitors trained
MAX_ALL_BYTES = 64_000_000
LEFT_SECONDS = 3_600.0  # the age from which a half-written file belongs to a process that was killed


class DiskCache:
    """Files by name, bounded in number and bytes: the least recently used are removed.

    If the folder cannot be read or written, everything is computed again.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, name: str) -> dict[str, Any] | None:
        """The content kept under ``name``; None if there is none that can be read."""
        if self.folder is None:
            return None
        path = self.folder / f"{name}.json"
        try:
            content = json.loads(path.read_bytes()) if path.stat().st_size <= MAX_BYTES else None
        except (OSError, ValueError):
            return None
        with suppress(OSError):
            os.utime(path)  # the time of its last use
        return content if isinstance(content, dict) else None

    def put(self, name: str, content: dict[str, Any]) -> None:
        """Keep ``content``; a reader never sees half of it."""
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=self.folder, prefix=f".{name}-")
            try:
                with os.fdopen(number, "w") as file:
                    json.dump(content, file)
                os.replace(temporary, self.folder / f"{name}.json")
            except BaseException:
                os.unlink(temporary)
                raise
            self.prune(name)
        except OSError:
            return

    def prune(self, newest: str) -> None:
        """Remove the least recently used files above the bounds, and half-written ones that were left behind."""
        assert self.folder is not None
        kind = newest.partition("-")[0]
        files = sorted(
            ((path.stat(), path) for path in self.folder.glob(f"{kind}-*.json")), key=lambda each: each[0].st_mtime
        )
        n_bytes = sum(stat.st_size for stat, _ in files)
        for n_left, (stat, path) in zip(range(len(files), 1, -1), files, strict=False):
            if n_left <= MAX_FILES and n_bytes <= MAX_ALL_BYTES:
                break
            path.unlink(missing_ok=True)
            n_bytes -= stat.st_size
        for path in self.folder.glob(f".{kind}-*"):
            if time.time() - path.stat().st_mtime > LEFT_SECONDS:
                path.unlink(missing_ok=True)
