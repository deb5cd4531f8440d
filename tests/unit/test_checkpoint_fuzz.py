"""Damaged checkpoints at random: each is refused with a ``CheckpointError`` or is a model that works."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import tiny_bpe, tiny_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import model

FILES = ("config.json", "tokenizer.json", "model.safetensors")
FUZZ = settings(
    max_examples=120, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([0, 1, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


class Damaged:
    """A checkpoint whose files can be replaced, and are put back afterwards."""

    def __init__(self, folder: Path, bpe: bool) -> None:
        tokenizer = tiny_bpe(258) if bpe else None
        tiny_model(tokenizer=tokenizer, n_layer=1, n_embd=4, context_length=8).save(folder)
        self.folder = folder
        self.content = {name: (folder / name).read_bytes() for name in FILES}

    def check(self, name: str, content: bytes) -> str:
        """Try with ``content`` in the file: "refused" or "loaded"; anything else that is raised fails the test."""
        (self.folder / name).write_bytes(content)
        try:
            loaded = model.load(self.folder, device="cpu")
            try:
                assert len(list(loaded.generate([0], 3, seed=0))) >= 1
            except FloatingPointError:  # finite weights, but so large that the logits are not
                assert max(p.abs().max() for p in loaded.gpt.parameters()) > 1e6
            assert loaded.trace([0, 1]).logits.shape == (2, loaded.config.vocab_size)
            loaded.tokenizer.encode(loaded.tokenizer.decode(range(loaded.tokenizer.vocab_size)))
            return "loaded"
        except model.CheckpointError as error:
            assert error.file == str(self.folder / name) or name != "model.safetensors"
            assert error.found and error.expected and len(str(error)) < 3000
            assert str(error).encode()
            return "refused"
        finally:
            (self.folder / name).write_bytes(self.content[name])


@pytest.fixture(scope="module", params=["characters", "bpe"])
def damaged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Damaged:
    return Damaged(tmp_path_factory.mktemp("fuzz") / "tiny", bpe=request.param == "bpe")


@pytest.mark.parametrize("name", FILES)
def test_the_start_loads(name: str, damaged: Damaged) -> None:
    assert damaged.check(name, damaged.content[name]) == "loaded"


def paths_of(content: Any, path: tuple = ()) -> list[tuple]:
    """Every place in a JSON value, at most a few of each long list or vocabulary."""
    found = [path] if path else []
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items)[:40]:
        found += paths_of(value, (*path, key))
    return found


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@FUZZ
@given(data=st.data())
def test_any_value_in_any_place(name: str, data: st.DataObject, damaged: Damaged) -> None:
    content = json.loads(damaged.content[name])
    for _ in range(data.draw(st.integers(1, 2))):
        places = paths_of(content)
        *parents, last = data.draw(st.sampled_from(places))
        place = content
        for parent in parents:
            place = place[parent]
        if data.draw(st.booleans()) or isinstance(place, list):
            place[last] = data.draw(ANY_JSON)
        else:
            del place[last]
        if not isinstance(content, dict) or not paths_of(content):
            break
    damaged.check(name, json.dumps(content).encode())


@pytest.mark.parametrize("name", FILES)
@FUZZ
@given(seed=st.integers(0, 2**32), kind=st.sampled_from(["flip", "cut", "insert", "delete", "double"]))
def test_damaged_bytes(name: str, seed: int, kind: str, damaged: Damaged) -> None:
    rng = random.Random(seed)
    content = bytearray(damaged.content[name])
    # In the weights most bytes are numbers; the header is where the structure is.
    limit = len(content) if name != "model.safetensors" or rng.random() < 0.3 else 1200
    at = rng.randrange(min(limit, len(content)))
    if kind == "flip":
        for _ in range(rng.randint(1, 4)):
            content[rng.randrange(min(limit, len(content)))] = rng.randrange(256)
    elif kind == "cut":
        del content[at:]
    elif kind == "insert":
        content[at:at] = rng.randbytes(rng.randint(1, 20))
    elif kind == "delete":
        del content[at : at + rng.randint(1, 20)]
    else:
        content *= 2
    damaged.check(name, bytes(content))


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


@FUZZ
@given(data=st.data())
def test_any_value_in_the_safetensors_header(data: st.DataObject, damaged: Damaged) -> None:
    header, body = header_of(damaged.content["model.safetensors"])
    tensor = header[data.draw(st.sampled_from(sorted(set(header) - {"__metadata__"})))]
    key = data.draw(st.sampled_from(["dtype", "shape", "data_offsets"]))
    dtypes = st.sampled_from(["F64", "I8", "F16", "BF16", "U8", "F8_E4M3", "x"])
    numbers = st.lists(st.integers(-1, 2**64), max_size=3)
    tensor[key] = data.draw(ANY_JSON | (dtypes if key == "dtype" else numbers))
    text = json.dumps(header).encode()
    assert damaged.check("model.safetensors", struct.pack("<Q", len(text)) + text + body) in ("refused", "loaded")


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100, 700, -1000, -4, -1])
def test_truncated_weights(length: int, damaged: Damaged) -> None:
    assert damaged.check("model.safetensors", damaged.content["model.safetensors"][:length]) == "refused"


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**12, 100_000_001, 2])
def test_a_header_length_that_lies(length: int, damaged: Damaged) -> None:
    content = struct.pack("<Q", length) + damaged.content["model.safetensors"][8:]
    assert damaged.check("model.safetensors", content) == "refused"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", FILES)
def test_random_bytes(name: str, seed: int, damaged: Damaged) -> None:
    assert damaged.check(name, random.Random(seed).randbytes(seed**4)) == "refused"


def test_a_file_overwritten_in_place_leaves_a_loaded_model_alone(damaged: Damaged) -> None:
    """The weights in use are copies: neither other numbers in the file nor its end may reach them."""
    path = damaged.folder / "model.safetensors"
    loaded = model.load(damaged.folder, device="cpu", dtype="float32")
    before = loaded.trace([0, 1, 2]).logits
    try:
        with path.open("r+b") as file:
            file.write(b"\0" * len(damaged.content["model.safetensors"]))
        assert torch.equal(loaded.trace([0, 1, 2]).logits, before)
        with path.open("r+b") as file:
            file.truncate(0)
        assert torch.equal(loaded.trace([0, 1, 2]).logits, before)
    finally:
        path.write_bytes(damaged.content["model.safetensors"])
