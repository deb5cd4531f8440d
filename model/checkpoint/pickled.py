"""Opening files that ``torch.save`` wrote, without running any code in them."""

import pickle
from pathlib import Path

import torch

from ..errors import CheckpointError

SUFFIXES = (".pt", ".pth", ".bin")
PLAIN = "tensors and plain values, saved by torch.save"


def read_pickled(path: Path) -> dict[str, object]:
    """The dictionary in ``path``. Tensors are on the CPU, and mapped from the file where its format allows that.

    Only tensors and plain values are read (``weights_only=True``). Raises ``CheckpointError`` for anything else.
    """
    if not path.is_file():
        raise CheckpointError(path, "no file", PLAIN)
    try:
        content = load_plain(path)
    except pickle.UnpicklingError as error:
        reason = str(error).split("GLOBAL ")[-1].split(" was not")[0] if "GLOBAL " in str(error) else "other objects"
        raise CheckpointError(path, f"a pickle that holds {reason}, which is never executed", PLAIN) from None
    except (RuntimeError, OSError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(path, f"an unreadable file ({reason})", PLAIN) from None
    if not isinstance(content, dict):
        raise CheckpointError(path, f"a {type(content).__name__}", "a dictionary of tensors")
    return content


def load_plain(path: Path) -> object:
    """What ``torch.load`` makes of the file."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        if "mmap" not in str(error):
            raise
        return torch.load(path, map_location="cpu", weights_only=True)  # the format of torch before 1.6
