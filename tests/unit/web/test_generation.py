"""Texts followed from an event loop: each ends with one outcome, and is counted once."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from helpers import run_async
from helpers.gate import GatedEngine, follow_generations
from model import GenerationRequest, LoadedModel, Step
from model.errors import Busy, Closed
from model.serving import torch_reader
from model.serving.sequence import Failure, recorded_bytes
from web.prometheus import Metrics
from web.serving.engines import Engines, best_batch
from web.serving.generation import Generation, Pace
from web.settings import Limits

OUTCOMES = ("ok", "busy", "failed", "cancelled", "deadline", "refused")
ROUTE = "/test"


class Bench:
    """Engines of one gated model, and their metrics."""

    def __init__(self, loaded: LoadedModel, **limits: int) -> None:
        self.loaded, self.metrics = loaded, Metrics()
        self.engines = Engines(Limits(**limits), self.metrics)
        self.running = follow_generations(self.engines)
        self.engine = GatedEngine(loaded, max_batch=self.engines.limits.max_batch,
                                  max_waiting=self.engines.limits.max_waiting)  # fmt: skip
        self.engines.add(loaded, self.engine)

    def request(self, n: int = 3) -> GenerationRequest:
        return self.loaded.request("ab", n, seed=1)

    def generate(self, *requests: GenerationRequest, client: str = "one", pace: Pace = 0.0) -> Generation:
        requests = requests or (self.request(),)
        return self.engines.generate(self.loaded, *requests, client=client, route=ROUTE, pace=pace)

    @property
    def counted(self) -> dict[str, float]:
        """Every outcome that was counted at all."""
        found = {
            name: self.metrics.registry.get_sample_value("headscope_requests_total", {"route": ROUTE, "outcome": name})
            for name in OUTCOMES
        }
        return {name: count for name, count in found.items() if count}


@pytest.fixture
def bench(loaded: LoadedModel) -> Iterator[Bench]:
    bench = Bench(loaded, max_batch=1, max_waiting=1)
    yield bench
    bench.engines.close()


async def follow(generation: Generation) -> list[tuple[int, Any]]:
    """All events, in order."""
    found: list[tuple[int, Any]] = []
    async with generation:
        async for events in generation:
            found += events
    return found


def test_events_of_a_whole_text(bench: Bench) -> None:
    bench.engine.gate.release(3)
    events = run_async(follow(bench.generate()))
    assert [event.token_id for _, event in events] == [step.token_id for step in bench.loaded.generate("ab", 3, seed=1)]
    assert bench.counted == {"ok": 1} and not bench.running


def test_texts_of_one_call_are_counted_as_one(loaded: LoadedModel) -> None:
    bench = Bench(loaded, max_batch=4)
    bench.engine.gate.release(9)
    events = run_async(follow(bench.generate(bench.request(2), bench.request(5))))
    assert [sum(index == i and isinstance(event, Step) for index, event in events) for i in (0, 1)] == [2, 5]
    assert bench.counted == {"ok": 1}
    bench.engines.close()


def test_leaving_cancels_the_texts(bench: Bench) -> None:
    async def leave() -> None:
        async with bench.generate() as generation:
            bench.engine.gate.release()
            async for _ in generation:
                break

    run_async(leave())
    bench.engine.news.wait_until(lambda: not bench.engine.active)
    assert bench.counted == {"cancelled": 1} and not bench.running


def test_stopping_keeps_the_text(bench: Bench) -> None:
    async def stop() -> list[Any]:
        async with bench.generate(bench.request(30)) as generation:
            bench.engine.gate.release()
            found = list(await anext(generation))
            generation.stop()
            bench.engine.gate.release()
            async for events in generation:
                found += events
            return found

    events = run_async(stop())
    assert len(events) == 2 and events[-1][1].finish_reason == "length"  # the step under way, and no more
    assert bench.counted == {"cancelled": 1}


def test_deadline_is_reported(bench: Bench) -> None:
    async def run_late() -> list[Any]:
        async with bench.generate(bench.request(30)) as generation:
            bench.engine.gate.release()
            found = await anext(generation)
            generation.sequences[0].deadline = 0.0
            bench.engine.gate.release()
            async for events in generation:
                found += events
            return found

    *_, (_, last) = run_async(run_late())
    assert last.reason == "deadline" and bench.counted == {"deadline": 1}


def test_failure_is_raised(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(torch_reader, "forward_batch", fail)
    bench.engine.gate.release()
    with pytest.raises(MemoryError, match="no more"):
        run_async(follow(bench.generate()))
    assert bench.counted == {"failed": 1} and not bench.running


def test_full_queue_raises_busy(loaded: LoadedModel) -> None:
    bench = Bench(loaded, max_batch=1, max_waiting=0)

    async def crowd() -> None:
        async with bench.generate():
            with pytest.raises(Busy):
                async with bench.generate():
                    raise AssertionError("it has joined")
            assert len(bench.running) == 1

    run_async(crowd())
    assert bench.counted == {"busy": 1, "cancelled": 1} and not bench.running
    bench.engines.close()


def test_making_room_for_another_client_is_being_busy(bench: Bench) -> None:
    async def crowd() -> None:
        async with bench.generate() as first, bench.generate() as second:
            bench.engine.news.wait_until(lambda: bench.engine.active)
            async with bench.generate(client="another") as other:
                bench.engine.gate.release(9)
                with pytest.raises(Busy):
                    async for _ in second:
                        pass
                for generation in (first, other):
                    async for _ in generation:
                        pass

    run_async(crowd())
    assert bench.counted == {"ok": 2, "busy": 1}


def test_closed_engine_raises_closed(bench: Bench) -> None:
    bench.engines.close()
    with pytest.raises(Closed):
        run_async(follow(bench.generate()))
    assert bench.counted == {"refused": 1} and not bench.running


@pytest.mark.parametrize("pace", [3600.0, lambda generation: 3600.0 * len(generation.sequences[0].written)])
def test_events_come_together_at_a_pace_and_the_end_at_once(bench: Bench, pace: Pace) -> None:
    async def look() -> list[int]:
        bench.engine.gate.release()
        sizes = []
        async with bench.generate(bench.request(6), pace=pace) as generation:
            async for events in generation:
                sizes.append(len(events))
                bench.engine.gate.release(5)
        return sizes

    assert run_async(look()) == [1, 5]


def test_the_time_of_each_token_is_measured_once(bench: Bench) -> None:
    bench.engine.gate.release(3)
    run_async(follow(bench.generate()))
    count = bench.metrics.registry.get_sample_value
    assert count("headscope_first_token_seconds_count", {"model": "tiny"}) == 1
    assert count("headscope_next_token_seconds_count", {"model": "tiny"}) == 2


def test_events_before_a_failure_are_delivered(bench: Bench) -> None:
    async def follow_to_the_failure() -> list[int]:
        found: list[int] = []
        with pytest.raises(FloatingPointError):
            async with bench.generate() as generation:
                for event in (Step("a", 1, 0.0), Step("b", 2, 0.0), Failure(FloatingPointError())):
                    generation.push(0, event)
                async for events in generation:
                    found += [event.token_id for _, event in events if isinstance(event, Step)]
        return found

    assert run_async(follow_to_the_failure()) == [1, 2] and bench.counted == {"failed": 1}


def test_memory_is_trimmed_after_a_faster_reader_was_made(loaded: LoadedModel) -> None:
    tidied = threading.Event()
    engines = Engines(Limits(), Metrics(), make_reader=lambda *_: None)
    engines.tidy_up = tidied.set
    try:
        engines.prepare([loaded])
        assert tidied.wait(30)
    finally:
        engines.close(0)


@pytest.mark.parametrize(
    ("name", "numbers", "expected"),
    [
        ("a", 1_000_000, 100),  # of 400 MB: keys and values of a text take 4 MB
        ("a", 100, 128),
        ("a", 50_000_000, 16),
        ("your-gpt-1", 1_000_000, 16),
    ],
)
def test_small_models_write_more_texts_at_once(name: str, numbers: int, expected: int) -> None:
    config = SimpleNamespace(n_layer=5, n_kv_head=2, head_dim=5, context_length=numbers // 100)
    model: Any = SimpleNamespace(name=name, config=config, device=torch.device("cpu"))
    assert best_batch(model) == expected
    model.device = torch.device("cuda")
    assert best_batch(model) == 16


def test_the_operator_decides_how_many_texts_are_written_at_once(loaded: LoadedModel) -> None:
    engines = Engines(Limits(max_batch=3), Metrics())
    try:
        assert engines.engine_for(loaded).max_batch == 3
    finally:
        engines.close(0)


def test_recorded_rows_count_as_taken_once_the_next_events_are_asked_for(loaded: LoadedModel) -> None:
    bench = Bench(loaded, max_batch=2)

    async def steps() -> None:
        request = loaded.request("ab", 3, seed=1, record=True)
        async with bench.generate(request) as generation:
            [sequence] = generation.sequences
            n_taken = 0
            async for events in generation:
                assert sequence.n_taken_bytes == n_taken
                n_taken += sum(recorded_bytes(event) for _, event in events)
        n_heads, n_logits = loaded.config.n_layer * loaded.config.n_head, 3 * loaded.config.vocab_size
        assert n_taken == sequence.n_reported_bytes == 4 * (n_heads * (2 * 2 + 2 + 3 + 4) + n_logits)

    bench.engine.gate.release(9)
    run_async(steps())
    bench.engines.close()
