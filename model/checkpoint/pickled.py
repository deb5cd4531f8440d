"""Opening files that ``torch.save`` wrote, without running any code in them."""

import pickle
import re
from pathlib import Path

import torch

from ..errors import CheckpointError

SUFFIXES = (".pt", ".pth", ".bin")
FORBIDDEN = re.compile(r"GLOBAL (\S+) w(?:as not|hose module)")  # in torch's message
PLAIN = "tensors and plain values, saved by torch.save"


def read_pickled(path: Path) -> dict[str, object]:
    """The dictionary in ``path``. Tensors are on the CPU, and mapped from the file where its format allows that.

    Only tensors and plain values are read (``weights_only=True``). Raises ``CheckpointError`` for anything else.
    """
    if not path.is_file():
        raise CheckpointError(path, "no file", PLAIN)
    try:
        content = load_plain(path)
    except (
        pickle.UnpicklingError,
        RuntimeError,
        OSError,
        EOFError,
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:
        raise CheckpointError(path, what_is_wrong(error), PLAIN) from None
    if not isinstance(content, dict):
        raise CheckpointError(path, f"a {type(content).__name__}", "a dictionary of tensors")
    return content


def what_is_wrong(error: Exception) -> str:
    """In a few words: torch's own messages are paragraphs, or a number out of its reader."""
    if isinstance(error, pickle.UnpicklingError):
        named = FORBIDDEN.search(str(error))
        return f"a pickle that holds {named[1] if named else 'other objects'}, which is never executed"
    if isinstance(error, EOFError):
        return "a file that is empty or cut off"
    if isinstance(error, OSError):
        return f"an unreadable file ({error.strerror or error})"
    if "zip archive" in str(error):
        return "a damaged zip archive"
    return "a file that torch.save did not write, or a damaged one"


def load_plain(path: Path) -> object:
    """What ``torch.load`` makes of the file."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        return torch.load(path, map_location="cpu", weights_only=True)  # the format of torch before 1.6
