"""Reading files of weights. Everything is checked before use, and no code in a file is executed."""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..config import GPTConfig
from ..errors import CheckpointError, shorten
from ..gpt import GPT
from .families.family import Family
from .files import locate, open_file, parse_json, read_json, reason_of
from .folder_format import SHARDS, WEIGHT_FILES, WEIGHTS, check_not_adapter
from .pickled import read_pickled

SAFETENSORS = "the weights as safetensors"
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")  # a container's own control group
CGROUPS = (  # in versions 2 and 1: the folder, and the names of the limit, of what is used, and of idle files in memory
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
Keep = Callable[[str, Tensor], Tensor]  # converts a stored tensor, given its name in ``GPT``
# A tensor in a file: its name and dtype there, its shape, and a function that reads it.
StoredTensor = tuple[str, str, list[int], Callable[[], Tensor]]
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}  # as safetensors names them
MAX_INDEX_BYTES = 16_000_000


def weight_files(folder: Path) -> list[Path]:
    """The weights of a folder: one file, or the shards in an index; safetensors if there are any, else pickles.

    Raises ``CheckpointError`` if there are none.
    """
    found = next((name for name in WEIGHT_FILES if os.path.isfile(folder / name)), None)
    if found is None:
        check_not_adapter(folder)
        locate(folder / WEIGHTS, f"the weights: one of {', '.join(WEIGHT_FILES)}")
    index = folder / (found or WEIGHTS)
    if not index.name.endswith(SHARDS):
        return [index]
    content = read_json(index, MAX_INDEX_BYTES)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(index, "no weight_map", "a map of tensor names to files")
    names, suffix = sorted({str(name) for name in weight_map.values()}), Path(index.name.removesuffix(SHARDS)).suffix
    for name in names:
        if Path(name).name != name or not name.endswith(suffix):
            raise CheckpointError(index, f"the file name {name!r}", f"names of {suffix} files in the same folder")
    return [folder / name for name in names]


class Layout:
    """The tensors that a file of a ``family`` must hold for a ``config``, by name without the family's prefix."""

    def __init__(self, family: Family, config: GPTConfig, shapes: dict[str, torch.Size]) -> None:
        """``shapes`` are those of the parameters of a ``GPT``."""
        self.family = family
        self.tensors = dict(self.family.tensors(config))
        self.zeros = self.family.zeros(config)
        self.shapes = shapes
        self.head, self.tokens = (
            next(name for name, stored in self.tensors.items() if stored.parameter == parameter)
            for parameter in ("lm_head.weight", "wte.weight")
        )

    def shape(self, name: str) -> list[int]:
        """The shape of a tensor in the file."""
        if name in self.zeros:
            return list(self.zeros[name])
        stored = self.tensors[name]
        whole = torch.empty(self.shapes[stored.parameter], device="meta")
        return list(stored.to_file(whole[stored.start : stored.stop]).shape)


def read_weights(
    paths: list[Path],
    family: Family,
    config: GPTConfig,
    shapes: dict[str, torch.Size],
    keep: Keep = lambda _name, tensor: tensor,
    folder: Path | None = None,
) -> dict[str, Tensor]:
    """The state dict of a GPT with these parameter ``shapes``, on the CPU unless ``keep`` moves it.

    Each parameter is passed to ``keep`` once it has been read, so that no more than a few are in memory twice.
    ``folder`` is the checkpoint's folder; by default, that of each file. An output head that ``config`` ties to the
    token embeddings is in the state dict only if the files store one that differs. Raises ``CheckpointError``.
    """
    state: dict[str, Tensor] = {}
    parts: dict[str, dict[int, Tensor]] = {}  # the parts of incomplete parameters, by first row
    layout, seen = Layout(family, config, shapes), set[str]()
    for path in paths:
        for stored, tensor in checked_tensors(path, layout, folder):
            name = layout.family.short(stored)
            if name in seen:
                raise CheckpointError(path, f"the tensor {name} twice", "each tensor once")
            seen.add(name)
            if name in layout.zeros:
                if tensor.any():
                    raise CheckpointError(path, f"a {stored} that is not zero", "zeros, because qkv_bias is false")
            elif name != layout.head or not config.tie_word_embeddings:
                parameter, start, _, _, from_file = layout.tensors[name]
                found = parts.setdefault(parameter, {})
                found[start] = from_file(tensor)
                if sum(map(len, found.values())) == shapes[parameter][0]:
                    rows = [part for _, part in sorted(parts.pop(parameter).items())]
                    state[parameter] = keep(parameter, rows[0] if len(rows) == 1 else torch.cat(rows))
    pair = {layout.head, layout.tokens} if config.tie_word_embeddings else set[str]()  # one of them is enough
    missing = sorted(layout.tensors.keys() - seen - (pair if pair & seen else {layout.head} & pair))
    if missing:
        raise CheckpointError(
            paths[0], f"no tensor {missing[0]} ({len(missing)} missing)", f"{len(layout.tensors)} tensors"
        )
    if layout.head in pair & seen:
        head, tokens = head_and_tokens(paths, layout, folder)
        if tokens is None:
            state["wte.weight"] = keep("wte.weight", head)
        elif not torch.equal(head, tokens):
            state["lm_head.weight"] = keep("lm_head.weight", head)
    return state


def head_and_tokens(paths: list[Path], layout: Layout, folder: Path | None) -> tuple[Tensor, Tensor | None]:
    """The stored output head and, if they are stored too, the token embeddings, in one dtype."""
    pair = {
        layout.family.short(stored): tensor
        for path in paths
        for stored, tensor in checked_tensors(path, layout, folder, only={layout.tokens, layout.head})
    }
    head, tokens = pair[layout.head], pair.get(layout.tokens)
    if tokens is None or head.dtype == tokens.dtype:
        return head, tokens
    return head.float(), tokens.float()


def checked_tensors(
    path: Path, layout: Layout, folder: Path | None = None, only: Collection[str] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a file of weights, checked before reading (name, dtype, shape) and after (values).

    With ``only``, yield only the tensors with these names.
    """
    tensors = safetensors_in if path.suffix == ".safetensors" else pickled_tensors_in
    for stored, dtype, shape, read in tensors(path, folder):
        if only is not None and layout.family.short(stored) not in only:
            continue
        if is_expected(path, stored, dtype, shape, layout):
            tensor = read()
            if not is_finite(tensor):
                raise CheckpointError(path, f"NaN or infinity in {stored}", "finite numbers")
            yield stored, tensor


def pickled_tensors_in(path: Path, folder: Path | None) -> Iterator[StoredTensor]:
    """The tensors of a file written by torch, copied out of the mapped file, which may be overwritten."""
    for stored, value in read_pickled(path, folder).items():
        if not isinstance(stored, str):
            raise CheckpointError(path, f"a tensor called {shorten(stored)}", "names that are strings")
        if not isinstance(value, Tensor):
            raise CheckpointError(path, f"{stored}, which is not a tensor", "only tensors")
        dtype = next((name for name, dtype in DTYPES.items() if dtype == value.dtype), str(value.dtype))
        yield stored, dtype, list(value.shape), value.clone


def safetensors_in(path: Path, folder: Path | None) -> Iterator[StoredTensor]:
    """The tensors of a safetensors file, each of which can be read until the next one is requested.

    The safetensors library checks the file, but the values are read instead of mapped: mapped pages count as memory of
    this process, which would crash if the file were truncated meanwhile.
    """
    with open_file(path, SAFETENSORS, folder) as file:
        start = file.read(8)
        try:
            with safe_open(locate(path, SAFETENSORS, folder), framework="pt"):
                pass
        except SafetensorError as error:
            pickled = start.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
            found = "a pickle, which is never opened" if pickled else f"invalid safetensors ({error})"
            raise CheckpointError(path, found, SAFETENSORS) from None
        except OSError as error:
            raise CheckpointError(path, f"an unreadable file ({reason_of(error)})", SAFETENSORS) from None
        n_bytes = int.from_bytes(start, "little")
        if n_bytes > MAX_INDEX_BYTES:
            raise CheckpointError(path, f"a header of {n_bytes:,} bytes", f"at most {MAX_INDEX_BYTES:,}")
        header = parse_json(path, file.read(n_bytes).decode())  # rejects duplicate tensors
        assert isinstance(header, dict)  # safetensors has checked this
        for stored, row in header.items():
            if stored != "__metadata__":
                dtype, shape, begin = row["dtype"], row["shape"], 8 + n_bytes + row["data_offsets"][0]
                yield stored, dtype, shape, partial(read_tensor, path, file, dtype, shape, begin)


def read_tensor(path: Path, file: BinaryIO, dtype: str, shape: list[int], begin: int) -> Tensor:
    """The tensor whose bytes begin at offset ``begin`` of ``file``; errors name ``path``."""
    tensor = torch.empty(shape, dtype=DTYPES[dtype])
    rest = memoryview(tensor.view(-1).view(torch.uint8).numpy().data)
    try:
        file.seek(begin)
        while len(rest):
            n_read = file.readinto(rest)  # type: ignore[attr-defined]
            if not n_read:
                raise CheckpointError(path, "a file that was cut short while it was read", SAFETENSORS)
            rest = rest[n_read:]
    except OSError as error:
        raise CheckpointError(path, f"an unreadable file ({reason_of(error)})", SAFETENSORS) from None
    return tensor


def is_expected(path: Path, stored: str, dtype: str, shape: list[int], layout: Layout) -> bool:
    """Whether to read a tensor: False for a buffer. Raises ``CheckpointError`` for a tensor that does not fit."""
    name = layout.family.short(stored)
    if name not in layout.tensors and name not in layout.zeros:
        if layout.family.ignored.fullmatch(name):
            return False
        raise CheckpointError(path, f"the tensor {stored}", "only the tensors that config.json implies")
    if dtype not in DTYPES:
        raise CheckpointError(path, f"{stored} of dtype {dtype}", f"one of {', '.join(DTYPES)}")
    expected = layout.shape(name)
    if shape != expected:
        raise CheckpointError(path, f"{stored} of shape {shape}", f"{expected}, as config.json implies")
    return True


def is_finite(tensor: Tensor) -> bool:
    """Whether all numbers of ``tensor`` are finite; NaN propagates to its minimum and maximum."""
    return all(bool(bound.isfinite()) for bound in torch.aminmax(tensor))


def file_hash(paths: list[Path], folder: Path | None = None) -> str:
    """The SHA-256 of the concatenated files."""
    digest = hashlib.sha256()
    for path in paths:
        with open_file(path, SAFETENSORS, folder) as file:
            try:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
            except OSError as error:
                raise CheckpointError(path, f"an unreadable file ({reason_of(error)})", SAFETENSORS) from None
    return digest.hexdigest()


def check_memory(folder: Path, files: Sequence[Path]) -> None:
    """Raise ``CheckpointError`` if ``files`` are larger than the free memory."""
    n_bytes = sum(os.path.getsize(file) for file in files if os.path.isfile(file))  # unlike Path, never raises
    free = free_memory()
    if free is not None and n_bytes > free:
        expected = f"at most {free / 1e9:,.1f} GB, which is the memory that is free"
        raise CheckpointError(folder, f"{n_bytes / 1e9:,.1f} GB of weights", expected)


def free_memory() -> int | None:
    """The bytes that this process may still use, or None on systems that do not report it."""
    known = [free for free in (free_of_machine(), free_of_container()) if free is not None]
    return min(known, default=None)


def free_of_machine() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError, IndexError):
        return None


def free_of_container() -> int | None:
    """The bytes that the control group may still use: unlike recently used files, those unused for long make room."""
    for folder, limit, current, idle in CGROUPS:
        try:
            most, used = (int((CGROUP / folder / name).read_text()) for name in (limit, current))
            statistics = dict(line.split() for line in (CGROUP / folder / "memory.stat").read_text().splitlines())
            return max(0, most - max(0, used - int(statistics.get(idle, 0))))
        except (OSError, ValueError):  # another version; "max": no limit
            continue
    return None


def gpt_on_meta(config: GPTConfig) -> GPT:
    """A GPT whose weights have shapes but no data, to query the shapes or to assign weights."""
    with torch.device("meta"), SkipInitialisation():
        return GPT(config)


class SkipInitialisation(TorchFunctionMode):
    """Skip initialising embeddings, which on the meta device would import ``torch._dynamo``: most of a second."""

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
