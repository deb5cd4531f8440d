"""Reading files of weights: everything is checked before it is used, and no code in a file is run."""

import hashlib
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..config import GPTConfig
from ..errors import CheckpointError
from ..gpt import GPT
from .files import parse_json, read_json
from .gpt2_format import (
    MASK_BUFFER,
    OLDER_WEIGHTS,
    SHARD_INDEX,
    TRANSPOSED,
    WEIGHTS,
)

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # of a container, as it sees itself
SUFFIXES = (".pt", ".pth", ".bin")
FORBIDDEN = re.compile(r"GLOBAL (\S+) w(?:as not|hose module)")  # in torch's message
PLAIN = "tensors and plain values, saved by torch.save"
MAX_INDEX_BYTES = 16_000_000
STORED_DTYPES = ("F32", "F16", "BF16")
TORCH_DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


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


def gpt_on_meta(config: GPTConfig) -> GPT:
    """A GPT whose weights have only shapes: to be asked for them, or to have weights assigned to it."""
    with torch.device("meta"), NothingDrawn():
        return GPT(config)


class NothingDrawn(TorchFunctionMode):
    """Initialise no embeddings: on the meta device that would import ``torch._dynamo``, most of a second's work."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if function is nn.init.normal_:
            return args[0] if args else given["tensor"]
        return function(*args, **given)


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


def weight_files(folder: Path) -> list[Path]:
    """The weights of a folder: one safetensors file, the shards listed in an index, or transformers' older file."""
    single, index, older = folder / WEIGHTS, folder / SHARD_INDEX, folder / OLDER_WEIGHTS
    if single.is_file() or not index.is_file():
        return [older if older.is_file() and not single.is_file() else single]
    content = read_json(index, MAX_INDEX_BYTES)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(index, "no weight_map", "a map of tensor names to files")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise CheckpointError(index, f"the file name {name!r}", "names of safetensors files in the same folder")
    return [folder / name for name in names]


def read_weights(paths: list[Path], config: GPTConfig, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    """The state dict of a GPT with these parameter ``shapes``, on the CPU, in the dtypes of the file."""
    state: dict[str, Tensor] = {}
    layers = () if config.qkv_bias else range(config.n_layer)
    zero_biases = {f"h.{layer}.attn.c_attn.bias": torch.Size([3 * config.n_embd]) for layer in layers}
    for path in paths:
        for stored, tensor in checked_tensors(path, shapes | zero_biases):
            name = stored.removeprefix("transformer.")
            if name in state:
                raise CheckpointError(path, f"the tensor {name} twice", "each tensor once")
            if name in zero_biases:
                if tensor.any():
                    raise CheckpointError(path, f"a {stored} that is not zero", "zeros, because qkv_bias is false")
                continue
            # Copied out of the mapped file: overwriting that must not change or crash a model in use.
            copy = tensor.clone()
            state[name] = copy.t() if TRANSPOSED.fullmatch(name) else copy
    if config.tie_word_embeddings:
        # Older files store the tied head too. One that differs must not be dropped silently.
        head = state.pop("lm_head.weight", None)
        if head is not None and "wte.weight" in state and not torch.equal(head, state["wte.weight"]):
            raise CheckpointError(
                paths[0],
                "an lm_head.weight that differs from wte.weight",
                "equal tensors, because config.json ties them",
            )
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    missing = sorted(shapes.keys() - state.keys() - tied)
    if missing:
        raise CheckpointError(paths[0], f"no tensor {missing[0]} ({len(missing)} missing)", f"{len(shapes)} tensors")
    return state


def checked_tensors(path: Path, shapes: dict[str, torch.Size]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a file of weights, checked before reading (name, dtype, shape) and after (values)."""
    if path.suffix != ".safetensors":
        for stored, tensor in read_pickled(path).items():
            if not isinstance(tensor, Tensor):
                raise CheckpointError(path, f"{stored}, which is not a tensor", "only tensors")
            if is_expected(path, stored, TORCH_DTYPES.get(tensor.dtype, str(tensor.dtype)), list(tensor.shape), shapes):
                yield stored, with_finite_values(path, stored, tensor)
        return
    if not os.path.isfile(path):  # unlike Path.is_file, never raises
        raise CheckpointError(path, "no file", "the weights as safetensors")
    try:
        with path.open("rb") as raw, safe_open(path, framework="pt") as file:
            check_header(path, raw)
            for stored in file.keys():  # noqa: SIM118 - not a dict: it cannot be iterated
                header = file.get_slice(stored)
                if is_expected(path, stored, header.get_dtype(), list(header.get_shape()), shapes):
                    yield stored, with_finite_values(path, stored, file.get_tensor(stored))
    except SafetensorError as error:
        with path.open("rb") as raw:
            start = raw.read(4)
        pickled = start.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
        found = "a pickle, which is never opened" if pickled else f"invalid safetensors ({error})"
        raise CheckpointError(path, found, "the weights as safetensors") from None
    except OSError as error:
        raise CheckpointError(path, f"an unreadable file ({error})", "the weights as safetensors") from None


def check_header(path: Path, raw: BinaryIO) -> None:
    """Raise ``CheckpointError`` where a tensor is described twice; safetensors would take the last."""
    n_bytes = int.from_bytes(raw.read(8), "little")
    if n_bytes > MAX_INDEX_BYTES:
        raise CheckpointError(path, f"a header of {n_bytes:,} bytes", f"at most {MAX_INDEX_BYTES:,}")
    parse_json(path, raw.read(n_bytes).decode())


def is_expected(path: Path, stored: str, dtype: str, shape: list[int], shapes: dict[str, torch.Size]) -> bool:
    """Whether to read a tensor, or False for a mask buffer. Raises ``CheckpointError`` for one that does not fit."""
    name = stored.removeprefix("transformer.")
    if name not in shapes:
        if MASK_BUFFER.fullmatch(name):
            return False
        raise CheckpointError(path, f"the tensor {stored}", "only the tensors that config.json implies")
    if dtype not in STORED_DTYPES:
        raise CheckpointError(path, f"{stored} of dtype {dtype}", f"one of {', '.join(STORED_DTYPES)}")
    expected = list(shapes[name])[:: -1 if TRANSPOSED.fullmatch(name) else 1]
    if shape != expected:
        raise CheckpointError(path, f"{stored} of shape {shape}", f"{expected}, as config.json implies")
    return True


def with_finite_values(path: Path, stored: str, tensor: Tensor) -> Tensor:
    if not tensor.isfinite().all():
        raise CheckpointError(path, f"NaN or infinity in {stored}", "finite numbers")
    return tensor


def file_hash(paths: list[Path]) -> str:
    """The SHA-256 of the concatenated files."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise CheckpointError(path, f"an unreadable file ({error})", "the weights as safetensors") from None
    return digest.hexdigest()
