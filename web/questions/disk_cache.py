"""What is computed once for a checkpoint, as JSON files in the user's cache folder."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

MAX_BYTES = 16_000_000  # of one file


class DiskCache:
    """Files by name. A folder that cannot be read or written is as good as none: everything is computed again."""

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
        except OSError:
            return
