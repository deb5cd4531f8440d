"""Reading files that ``torch.save`` wrote: no code in them is executed, and memory is bounded by the size of the file.

``torch.load(weights_only=True)`` guarantees only the former: a file of a few bytes may be compressed, call
``bytearray(10**10)``, or pass one long list to many calls. Therefore the file is checked first.
"""

import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from pickletools import genops
from typing import IO, Any, BinaryIO

import torch
from torch import Tensor

from ..errors import CheckpointError, shorten
from .files import locate, open_file

SUFFIXES = (".pt", ".pth", ".bin")
PLAIN = "tensors and plain values, saved by torch.save"
MAX_SHARED = 2  # largest ratio of a file's tensors to its size: tied tensors are stored once
MAX_PICKLE_BYTES = 1_000_000  # GPT-2 XL with the state of AdamW has 210,000; in memory, a byte may take 140
N_OLDER_PICKLES = 5  # in a file of torch before 1.6, followed by the numbers
ZIP = b"PK\x03\x04"
ZIP_END = 22  # bytes of the record at a zip archive's end
ZIP64_END = 56 + 20  # bytes of the two records before it, of which the second gives the position of the first

# What may occur in a pickle. The names are those of pickletools, and "module name" of a GLOBAL.
ORDERED_DICT = "collections OrderedDict"
STORAGES = {
    f"torch {dtype}Storage"
    for dtype in ("Float", "Half", "BFloat16", "Double", "Bool", "Byte", "Char", "Short", "Int", "Long")
}
CALLS = {"torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"}
GLOBALS = {ORDERED_DICT} | STORAGES | CALLS
STRINGS = {"BINUNICODE", "SHORT_BINSTRING"}
PUT, GET = {"BINPUT", "LONG_BINPUT"}, {"BINGET", "LONG_BINGET"}
NOTHING, EMPTY, TENSOR = "no arguments", "an OrderedDict", "a tensor"
SHARED = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", TENSOR}  # written once and used in several places
FOLLOWED_BY = {ORDERED_DICT: {"EMPTY_TUPLE"}, NOTHING: {"REDUCE"}} | dict.fromkeys(STORAGES, STRINGS)


def read_pickled(path: Path, folder: Path | None = None) -> dict[Any, object]:
    """The dictionary in ``path``. Tensors are on the CPU, and mapped from the file if its format allows that.

    Only tensors and plain values are read. Raises ``CheckpointError`` for anything else, and for a file that would take
    much more memory than its size.
    """
    real = locate(path, PLAIN, folder)
    try:
        with open_file(path, PLAIN, folder) as file:
            is_zip = file.read(len(ZIP)) == ZIP  # as torch decides
            file.seek(0)
            if is_zip:
                check_archive(path, file)
            else:
                for _ in range(N_OLDER_PICKLES):
                    check_pickle(path, file)
        content = torch.load(real, map_location="cpu", weights_only=True, mmap=is_zip)
    except (
        pickle.UnpicklingError,
        RuntimeError,
        OSError,
        EOFError,
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
        zipfile.BadZipFile,
    ) as error:
        raise CheckpointError(path, describe_unpickling_error(error), PLAIN) from None
    if not isinstance(content, dict):
        raise CheckpointError(path, f"a {type(content).__name__}", "a dictionary of tensors")
    n_bytes, most = sum(tensor.nbytes for tensor in tensors_in(content)), MAX_SHARED * real.stat().st_size
    if n_bytes > most:  # views can repeat a few stored numbers
        raise CheckpointError(path, f"tensors of {n_bytes:,} bytes", f"at most {most:,} in a file of this size")
    return content


def tensors_in(content: object) -> Iterator[Tensor]:
    """All tensors in the dictionaries and lists of ``content``, each as often as it occurs."""
    rest, seen = [content], set[int]()
    while rest:
        value = rest.pop()
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Mapping | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            rest += value.values() if isinstance(value, Mapping) else value


def check_archive(path: Path, file: BinaryIO) -> None:
    """Raise ``CheckpointError`` unless a zip archive compresses nothing and its pickles pass ``check_pickle``."""
    if not has_one_directory(file):
        raise CheckpointError(path, "a damaged zip archive", PLAIN)
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                raise CheckpointError(path, f"the compressed entry {shorten(entry.filename)}", PLAIN)
            if entry.filename.lower().endswith(".pkl"):  # torch ignores case
                with archive.open(entry) as pickled:
                    check_pickle(path, pickled)


def has_one_directory(file: BinaryIO) -> bool:
    """Whether a zip archive ends with its directory, and no comment, so that torch reads the one that Python reads."""
    size = file.seek(0, 2)
    file.seek(max(0, size - ZIP_END - ZIP64_END))
    tail = file.read()
    zip64, end = tail[:-ZIP_END], tail[-ZIP_END:]
    if not end.startswith(b"PK\5\6") or end[20:] != bytes(2):
        return False
    n_bytes, begin, stop = int.from_bytes(end[12:16], "little"), int.from_bytes(end[16:20], "little"), size - ZIP_END
    if zip64[-20:].startswith(b"PK\6\7"):
        stop -= ZIP64_END
        if not zip64.startswith(b"PK\6\6") or int.from_bytes(zip64[-12:-4], "little") != stop:
            return False
        n_bytes, begin = int.from_bytes(zip64[40:48], "little"), int.from_bytes(zip64[48:56], "little")
    return begin + n_bytes == stop


def check_pickle(path: Path, file: IO[bytes]) -> None:
    """Raise ``CheckpointError`` unless the pickle that begins here holds only what ``torch.save`` writes of tensors.

    Reading it then takes memory in proportion to its length, because whatever a call receives is written in place.
    Leaves ``file`` behind the pickle. Raises ``ValueError`` or ``LookupError`` if it is damaged or no pickle.
    """
    begin, memo, last, n_calls = file.tell(), dict[object, str](), "", 0  # n_calls: begun, but not complete
    for opcode, argument, position in genops(file):
        name = opcode.name
        if (position or 0) - begin > MAX_PICKLE_BYTES:
            raise CheckpointError(path, f"a pickle of more than {MAX_PICKLE_BYTES:,} bytes", PLAIN)
        if name in PUT:
            memo[argument] = last
            continue
        if name == "GLOBAL":
            name = str(argument)
            if name not in GLOBALS:
                raise CheckpointError(path, f"a pickle that holds {called(name)}, which is never executed", PLAIN)
        elif name in GET:
            name = memo[argument]
            if name not in STRINGS | GLOBALS and (n_calls or name not in SHARED):
                raise CheckpointError(path, "a pickle that holds one object in two places", PLAIN)
        if name not in FOLLOWED_BY.get(last, {name}) or (name == "BUILD" and last not in ("SETITEM", "SETITEMS")):
            raise ValueError
        if name == "REDUCE":
            name = EMPTY if last == NOTHING else TENSOR
            n_calls -= name == TENSOR
            if n_calls < 0:
                raise ValueError
        elif name in CALLS:
            n_calls += 1
        last = NOTHING if last == ORDERED_DICT else name


def called(name: str) -> str:
    """How an error shows the GLOBAL ``module name``."""
    dotted = re.sub(r"^(builtins|__builtin__)\.", "", name.replace(" ", "."))
    return dotted if re.fullmatch(r"[\w.]{1,100}", dotted) else shorten(dotted)


def describe_unpickling_error(error: Exception) -> str:
    """A short description: torch's own messages are whole paragraphs, or just a number."""
    if isinstance(error, OSError):
        return f"an unreadable file ({error.strerror or error})"
    if "exhausted" in str(error):  # in pickletools' message
        return "a file that is empty or cut off"
    if isinstance(error, zipfile.BadZipFile) or "zip archive" in str(error):
        return "a damaged zip archive"
    return "a file that torch.save did not write, or a damaged one"
