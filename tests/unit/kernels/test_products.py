"""The choice between float32 and bfloat16 products."""

import json
from pathlib import Path

import pytest

from helpers.models import tiny_gpt
from model.kernels import products
from model.kernels.panels import has_pair_products
from model.serving.choose_reader import choose_reader
from model.serving.compiled_reader import CompiledReader


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The pretended seconds of both kinds, with a count of the timings."""
    found = {"IntegerScratch": 2.0, "PairScratch": 1.0, "count": 0}

    def seconds(scratch: object) -> float:
        found["count"] += 1
        return found[type(scratch).__name__]

    monkeypatch.setattr(products, "seconds", seconds)
    monkeypatch.setattr(products, "has_pair_products", lambda: True)
    return found


def test_faster_products_are_chosen_once_per_processor(
    timed: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert products.are_pairs_faster(tmp_path) and timed["count"] == 2
    timed["PairScratch"] = 3.0
    assert products.are_pairs_faster(tmp_path) and timed["count"] == 2
    monkeypatch.setattr(products, "get_host_cpu_name", lambda: "another")
    assert not products.are_pairs_faster(tmp_path) and timed["count"] == 4
    assert len(json.loads((tmp_path / products.FILE).read_text())) == 2


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', '{"a": {"float32": 1}}'])
def test_a_damaged_file_is_replaced(timed: dict[str, float], tmp_path: Path, content: str) -> None:
    (tmp_path / products.FILE).write_text(content)
    assert products.are_pairs_faster(tmp_path)
    assert json.loads((tmp_path / products.FILE).read_text())


def test_nothing_is_timed_on_processors_without_them(timed: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_pair_products", lambda: False)
    assert not products.are_pairs_faster(None) and timed["count"] == 0


@pytest.mark.skipif(not has_pair_products(), reason="this processor cannot multiply pairs of bfloat16")
def test_only_bfloat16_models_use_them_unless_refused(timed: dict[str, float]) -> None:
    gpt = tiny_gpt()
    found = [choose_reader(gpt, 1), choose_reader(gpt.bfloat16(), 1), choose_reader(gpt, 1, bfloat16_products=False)]
    assert all(isinstance(reader, CompiledReader) for reader in found)
    assert [reader.products for reader in found if reader] == ["float32", "bfloat16", "float32"]


@pytest.mark.skipif(not has_pair_products(), reason="this processor cannot multiply pairs of bfloat16")
def test_both_kinds_can_be_timed() -> None:
    assert products.seconds(products.unchanged()) > 0 and products.seconds(products.rounded()) > 0
