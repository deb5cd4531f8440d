"""A cache of JSON files in the user's cache folder, for results that are computed once per checkpoint."""

import json
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MAX_BYTES = 16_000_000  # of one file
MAX_FILES = 200  # including those for models that visitors trained
MAX_ALL_BYTES = 64_000_000
LEFT_SECONDS = 3_600.0  # a half-written file of this age was left by a process that was killed


class DiskCache:
    """Named files, bounded in number and bytes; the least recently used are deleted first.

    Errors in reading or writing the folder are ignored: the cache then behaves as if it were empty.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, name: str) -> dict[str, Any] | None:
        """The content stored under ``name``, or None if there is none or it cannot be read."""
        if self.folder is None:
            return None
        path = self.folder / f"{name}.json"
        try:
            content = json.loads(path.read_bytes()) if path.stat().st_size <= MAX_BYTES else None
        except (OSError, ValueError):
            return None
        with suppress(OSError):
            os.utime(path)  # marks it as used now
        return content if isinstance(content, dict) else None

    def put(self, name: str, content: dict[str, Any]) -> None:
        """Store ``content`` atomically: a reader never sees half of it."""
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
        """Delete the least recently used files above the bounds, and half-written files that were left behind."""
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
