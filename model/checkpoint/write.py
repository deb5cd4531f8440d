"""Writing a checkpoint folder so that a reader never sees half of one."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..config import GPTConfig
from ..tokenizer import Tokenizer
from .gpt2_format import (
    CONFIG,
    SHARD_INDEX,
    SNAPSHOTS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
    config_to_json,
    file_tensors,
    tokenizer_config,
)


def write_checkpoint(
    folder: str | Path,
    config: GPTConfig,
    state: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    *,
    bos_token_id: int | None = None,
    eos_token_id: int | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a checkpoint folder that a reader never sees half written.

    A new folder appears at once. In one that exists each file is replaced whole, the weights last; where the new
    weights belong to another config or vocabulary the old weights go first, snapshots too, and what went comes back
    if the writing fails. Other files stay. Raises ``ValueError`` for weights that are NaN or infinite, or would be
    in ``dtype``.
    """
    folder = Path(os.path.realpath(folder))  # a link stays one, and the files are made on the disk it leads to
    folder.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        CONFIG: to_json(config_to_json(config, bos_token_id, eos_token_id)),
        TOKENIZER: to_json(tokenizer.spec),
        TOKENIZER_CONFIG: to_json(tokenizer_config(tokenizer, config.context_length)),
    }
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, text in texts.items():
            (beside / name).write_text(text, encoding="utf-8")
        tensors = file_tensors(config, state, dtype)
        broken = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
        if broken:
            raise ValueError(f"NaN or infinity in {broken[0]}, where only finite weights can be saved")
        save_file(tensors, beside / WEIGHTS, metadata={"format": "pt"})
        for path in beside.iterdir():
            sync(path)
        beside.chmod(0o755)
        if not folder.exists():
            beside.rename(folder)
            return
        same = all((folder / n).is_file() and (folder / n).read_bytes() == t.encode() for n, t in texts.items())
        if same:
            (beside / WEIGHTS).replace(folder / WEIGHTS)
            (folder / SHARD_INDEX).unlink(missing_ok=True)
        else:
            exchange(beside, folder, (*texts, WEIGHTS))
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_writable(folder: Path) -> None:
    """Raise ``ValueError`` where no checkpoint can be written into ``folder``; leaves nothing behind."""
    target = Path(os.path.realpath(folder))
    try:
        for path in (target.parent, target):  # a new checkpoint is made beside the folder, then moved
            existing = next(place for place in (path, *path.parents) if place.exists())
            os.rmdir(tempfile.mkdtemp(prefix=".", dir=existing))
    except OSError as error:
        raise ValueError(f"{folder}: no checkpoint can be written there ({error.strerror})") from None


def write_snapshot(folder: Path, step: int, config: GPTConfig, state: Mapping[str, Tensor]) -> None:
    """Keep the weights after ``step`` training steps beside the checkpoint in ``folder``, in half precision."""
    path = folder / SNAPSHOTS / f"{step:06d}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = file_tensors(config, state, torch.float16)
    write_atomic(path, lambda beside: save_file(tensors, beside, metadata={"format": "pt"}))


def exchange(beside: Path, folder: Path, names: Sequence[str]) -> None:
    """Move the files ``names`` from one folder into the other, the last one first away and last in."""
    old = beside / "old"
    old.mkdir()
    try:
        for name in (*reversed(names), SHARD_INDEX, SNAPSHOTS):
            if (folder / name).exists():
                (folder / name).replace(old / name)
        for name in names:
            (beside / name).replace(folder / name)
    except BaseException:
        for name in names:
            if not (beside / name).exists():
                (folder / name).unlink(missing_ok=True)
        for path in sorted(old.iterdir(), key=lambda path: path.name in (WEIGHTS, SHARD_INDEX)):
            path.replace(folder / path.name)
        raise


def write_atomic(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` make a file beside ``path``, then move it there: ``path`` is always whole, old or new."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        sync(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """See a file on the disk, so that a rename after it never names an empty one."""
    path.chmod(0o644)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def to_json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
