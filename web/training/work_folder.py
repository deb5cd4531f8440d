"""The folder of visitors' texts and models. It is removed when the server ends, and after a kill by the next start.

The file next to it is locked as long as the process lives: in containers, process ids say nothing about that.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

PREFIX, LOCK_SUFFIX = "headscope-training-", ".lock"

if sys.platform == "win32":
    import msvcrt

    def lock(file: int) -> None:
        """Lock an open file until it is closed or the process ends. Raises ``OSError`` if it is locked."""
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def lock(file: int) -> None:
        """Lock an open file until it is closed or the process ends. Raises ``OSError`` if it is locked."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class WorkFolder:
    """A new folder of this process. Its lock is held before it exists, so no other process takes it for a leftover."""

    def __init__(self) -> None:
        self.file, name = tempfile.mkstemp(LOCK_SUFFIX, PREFIX)
        lock(self.file)
        self.path = Path(name.removesuffix(LOCK_SUFFIX))
        self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.file)
        if not self.path.exists():
            lock_file_of(self.path).unlink(missing_ok=True)


def lock_file_of(folder: Path) -> Path:
    return folder.with_name(folder.name + LOCK_SUFFIX)


def remove_leftovers() -> None:
    """Remove the folders in the temporary directory that no living process holds."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if folder.is_dir() and not folder.is_symlink():
            with contextlib.suppress(OSError):  # locked, or another user's
                remove_leftover(folder)


def remove_leftover(folder: Path) -> None:
    lock_file = lock_file_of(folder)
    try:
        file = os.open(lock_file, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        shutil.rmtree(folder)
        return
    try:
        lock(file)
        shutil.rmtree(folder)
    finally:
        os.close(file)
    lock_file.unlink(missing_ok=True)
