"""Reading small files of a checkpoint; whatever is wrong with one is a ``CheckpointError``."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CheckpointError, InvalidValue, Mismatch


@contextmanager
def checkpoint_errors(path: Path, expected: str) -> Iterator[None]:
    """Turn any error in the content of ``path`` into a ``CheckpointError``."""
    try:
        yield
    except (Mismatch, InvalidValue) as error:
        raise CheckpointError(path, error.found, error.expected) from None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise CheckpointError(path, f"malformed content ({error})", expected) from None


def read_json(path: Path, max_bytes: int) -> object:
    """The content of a JSON file of at most ``max_bytes``. Raises ``CheckpointError``."""
    try:
        return json.loads(read_text(path, "a JSON file", max_bytes))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(path, f"invalid JSON ({error})", "valid JSON") from None


def read_text(path: Path, expected: str, max_bytes: int | None = None) -> str:
    """The content of a text file in UTF-8. Raises ``CheckpointError``."""
    try:
        if not path.is_file():
            raise CheckpointError(path, "no file", expected)
        if max_bytes is not None and path.stat().st_size > max_bytes:
            raise CheckpointError(path, f"{path.stat().st_size:,} bytes", f"at most {max_bytes:,}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(path, f"bytes that are not UTF-8 ({error.reason})", expected) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(path, f"an unreadable file ({reason})", expected) from None
