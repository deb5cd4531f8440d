"""Files of ``torch.save``: real ones are read, and none takes much more memory than its size."""

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import model
from model.checkpoint.pickled import MAX_PICKLE_BYTES, read_pickled

BYTEARRAY = b"cbuiltins\nbytearray\nJ" + struct.pack("<i", 800_000_000) + b"\x85R"
ORDERED = b"ccollections\nOrderedDict\n"
DAMAGED = "a file that torch.save did not write, or a damaged one"


def stored(path: Path, content: object, **options: Any) -> Path:
    torch.save(content, path, **options)
    return path


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def write_archive(path: Path, content: dict[str, bytes], comment: bytes = b"", compress: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
        archive.comment = comment
    return path


def with_value(path: Path, value: bytes, zipped: bool) -> Path:
    """A file whose pickle is a dictionary with one value, that of the opcodes ``value``."""
    opcodes = b"\x80\x02}X\x01\x00\x00\x00a" + value + b"s."
    stored(path, {"a": torch.zeros(3)}, _use_new_zipfile_serialization=zipped)
    if zipped:
        return write_archive(
            path, {n: opcodes if n.endswith("data.pkl") else data for n, data in entries(path).items()}
        )
    file = io.BytesIO(path.read_bytes())
    for _ in range(3):  # the header's pickles
        pickle.load(file)
    path.write_bytes(file.getvalue()[: file.tell()] + opcodes + pickle.dumps([], 2))
    return path


def write_weights(folder: Path, weights: dict[Any, Tensor]) -> None:
    """Replace the weights of a checkpoint by transformers' older file."""
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")


def refused(path: Path, found: str) -> None:
    with pytest.raises(model.CheckpointError) as error:
        read_pickled(path)
    assert error.value.reason.startswith(f"found {found}, expected "), error.value.reason


def checkpoint_of_nanogpt() -> dict[str, Any]:
    """Everything that nanoGPT saves, after one step."""
    layer = nn.Linear(3, 2)
    groups = [{"params": [layer.weight], "weight_decay": 0.1}, {"params": [layer.bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    layer(torch.ones(3)).sum().backward()
    optimizer.step()
    return {
        "model": layer.state_dict(),
        "optimizer": optimizer.state_dict(),
        "model_args": {"n_layer": 2, "bias": False, "dropout": 0.0, "vocab_size": None},
        "iter_num": 70_000,
        "best_val_loss": torch.tensor(1.5),
        "config": {"out_dir": "out", "large": 2**40, "list": [1, "a"], "tuple": (1, 2, 3, 4)},
    }


def weights_of_transformers() -> dict[str, Tensor]:
    """The kinds of tensors in transformers' files: half precision, masks with four dimensions, tied ones."""
    tied = torch.ones(4, 3)
    mask = torch.ones(1, 1, 4, 4)
    return OrderedDict(
        {"wte": tied, "head": tied, "half": torch.ones(2).half(), "view": torch.ones(2, 3, dtype=torch.bfloat16).t()}
        | {"mask": mask.bool(), "byte_mask": mask.byte(), "scalar": torch.tensor(-1e4), "empty": torch.zeros(0)}
        | {"parameter": nn.Parameter(torch.ones(2))}
    )


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("make", [checkpoint_of_nanogpt, weights_of_transformers])
def test_real_files_are_read(make: Callable[[], dict[str, Any]], zipped: bool, tmp_path: Path) -> None:
    path = stored(tmp_path / "model.pt", make(), _use_new_zipfile_serialization=zipped)
    expected = torch.load(path, weights_only=True)
    read = read_pickled(path)
    assert read.keys() == expected.keys() and repr(read) == repr(expected)


@pytest.mark.parametrize("zipped", [True, False])
def test_the_state_of_a_module_keeps_its_attributes(zipped: bool, tmp_path: Path) -> None:
    state = nn.LayerNorm(3).state_dict()
    read = read_pickled(stored(tmp_path / "model.pt", state, _use_new_zipfile_serialization=zipped))
    assert read._metadata == state._metadata  # type: ignore[attr-defined]


def test_a_compressed_archive_is_refused_before_it_inflates(tmp_path: Path) -> None:
    content = entries(stored(tmp_path / "stored.pt", {"a": torch.zeros(1_000_000)}))
    deflated = write_archive(tmp_path / "deflated.pt", content, compress=True)
    assert deflated.stat().st_size < 20_000
    with pytest.raises(model.CheckpointError, match="found the compressed entry '.*', expected"):
        read_pickled(deflated)


def test_an_archive_that_python_takes_for_no_archive_is_refused(tmp_path: Path) -> None:
    content = entries(stored(tmp_path / "stored.pt", {"a": torch.zeros(1_000_000)}))
    path = write_archive(tmp_path / "comment.pt", content, comment=b"PK\5\6 hello", compress=True)
    assert not zipfile.is_zipfile(path)
    refused(path, "a damaged zip archive")


def test_an_archive_with_two_directories_is_refused(tmp_path: Path) -> None:
    """Python reads the second, according to which nothing is compressed, and torch the first."""
    content = entries(stored(tmp_path / "stored.pt", {"a": torch.zeros(1_000_000)}))
    raw = write_archive(tmp_path / "two.pt", content, compress=True).read_bytes()
    end = raw.rindex(b"PK\5\6")
    n_bytes, begin = struct.unpack("<LL", raw[end + 12 : end + 20])
    directory = bytearray(raw[begin : begin + n_bytes])
    place = 0
    while place < n_bytes:
        struct.pack_into("<H", directory, place + 10, 0)  # the method: stored
        directory[place + 24 : place + 28] = directory[place + 20 : place + 24]  # both sizes
        place += 46 + sum(struct.unpack_from("<3H", directory, place + 28))
    (tmp_path / "two.pt").write_bytes(raw[:end] + directory + raw[end:])
    with zipfile.ZipFile(tmp_path / "two.pt") as archive:
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())
    refused(tmp_path / "two.pt", "a damaged zip archive")


def test_a_second_zip64_directory_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path / "model.pt", {"a": torch.zeros(3)})
    raw = bytearray(path.read_bytes())
    locator = raw.rindex(b"PK\6\7")
    assert read_pickled(path) and raw[locator - 56 :].startswith(b"PK\6\6")
    struct.pack_into("<Q", raw, locator + 8, 0)  # where torch looks; Python takes the record before it
    path.write_bytes(raw)
    refused(path, "a damaged zip archive")


@pytest.mark.parametrize("zipped", [True, False])
def test_calls_that_allocate_memory_are_refused(zipped: bool, tmp_path: Path) -> None:
    path = with_value(tmp_path / "model.pt", BYTEARRAY, zipped)
    refused(path, "a pickle that holds bytearray, which is never executed")


def test_the_pickle_is_found_whatever_the_case_of_its_name(tmp_path: Path) -> None:
    content = entries(with_value(tmp_path / "model.pt", BYTEARRAY, zipped=True))
    path = write_archive(tmp_path / "upper.pt", {name.replace("pkl", "PKL"): data for name, data in content.items()})
    refused(path, "a pickle that holds bytearray, which is never executed")


LIST = b"](K\x01K\x02K\x03eq\x01"  # memo 1
PAIRS = b"]K\x01K\x02\x86aq\x01"
FUNCTION = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"ctorch\nFloatStorage\n"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (PAIRS + ORDERED + b"h\x01\x85Ra", "a pickle that holds one object in two places"),  # a list, copied
        (b"]" + ORDERED + b"]K\x01K\x02\x86a\x85Ra", DAMAGED),  # OrderedDict with an argument
        (b"](" + FUNCTION + b"(K\x01K\x01tq\x01h\x01Re", "a pickle that holds one object in two places"),  # a size
        (b"]K\x01K\x02\x86q\x01a(" + ORDERED + b")Rh\x01be", DAMAGED),  # attributes
        (LIST + STORAGE + b"K\x05\x85Ra", DAMAGED),  # a storage that is not in the file
        (b"](K\x01K\x02K\x03\x87Re", DAMAGED),  # a call of nothing
        (b"](" + b"}" * MAX_PICKLE_BYTES + b"e", f"a pickle of more than {MAX_PICKLE_BYTES:,} bytes"),
    ],
)
def test_pickles_that_grow_are_refused(value: bytes, found: str, tmp_path: Path) -> None:
    refused(with_value(tmp_path / "model.pt", value, zipped=True), found)


def test_expanded_tensor_views_are_refused(tmp_path: Path) -> None:
    path = stored(tmp_path / "repeated.pt", {"model": {"wte.weight": torch.zeros(1).expand(50_000, 4_000)}})
    with pytest.raises(model.CheckpointError, match="found tensors of 800,000,000 bytes, expected at most"):
        read_pickled(path)


ODD: dict[str, Callable[[], Tensor]] = {
    "meta": lambda: torch.zeros(3, device="meta"),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "compressed": lambda: torch.eye(3).to_sparse_csr(),
    "nested": lambda: torch.nested.as_nested_tensor([torch.zeros(2), torch.zeros(3)]),
    "quantized": lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
    "complex": lambda: torch.zeros(3, dtype=torch.complex64),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
def test_tensors_of_other_kinds_are_refused(kind: str, folder: Path) -> None:
    write_weights(folder, {"transformer.wte.weight": ODD[kind]()})
    with pytest.raises(model.CheckpointError, match="found a pickle that holds torch"):
        model.load(folder)


def test_names_that_are_not_strings_are_refused(folder: Path) -> None:
    write_weights(folder, {5: torch.zeros(3)})
    with pytest.raises(model.CheckpointError, match="found a tensor called 5, expected names that are strings"):
        model.load(folder)
