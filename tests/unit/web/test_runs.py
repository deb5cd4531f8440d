"""How much of a run is kept, that nothing is lost, and the cost of viewing one."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from helpers.engine import recorded_events
from helpers.models import tiny_model
from helpers.runs import frame, written
from model import LoadedModel
from model.drawing.pictures import rollout
from model.drawing.recording import Recording
from model.drawing.thumbnails import tile
from model.drawing.weight_buffer import triangle
from model.gpt import GPT
from model.lens.text_pass import TextPass
from model.serving.sequence import PromptPart
from web.runs import exact, store
from web.runs import run as run_module
from web.runs.run import Run
from web.runs.store import Runs
from web.serving.budget import Budget


def test_a_speed_is_told_when_it_can_be(loaded: LoadedModel) -> None:
    run = written(Runs(), loaded, 21)
    run.began = 5.0
    for seconds, speed in ((0.0, 0.0), (1e-5, 0.0), (0.1, 0.0), (0.5, 40.0), (10.0, 2.0)):
        run.latest = run.began + seconds
        assert run.tokens_per_second == pytest.approx(speed)


@pytest.mark.parametrize("again", [False, True])
def test_every_token_but_the_first_has_its_probability(loaded: LoadedModel, again: bool) -> None:
    run = written(Runs(), loaded, 9)
    if again:
        run = Runs().recompute(loaded, run.ids, run.n_prompt)
    logprobs = loaded.trace(run.ids).logits.log_softmax(-1)
    assert run.logprobs[0] is None and len(run.logprobs) == len(run.ids)
    expected = [float(logprobs[i - 1, run.ids[i]]) for i in range(1, len(run.ids))]
    np.testing.assert_allclose(run.logprobs[1:], expected, atol=1e-5)


def test_the_last_token_of_a_full_context_is_not_read() -> None:
    loaded = tiny_model()
    run = written(Runs(), loaded, 100, "ab")
    assert len(run.ids) == loaded.config.context_length + 1
    assert run.recording.n_rows == loaded.config.context_length
    again = Runs().recompute(loaded, run.ids, run.n_prompt)  # and yet its probability is known
    assert again.recording.n_rows == run.recording.n_rows and len(again.logprobs) == len(run.ids)
    assert again.logprobs[-1] == pytest.approx(run.logprobs[-1], abs=1e-5)


def test_cached_runs_stay_within_the_byte_limit() -> None:
    loaded = tiny_model()
    sample = written(Runs(), loaded, 10)
    large = sample.nbytes
    sample.release_weights()
    small = sample.nbytes
    assert small < large
    runs = Runs(max_bytes=large + 3 * small)
    kept = [written(runs, loaded, 10) for _ in range(20)]
    assert runs.cache.nbytes <= large + 3 * small
    assert list(runs.cache.entries) == [run.id for run in kept[-4:]]
    assert [run.recording.keeps_weights for run in kept[-4:]] == [False, False, False, True]
    assert runs.get(kept[-4].id) is kept[-4]  # asked for, so no longer the least used
    written(runs, loaded, 10)
    assert kept[-4].id in runs.cache.entries and kept[-3].id not in runs.cache.entries


def test_runs_also_use_spare_memory_until_someone_needs_it() -> None:
    loaded, budget = tiny_model(), Budget(4_000_000)
    runs = Runs(max_bytes=0, spare=lambda: budget.free)
    budget.make_room = runs.trim
    kept = [written(runs, loaded, 10) for _ in range(5)]
    runs.exact.picture(kept[0], 1, 1, 0)
    exact, frames = runs.exact.picture(kept[0], 0, 1, 0), [run.frame(0) for run in kept]
    assert all(run.recording.keeps_weights for run in kept) and runs.exact.n_read == 0
    with budget.hold(2_000_000, "somebody"), budget.hold(2_000_000 - runs.cache.nbytes // 2, "somebody else"):
        assert not kept[0].recording.keeps_weights
    assert [run.frame(0) for run in kept] == frames
    assert runs.exact.picture(kept[0], 0, 1, 0) == exact and runs.exact.n_read == 0  # it was shown
    shown_before = np.frombuffer(runs.exact.picture(kept[0], 1, 1, 0), np.float32)
    own = loaded.trace(kept[0].ids).attention[1, 1]
    np.testing.assert_allclose(shown_before, own[torch.ones_like(own).tril().bool()], atol=1e-5)
    assert runs.exact.n_read == 1


@pytest.mark.slow
def test_every_text_on_screen_is_read_again_once_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many visitors open heads in turn, with memory for the weights of one text and the passes of all."""
    monkeypatch.setattr(store, "MIN_RUN_PASS_BYTES", 0)
    loaded = tiny_model(n_layer=3, n_head=4, n_embd=64, context_length=200)
    sample = written(Runs(), loaded, 100)
    n_pass = TextPass(loaded.gpt, sample.readable_ids).nbytes
    whole = sample.nbytes
    sample.release_weights()
    spare = whole + 20 * (sample.nbytes + n_pass)
    runs = Runs(max_bytes=0, spare=lambda: spare)
    kept = [written(runs, loaded, 100) for _ in range(20)]
    for head in range(4):
        for run in kept:
            assert runs.get(run.id) is run
            runs.exact.picture(run, 2, head, 0)
            assert runs.nbytes <= spare
    assert 0 < runs.exact.n_read <= len(kept)


def test_runs_being_written_are_not_evicted() -> None:
    loaded = tiny_model()
    runs = Runs(max_bytes=1)
    busy = runs.new(loaded, [1, 2], 5)
    written(runs, loaded, 5)
    written(runs, loaded, 5)
    assert runs.get(busy.id) is busy


def test_written_runs_can_be_evicted() -> None:
    runs = Runs(max_bytes=1)
    first, second = (runs.new(tiny_model(), [1, 2], 5) for _ in range(2))
    runs.end(first)
    runs.end(second)
    assert list(runs.cache.entries) == [second.id] and not second.writing


def test_evicting_a_run_also_evicts_its_text_pass() -> None:
    runs, loaded = Runs(max_bytes=1), tiny_model()
    first = written(runs, loaded, 5)
    runs.exact.text_pass(first, 3)
    assert list(runs.exact.text_passes.entries) == [(first.id, loaded)]
    written(runs, loaded, 5)
    assert runs.get(first.id) is None and not runs.exact.text_passes.entries


def test_a_pass_over_a_text_blocks_no_other_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick, runs = tiny_model(), tiny_model(), Runs()
    slow.name = "slow"
    started, go_on = threading.Semaphore(0), threading.Event()

    def read(gpt: GPT, *about: Any) -> TextPass:
        if gpt is slow.gpt:
            started.release()
            assert go_on.wait(30)
        return TextPass(gpt, *about)

    def use_another() -> Run:
        other = written(runs, quick, 5)
        runs.exact.logits(other, 3)
        assert runs.get(other.id) is other and runs.recompute(quick, [1, 2], 1).ids == [1, 2]
        runs.forget("slow")  # as the event loop does
        assert runs.get(shown.id) is None
        return other

    monkeypatch.setattr(exact, "TextPass", read)
    shown = written(runs, slow, 5)
    with ThreadPoolExecutor(3) as pool:
        try:
            logits, again = pool.submit(runs.exact.logits, shown, 3), pool.submit(runs.recompute, slow, [1, 2, 3], 1)
            assert started.acquire(timeout=30) and started.acquire(timeout=30)  # both at the same time
            other = pool.submit(use_another).result(30)
        finally:
            go_on.set()
        assert len(logits.result(30)) == 4 * slow.config.vocab_size and again.result(30).ids == [1, 2, 3]
    # Nothing is kept of a model that is gone.
    assert {run.loaded for run in runs.cache.values()} == {quick} and other.id in runs.cache.entries
    assert {loaded for _, loaded in runs.exact.text_passes.entries} == {quick}


def test_a_large_run_keeps_only_a_few_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_RUN_BYTES", 100)
    loaded = tiny_model(n_layer=3, n_head=4, n_embd=32, context_length=200)
    runs = Runs()
    run = runs.new(loaded, loaded.parse_prompt("ab"), 150)
    assert run.recording.buffer.weights is None
    for event in recorded_events(loaded, "ab", 151):
        run.take(event)
        if run.recording.n_rows in (10, 100):  # opened while it is written, it keeps growing
            runs.exact.picture(run, 2, 3, 0)
    attention = loaded.trace(run.ids).attention
    whole = Recording(3, 4, len(run.ids))
    whole.extend(attention)
    for layer, column in [*itertools.product(range(3), range(6)), (3, 4)]:
        found = torch.frombuffer(bytearray(runs.exact.picture(run, layer, column, 0)), dtype=torch.float32)
        kept = torch.frombuffer(bytearray(whole.picture(layer, column, 0, torch.zeros)), dtype=torch.float32)
        torch.testing.assert_close(found, kept, atol=1e-5, rtol=0)
    again = runs.recompute(loaded, run.ids, 2)
    assert frame(again.frame(0))[0]["rows"] == len(run.ids)
    frames = [np.frombuffer(r.recording.thumbnails()[3], np.uint8).astype(int) for r in (again, run)]
    assert abs(frames[0] - frames[1]).max() <= 1


def test_rollouts_of_a_long_text_are_computed_only_when_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_RUN_BYTES", 100)
    monkeypatch.setattr(run_module, "MAX_ROLLOUT_BYTES", 100)
    monkeypatch.setattr(run_module, "FILLED_WEIGHTS", 500)
    loaded, runs = tiny_model(n_layer=3, n_head=4, n_embd=32, context_length=200), Runs()
    run = written(runs, loaded, 60)
    attention, n = loaded.trace(run.ids).attention, len(run.ids)
    again = runs.recompute(loaded, run.ids, run.n_prompt)
    for each in (run, again):
        rows = torch.frombuffer(bytearray(runs.exact.query(each, 40)), dtype=torch.float32).view(-1, 41)
        torch.testing.assert_close(rows[6:10], attention[1, :, 40, :41], atol=1e-5, rtol=0)
        assert rows[[5, 11, 17]].isnan().all()
        found = torch.frombuffer(bytearray(runs.exact.picture(each, 2, 5, 0)), dtype=torch.float32)
        expected = rollout(attention.mean(1))[torch.ones(n, n).tril().bool()]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        metrics = each.recording.metrics()
        torch.testing.assert_close(metrics, run.recording.metrics(), equal_nan=True, atol=1e-5, rtol=0)
        assert metrics[[5, 11, 17]].isnan().all() and metrics.isfinite().sum() == 16 * metrics.shape[1]


def test_looking_at_a_long_text_being_written_costs_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_RUN_BYTES", 100)
    loaded = tiny_model(n_layer=2, n_head=2, n_embd=32, context_length=100)
    runs = Runs()
    run = runs.new(loaded, loaded.parse_prompt("ab"), 60)
    read: list[int] = []
    monkeypatch.setattr(exact, "TextPass", lambda gpt, ids, _: read.append(len(ids)) or TextPass(gpt, ids))
    for event in recorded_events(loaded, "ab", 61):
        run.take(event)
        n = run.recording.n_rows
        runs.exact.picture(run, 0, 1, 0)  # recomputed once, then it grows on
        rows = np.frombuffer(runs.exact.query(run, n - 1), np.float32).reshape(-1, n)
        newest = event.attention[:, :, -1] if isinstance(event, PromptPart) else event.attention
        np.testing.assert_allclose(rows[[0, 1, 4, 5]], newest.flatten(0, 1), atol=1e-6)
        runs.exact.logits(run, n - 1)
    assert len(read) == 1
    runs.exact.query(run, 1)
    runs.exact.logits(run, 1)  # long gone, but read all the same
    assert len(read) == 1


def test_reading_a_run_while_it_is_written() -> None:
    """Every read returns a complete triangle, whenever it happens."""
    attention = torch.rand(2, 2, 300, 300).tril()
    recording = Recording(2, 2, 300)
    seen: list[int] = []

    def look() -> None:
        while not seen or seen[-1] < 300:
            n_rows, factor, first, data = recording.thumbnails()
            side = tile(n_rows - 1, factor) + 1
            assert first == 0 and len(data) == 9 * triangle(side)
            weights = recording.picture(1, 0, 0, lambda n: attention[1, 0])
            assert len(weights) % 4 == 0 and len(weights) // 4 >= triangle(n_rows)
            seen.append(n_rows)

    reader = threading.Thread(target=look)
    reader.start()
    recording.extend(attention[:, :, :7, :7])
    for i in range(7, 300):
        recording.append(attention[:, :, i, : i + 1])
    reader.join(timeout=20)
    assert seen[-1] == 300
    assert recording.thumbnails()[:2] == (300, 8)


def test_the_newest_logits_of_a_text_being_written_are_those_it_was_drawn_from() -> None:
    loaded = tiny_model()
    runs = Runs()
    run = runs.new(loaded, loaded.parse_prompt("ab"), 5)
    prompt, *steps = recorded_events(loaded, "ab", 4)
    run.take(prompt)
    for i, step in enumerate(steps):
        run.take(step)
        assert runs.exact.logits(run, 1 + i) == step.logits.numpy().tobytes()
    run.end()
    np.testing.assert_allclose(np.frombuffer(runs.exact.logits(run, 2), np.float32), steps[1].logits, atol=1e-5)
    assert not run.recent_logits
