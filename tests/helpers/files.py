"""The repository's folder, and JSON files that a test changes."""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def edit_json(path: Path, **changes: Any) -> None:
    """Set keys of a JSON file; the value ``...`` removes the key."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    write_json(path, {name: value for name, value in content.items() if value is not ...})
