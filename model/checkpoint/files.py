"""Reading small files of a checkpoint; whatever is wrong with one is a ``CheckpointError``."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CheckpointError, InvalidValue, Mismatch, shorten

# Vocabularies of 250,000 tokens, the largest in use, have half as many; each value takes up to 150 bytes in memory.
MAX_JSON_VALUES = 2_000_000
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


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
    return parse_json(path, read_text(path, "a JSON file", max_bytes))


def parse_json(path: Path, text: str) -> object:
    """The content of ``text``, which is in the file ``path``. Raises ``CheckpointError``.

    Text with more values than any vocabulary has is refused before it is parsed, since each takes many times the memory
    that it takes in the file. So are a key given twice, and half of a surrogate pair, which cannot be written anywhere.
    """
    n_values = sum(map(text.count, ",[{"))
    if n_values > MAX_JSON_VALUES:
        raise CheckpointError(path, f"{n_values:,} values", f"at most {MAX_JSON_VALUES:,}")
    try:
        content = json.loads(text, object_pairs_hook=without_duplicates)
        if SURROGATE.search(text):
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except Mismatch as error:
        raise CheckpointError(path, error.found, error.expected) from None
    except UnicodeEncodeError:
        raise CheckpointError(path, "half of a surrogate pair", "JSON whose text is Unicode") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(path, f"invalid JSON ({error})", "valid JSON") from None


def without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of these keys and values. Raises ``Mismatch`` where a key is given twice: which one counts?"""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Mismatch(f"the key {shorten(twice)} twice", "each key once")
    return found


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
