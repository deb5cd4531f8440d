"""Whether weights fit into memory, checked before any are read: a process that takes too much is killed."""

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import CheckpointError

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # of a container, as it sees itself


def check_memory(folder: Path, files: Sequence[Path]) -> None:
    """Raise ``CheckpointError`` where ``files`` are larger than the memory that is free."""
    n_bytes = sum(os.path.getsize(file) for file in files if os.path.isfile(file))  # unlike Path, never raises
    free = free_memory()
    if free is not None and n_bytes > free:
        expected = f"at most {free / 1e9:,.1f} GB, which is the memory that is free"
        raise CheckpointError(folder, f"{n_bytes / 1e9:,.1f} GB of weights", expected)


def free_memory() -> int | None:
    """Bytes that this process may still use, None on systems that do not say."""
    known = [free for free in (free_of_machine(), free_of_container()) if free is not None]
    return min(known, default=None)


def free_of_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None


def free_of_container() -> int | None:
    try:
        most, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        return max(0, most - used)
    except (OSError, ValueError):  # "max": no limit
        return None
