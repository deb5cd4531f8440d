"""The choice between kinds of matrix products."""

import json
from pathlib import Path

import pytest
import torch

from helpers.models import tiny_gpt
from model.kernels import products
from model.kernels.products import KINDS, choose_products
from model.kernels.sums import has_feature, has_pair_products
from model.serving.choose_reader import choose_reader
from model.serving.compiled_reader import CompiledReader

NEEDS_PAIRS = pytest.mark.skipif(not has_pair_products(), reason="this processor cannot multiply pairs of bfloat16")
IN_TILES = [kind for kind in KINDS if kind.endswith("in tiles")]


class Machine:
    """What is pretended of the processor and the system; ``timed`` lists the kinds that were timed."""

    def __init__(self) -> None:
        self.name, self.features, self.permits, self.right = "sapphirerapids", {"amx-bf16", "amx-int8"}, True, True
        self.has_pairs = True
        self.seconds = {"float32": 3.0, "bfloat16": 2.0, "bfloat16 in tiles": 1.0, "int8": 2.0, "int8 in tiles": 1.0}
        self.timed: list[str] = []

    def time(self, kind: str) -> float:
        self.timed.append(kind)
        return self.seconds[kind]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made, are_right = Machine(), products.are_right
    monkeypatch.setattr(products, "seconds", made.time)
    monkeypatch.setattr(products, "has_pair_products", lambda: made.has_pairs)
    monkeypatch.setattr(products, "has_feature", lambda name: name in made.features)
    monkeypatch.setattr(products, "is_permitted", lambda: made.permits)
    monkeypatch.setattr(products, "get_host_cpu_name", lambda: made.name)
    monkeypatch.setattr(products, "are_right", lambda kind: made.right if kind in IN_TILES else are_right(kind))
    return made


def test_the_fastest_products_are_chosen_once_per_processor(machine: Machine, tmp_path: Path) -> None:
    assert choose_products(torch.bfloat16, tmp_path) == "bfloat16 in tiles"
    assert machine.timed == ["float32", "bfloat16", "bfloat16 in tiles"]
    machine.seconds["bfloat16 in tiles"] = 2.5
    assert choose_products(torch.bfloat16, tmp_path) == "bfloat16 in tiles"
    assert choose_products(torch.int8, tmp_path) == "int8 in tiles"
    assert machine.timed[3:] == ["int8", "int8 in tiles"]
    machine.name = "graniterapids"
    assert choose_products(torch.bfloat16, tmp_path) == "bfloat16" and len(machine.timed) == 8
    kept = json.loads((tmp_path / products.FILE).read_text())
    assert {name: list(row) for name, row in kept.items()} == {
        "sapphirerapids": list(KINDS),
        "graniterapids": ["float32", "bfloat16", "bfloat16 in tiles"],
    }


@pytest.mark.parametrize(
    "content", ["", "[]", '{"a": 1}', '{"sapphirerapids": [1]}', '{"sapphirerapids": {"int8": []}}']
)
def test_a_damaged_file_is_replaced(machine: Machine, tmp_path: Path, content: str) -> None:
    (tmp_path / products.FILE).write_text(content)
    assert choose_products(torch.bfloat16, tmp_path) == "bfloat16 in tiles"
    assert json.loads((tmp_path / products.FILE).read_text())["sapphirerapids"]["bfloat16"] == 2


def test_timings_from_before_there_were_tiles_are_taken_again(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / products.FILE).write_text('{"sapphirerapids": {"float32": 1e-9, "bfloat16": 1}}')
    machine.permits = False
    assert choose_products(torch.bfloat16, tmp_path) == "float32" and not machine.timed
    machine.permits = True
    assert choose_products(torch.bfloat16, tmp_path) == "bfloat16 in tiles" and len(machine.timed) == 3


@pytest.mark.parametrize("reason", ["no feature", "no permission", "wrong", "slower"])
def test_products_are_in_vectors_where_tiles_are_no_gain(machine: Machine, tmp_path: Path, reason: str) -> None:
    if reason == "no feature":
        machine.features = {"amx-tile"}
    machine.permits = reason != "no permission"
    machine.right = reason != "wrong"
    if reason == "slower":
        machine.seconds |= dict.fromkeys(IN_TILES, 9.0)
    for _ in range(2):  # the second time from the file
        assert choose_products(torch.bfloat16, tmp_path) == "bfloat16"
        assert choose_products(torch.int8, tmp_path) == "int8"
    assert len(machine.timed) == len(set(machine.timed))
    assert reason == "slower" or not set(machine.timed) & set(IN_TILES)


def test_nothing_is_timed_where_there_is_no_choice(machine: Machine) -> None:
    assert choose_products(torch.float32, None) == "float32"
    machine.features = set()
    assert choose_products(torch.int8, None) == "int8"
    machine.has_pairs = False
    assert choose_products(torch.bfloat16, None) == "float32"
    assert not machine.timed


@pytest.mark.slow
@pytest.mark.parametrize("kind", IN_TILES)
def test_tiles_are_right_on_every_processor_that_has_them(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = products.are_right(kind)
    monkeypatch.setattr(products, "CHECK", "from model.kernels import tiles; assert tiles.is_permitted(), %r")
    feature = "amx-int8" if kind.startswith("int8") else "amx-bf16"
    assert found == (has_feature(feature) and products.are_right(kind))


def test_a_check_that_crashes_or_takes_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "CHECK", "print(%r)")
    assert products.are_right(IN_TILES[0])
    monkeypatch.setattr(products, "CHECK_SECONDS", 0)
    assert not products.are_right(IN_TILES[0])
    monkeypatch.undo()
    monkeypatch.setattr(products, "CHECK", "import os; %r; os.abort()")
    assert not products.are_right(IN_TILES[0])


@NEEDS_PAIRS
def test_only_bfloat16_models_use_them(machine: Machine) -> None:
    machine.features = set()
    gpt = tiny_gpt()
    found = [choose_reader(gpt, 1), choose_reader(gpt.bfloat16(), 1)]
    assert all(isinstance(reader, CompiledReader) for reader in found)
    assert [reader.products for reader in found if reader] == ["float32", "bfloat16"]


@pytest.mark.parametrize("kind", ["float32", pytest.param("bfloat16", marks=NEEDS_PAIRS), "int8"])
def test_every_kind_can_be_timed(kind: str) -> None:
    assert products.seconds(kind) > 0
