"""Opening the files of a checkpoint, and reading the small ones. Any problem with one raises ``CheckpointError``."""

import io
import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import CheckpointError, InvalidValue, Mismatch, shorten

# Gemma 3's vocabulary, the largest in use, has 1.86 million: 262,144 tokens and 514,906 merges as pairs. Each value
# takes up to 150 bytes in memory.
MAX_JSON_VALUES = 2_500_000
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def locate(path: Path, expected: str, folder: Path | None = None) -> Path:
    """The real path of the regular file ``path`` in the checkpoint ``folder``, by default the folder of the file.

    Every file of a checkpoint is opened through this function. A link may lead into the folder, or into the Hub cache
    that the folder belongs to. Raises ``CheckpointError`` for any other link, because the author of a checkpoint could
    use it to read any file on this machine, and for anything other than a regular file, such as a pipe. To ask whether
    there is a file at all, use ``os.path.isfile``: the method of ``Path`` raises errors for some links.
    """
    try:
        real, root = (Path(os.path.realpath(place)) for place in (path, path.parent if folder is None else folder))
        mode = real.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(path, f"no file {path.name}", expected) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(path, f"an unreadable file ({reason_of(error)})", expected) from None
    if not any(real.is_relative_to(place) for place in (root, *hub_blobs(root))):
        raise CheckpointError(path, "a link that leads out of the checkpoint", "a file inside the checkpoint's folder")
    if not stat.S_ISREG(mode):
        raise CheckpointError(path, "a folder" if stat.S_ISDIR(mode) else "a pipe or a device", f"a file: {expected}")
    return real


def hub_blobs(root: Path) -> list[Path]:
    """The folders of the Hub's cache to which the links in ``.../models--USER--NAME/snapshots/REVISION`` lead."""
    repository = root.parent.parent
    return [repository / "blobs"] if root.parent.name == "snapshots" and repository.name.startswith("models--") else []


def open_file(path: Path, expected: str, folder: Path | None = None) -> BinaryIO:
    """Open a file of a checkpoint to read its bytes; see ``locate`` for the arguments and the errors."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    real = locate(path, expected, folder)
    try:
        descriptor = os.open(real, flags)
    except OSError as error:
        raise CheckpointError(path, f"an unreadable file ({reason_of(error)})", expected) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # it was replaced after it was located
        os.close(descriptor)
        raise CheckpointError(path, "a pipe or a device", f"a file: {expected}")
    return os.fdopen(descriptor, "rb")


def reason_of(error: Exception) -> str:
    """The reason why the system could not open or read a file."""
    return str((error.strerror if isinstance(error, OSError) else None) or error)


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

    Text with more values than any vocabulary has is rejected before it is parsed, because each value takes much more
    memory than in the file. Duplicate keys are rejected too, and so are unpaired surrogates, which cannot be encoded.
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
    """An object with these keys and values. Raises ``Mismatch`` for duplicate keys, which are ambiguous."""
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Mismatch(f"the key {shorten(twice)} twice", "each key once")
    return content


def read_text(path: Path, expected: str, max_bytes: int | None = None) -> str:
    """The content of a text file in UTF-8. Raises ``CheckpointError``."""
    with open_file(path, expected) as file:
        size = os.fstat(file.fileno()).st_size
        if max_bytes is not None and size > max_bytes:
            raise CheckpointError(path, f"{size:,} bytes", f"at most {max_bytes:,}")
        try:
            content = file.read(-1 if max_bytes is None else max_bytes)
            return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
        except UnicodeDecodeError as error:
            raise CheckpointError(path, f"bytes that are not UTF-8 ({error.reason})", expected) from None
        except OSError as error:
            raise CheckpointError(path, f"an unreadable file ({reason_of(error)})", expected) from None
