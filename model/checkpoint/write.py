"""Writing a checkpoint folder atomically: a reader never sees a partial one."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from ..config import GPTConfig
from ..tokenizer import Tokenizer
from .folder_format import (
    CHAT_TEMPLATE,
    CONFIG,
    GENERATION_CONFIG,
    SHARD_INDEX,
    SNAPSHOTS,
    SPECIAL_TOKENS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
    config_to_json,
    file_tensors,
    tokenizer_config,
    tokens_by_name,
)

# Files that would say something else than those written.
REPLACED = {SHARD_INDEX, CHAT_TEMPLATE, GENERATION_CONFIG, SPECIAL_TOKENS}
LEFTOVER = re.compile(r"\..+\.([1-9][0-9]{0,8})(\.[a-z0-9_]{8})?", re.ASCII)  # .NAME.PID or .NAME.PID.RANDOM


def write_checkpoint(
    folder: str | Path,
    config: GPTConfig,
    state: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    *,
    bos_token_id: int | None = None,
    eos_token_id: int | None = None,
    dtype: torch.dtype | None = None,
    chat_template: str = "",
    other_end_ids: tuple[int, ...] = (),
    named_tokens: Mapping[str, str] | None = None,
    generation_config: Mapping[str, object] | None = None,
) -> None:
    """Write a checkpoint folder so that a reader never sees a partial one.

    A new folder appears all at once. In an existing one, each file is replaced as a whole, the weights last. If the
    config or the vocabulary changes, the old weights and snapshots are moved away first, and moved back if writing
    fails. Other files stay. Raises ``ValueError`` for weights that are, or in ``dtype`` would be, NaN or infinite.
    """
    folder = Path(os.path.realpath(folder))  # follow a link, so that the files are written to the disk it points to
    folder.parent.mkdir(parents=True, exist_ok=True)
    if named_tokens is None:
        named_tokens = tokens_by_name(tokenizer, bos_token_id, eos_token_id)
    ends = [token_id for token_id in (eos_token_id, *other_end_ids) if token_id is not None]
    texts = {
        CONFIG: to_json(config_to_json(config, bos_token_id, ends)),
        TOKENIZER: to_json(tokenizer.spec),
        TOKENIZER_CONFIG: to_json(tokenizer_config(named_tokens, config.context_length, chat_template)),
    }
    if generation_config:
        texts[GENERATION_CONFIG] = to_json(generation_config)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}.", dir=folder.parent))
    try:
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
        tensors = file_tensors(config, state, dtype)
        broken = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
        if broken:
            raise ValueError(f"NaN or infinity in {broken[0]}: only finite weights can be saved")
        save_file(tensors, new / WEIGHTS, metadata={"format": "pt"})
        for path in new.iterdir():
            sync(path)
        new.chmod(0o755)
        if not folder.exists():
            new.rename(folder)
            return
        same = all((folder / n).is_file() and (folder / n).read_bytes() == t.encode() for n, t in texts.items())
        if same:
            (new / WEIGHTS).replace(folder / WEIGHTS)
            for name in REPLACED - texts.keys():
                (folder / name).unlink(missing_ok=True)
        else:
            exchange(new, folder, (*texts, WEIGHTS))
    finally:
        shutil.rmtree(new, ignore_errors=True)


def check_writable(folder: Path) -> None:
    """Raise ``ValueError`` if no checkpoint can be written to ``folder``. Leaves nothing behind."""
    target = Path(os.path.realpath(folder))
    try:
        for path in (target.parent, target):  # a new checkpoint is written next to the folder, then moved
            existing = next(place for place in (path, *path.parents) if place.exists())
            os.rmdir(tempfile.mkdtemp(prefix=".", dir=existing))
    except OSError as error:
        raise ValueError(f"{folder}: cannot write a checkpoint there ({error.strerror})") from None


def write_snapshot(folder: Path, step: int, config: GPTConfig, state: Mapping[str, Tensor]) -> None:
    """Store the weights after ``step`` training steps in ``folder/steps``, in half precision."""
    path = folder / SNAPSHOTS / f"{step:06d}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = file_tensors(config, state, torch.float16)
    write_atomic(path, lambda new: save_file(tensors, new, metadata={"format": "pt"}))


def exchange(new: Path, folder: Path, names: Sequence[str]) -> None:
    """Replace the files ``names`` of ``folder`` with those in ``new``, and undo everything if that fails.

    The last name is the first to disappear and the last to arrive.
    """
    old = new / "old"
    old.mkdir()
    try:
        for name in (*reversed(names), *sorted(REPLACED - set(names)), SNAPSHOTS):
            if (folder / name).exists():
                (folder / name).replace(old / name)
        for name in names:
            (new / name).replace(folder / name)
    except BaseException:
        for name in names:
            if not (new / name).exists():
                (folder / name).unlink(missing_ok=True)
        for path in sorted(old.iterdir(), key=lambda path: path.name in (WEIGHTS, SHARD_INDEX)):
            path.replace(folder / path.name)
        raise


def write_atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` create a file next to ``path``, then move it to ``path``, which is always complete, old or new."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(new)
        sync(new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove partial files that killed processes left in ``folder`` and next to it."""
    folder = Path(os.path.realpath(folder))
    new = f".{folder.name}."
    inside = [*folder.glob(".*"), *(folder / SNAPSHOTS).glob(".*")]
    for path in [*inside, *(path for path in folder.parent.glob(".*") if path.name.startswith(new))]:
        written_by = LEFTOVER.fullmatch(path.name)
        if written_by is None or is_running(int(written_by[1])):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Whether a process with this id exists, or may exist."""
    if sys.platform == "win32":  # where 0 is the signal of Ctrl-C
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True


def sync(path: Path) -> None:
    """Flush a file to disk, so that renaming it cannot leave an empty file after a crash."""
    path.chmod(0o644)
    with path.open("r+b") as file:  # Windows flushes only files that are open for writing
        os.fsync(file.fileno())


def to_json(content: object) -> str:
    """The text of a JSON file, indented for readability."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
