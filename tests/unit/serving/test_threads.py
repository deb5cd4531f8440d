"""The thread probe: it picks the fastest count, and leaves torch there."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from helpers.models import tiny_gpt
from model.serving import threads


@pytest.fixture(autouse=True)
def restore_threads() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("fastest", [1, 2, 4, 6])
def test_the_fastest_count_wins(monkeypatch: pytest.MonkeyPatch, fastest: int) -> None:
    tried = []

    def seconds(gpt: object) -> float:
        tried.append(torch.get_num_threads())
        return abs(torch.get_num_threads() - fastest) + 1.0

    monkeypatch.setattr(threads, "decode_seconds", seconds)
    monkeypatch.setattr(threads, "available_cores", lambda: 6)
    torch.set_num_threads(6)
    assert threads.choose_threads(tiny_gpt()) == torch.get_num_threads() == fastest
    assert set(tried) == {1, 2, 4, 6}


def test_a_single_core_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_cores", lambda: 1)
    monkeypatch.setattr(threads, "decode_seconds", None)
    assert threads.choose_threads(tiny_gpt()) == torch.get_num_threads()


def test_the_probe_runs_on_a_real_model() -> None:
    gpt = tiny_gpt(context_length=4)
    assert threads.decode_seconds(gpt) > 0
    assert threads.choose_threads(gpt) >= 1


def test_a_thread_that_computes_alone_leaves_the_setting_of_the_others() -> None:
    torch.set_num_threads(3)
    with ThreadPoolExecutor(1, initializer=threads.compute_alone) as alone, ThreadPoolExecutor(1) as other:
        assert alone.submit(torch.get_num_threads).result() == 1
        assert other.submit(torch.get_num_threads).result() == torch.get_num_threads() == 3
        assert alone.submit(torch.get_num_threads).result() == 1
