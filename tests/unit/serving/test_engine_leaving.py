"""How requests end, wait and make room in the engine, and what happens to the others."""

import time

import pytest
import torch

from helpers.engine import Asked, alone, finish, ids_of
from helpers.models import prompt_ids, scripted_model, tiny_bpe, tiny_model
from model import LoadedModel
from model.errors import Busy, Closed
from model.serving import engine as engine_module
from model.serving import torch_reader
from model.serving.engine import Engine
from model.serving.sequence import Event, Failure, TextSequence
from model.serving.torch_reader import TorchReader


def test_cancelling_frees_the_place_at_the_next_step(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=2)
    asked = [Asked(tiny, "A", 30, seed=i) for i in range(3)]
    engine.submit(*[each.sequence for each in asked])
    for _ in range(4):
        engine.step()
    assert [len(each.steps) for each in asked] == [4, 4, 0]
    asked[0].sequence.cancel()
    engine.step()
    assert asked[0].end == "cancelled" and len(asked[0].steps) == 4
    assert asked[2].sequence.slot == 0 and len(asked[2].steps) == 1
    asked[1].sequence.cancel()
    asked[2].sequence.cancel()
    engine.step()
    assert not engine.active


def test_waiting_text_can_be_cancelled(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=1)
    first, waiting = Asked(tiny, "A", 5), Asked(tiny, "B", 5)
    engine.submit(first.sequence, waiting.sequence)
    engine.step()
    waiting.sequence.stop_soon()
    engine.step()
    assert waiting.events and waiting.end == "cancelled" and not engine.queue
    finish(engine)
    assert len(first.steps) == 5


def test_finishing_early_takes_one_token_more(tiny: LoadedModel) -> None:
    """The last token that counts has been read, and so has its row."""
    engine = Engine(tiny)
    asked = Asked(tiny, "A", 30, record=True)
    engine.submit(asked.sequence)
    for _ in range(3):
        engine.step()
    asked.sequence.stop_soon()
    finish(engine)
    assert len(asked.steps) == 4 and asked.end == "length"


def test_deadline_cuts_the_text_off(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=1)
    late = Asked(tiny, "A", 30, deadline=time.monotonic() + 3600)
    waiting = Asked(tiny, "B", 30, deadline=time.monotonic() - 1)
    engine.submit(late.sequence, waiting.sequence)
    for _ in range(5):
        engine.step()
    assert waiting.end == "deadline" and not waiting.steps
    late.sequence.deadline = time.monotonic() - 1
    engine.step()
    assert late.end == "deadline" and len(late.steps) == 5 and not engine.active


def test_text_held_back_is_given_at_a_deadline() -> None:
    bpe = tiny_bpe(257)
    loaded = scripted_model(bpe.encode("abXYZ"), bpe)
    engine = Engine(loaded)
    asked = Asked(loaded, [0], 5, settings={"temperature": 0}, stop=["XYZ!"])
    engine.submit(asked.sequence)
    for _ in range(4):
        engine.step()
    assert asked.text == "ab"
    asked.sequence.deadline = 0
    engine.step()
    assert asked.text == "abXY" and asked.end == "deadline"


def test_queue_is_bounded_and_calls_join_as_a_whole(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=2, max_waiting=3)
    asked = [Asked(tiny, "A", 5) for _ in range(6)]
    engine.submit(*[each.sequence for each in asked[:4]])
    with pytest.raises(Busy):
        engine.submit(asked[4].sequence, asked[5].sequence)
    assert len(engine.queue) == 4
    engine.submit(asked[4].sequence)
    with pytest.raises(Busy):
        engine.submit(asked[5].sequence)
    engine.step()
    with pytest.raises(Busy):
        engine.submit(asked[5].sequence)
    finish(engine)
    engine.submit(asked[5].sequence)
    finish(engine)
    assert all(len(each.steps) == 5 for each in asked)


def test_full_queue_refuses_texts_of_the_busiest_client(tiny: LoadedModel) -> None:
    """A client with fewer texts displaces the newest text of the client with the most, never one of its own."""
    engine = Engine(tiny)  # with its own limits
    many = [Asked(tiny, "A", 3, seed=i, client="many") for i in range(100)]
    room = engine.max_batch + engine.max_waiting
    for each in many[:room]:
        engine.submit(each.sequence)
    with pytest.raises(Busy):
        engine.submit(many[room].sequence)
    one = Asked(tiny, "B", 3, seed=7, client="one")
    engine.submit(one.sequence)
    engine.step()
    (refused,) = many[room - 1].events
    assert isinstance(refused, Failure) and isinstance(refused.error, Busy)
    finish(engine)
    assert len(one.steps) == 3 and all(len(each.steps) == 3 for each in many[: room - 1])


def test_short_prompts_do_not_wait_for_the_long_ones_of_another_client(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", 8)
    engine = Engine(tiny)
    engine.submit(Asked(tiny, "A", 60, client="writer").sequence)
    engine.step()
    engine.submit(*[Asked(tiny, prompt_ids(60, seed=i), 3, client="many").sequence for i in range(8)])
    engine.step()
    one = Asked(tiny, prompt_ids(5), 3, client="one")
    engine.submit(one.sequence)
    engine.step()
    assert len(one.steps) == 1


def test_an_abandoned_prompt_leaves_nothing_in_its_slot(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may contain NaN that no request has met yet."""
    monkeypatch.setattr(engine_module, "MAX_PROMPT_TOKENS", 8)
    engine = Engine(tiny, max_batch=1)
    first = Asked(tiny, prompt_ids(30), 3)
    engine.submit(first.sequence)
    engine.step()
    assert isinstance(engine.reader, TorchReader)
    engine.reader.cache.keys[:, 0, :, :8] = torch.nan
    first.sequence.cancel()
    after = Asked(tiny, "B", 5, seed=3)
    engine.submit(after.sequence)
    finish(engine)
    assert after.ids == ids_of(alone(tiny, "B", 5, seed=3))


def test_context_of_one_token_shifts() -> None:
    loaded = tiny_model(context_length=1)
    engine = Engine(loaded)
    asked = Asked(loaded, "A", 5, context_shift=True)
    engine.submit(asked.sequence)
    finish(engine)
    assert len(asked.ids) == 5


@pytest.mark.slow
def test_a_hundred_requests_of_one_client_do_not_keep_another_waiting(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=4, max_waiting=200)
    many = [Asked(tiny, "A", 12, seed=i, client="many") for i in range(100)]
    engine.submit(*[each.sequence for each in many])
    for _ in range(10):
        engine.step()
    one = Asked(tiny, "B", 20, seed=7, client="one")
    engine.submit(one.sequence)
    for _ in range(20):
        engine.step()
    assert one.end == "length"
    finish(engine)
    for i, each in enumerate(many):  # the text that made room is the same as if written alone
        assert each.ids == ids_of(alone(tiny, "A", 12, seed=i))
    assert one.ids == ids_of(alone(tiny, "B", 20, seed=7))


@pytest.mark.parametrize(("seconds_a_step", "is_ahead"), [(0.001, True), (0.1, False)])
def test_a_text_gives_its_slot_to_one_that_has_not_begun_and_if_it_is_ahead_to_one_with_nothing_to_read(
    seconds_a_step: float, is_ahead: bool, tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    engine = Engine(tiny, max_batch=2)
    asked = [Asked(tiny, "AB", 60, seed=i, client=i, record=True) for i in range(5)]
    engine.submit(*[each.sequence for each in asked])
    seen: list[list[int]] = []
    while engine.queue or engine.active:
        engine.step()
        now[0] += seconds_a_step
        seen.append([len(each.steps) for each in asked])
    first_tokens = [next(i for i, counts in enumerate(seen) if counts[n]) for n in range(5)]
    assert max(first_tokens) < 20
    tenth_tokens = [next(i for i, counts in enumerate(seen) if counts[n] >= 10) for n in range(5)]
    assert (max(tenth_tokens) < 120) == is_ahead
    assert engine.tokens_read < 2 * 5 * 62  # few were read again
    for i, each in enumerate(asked):
        assert each.ids == ids_of(alone(tiny, "AB", 60, seed=i))
        assert [step.attention.shape[-1] for step in each.steps] == list(range(2, 62))


def test_one_that_made_room_reports_nothing_twice(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", 4)
    monkeypatch.setattr(engine_module, "MAX_PROMPT_TOKENS", 4)
    engine = Engine(tiny, max_batch=2)
    prompt = prompt_ids(10)
    for n_steps in (1, 2, 5, 8):  # while it reads its prompt, and while it writes
        first = [Asked(tiny, prompt, 12, seed=i, client="a", record=True, prompt_logprobs=True) for i in range(2)]
        engine.submit(*[each.sequence for each in first])
        for _ in range(n_steps):
            engine.step()
        engine.submit(Asked(tiny, "B", 3, client="b").sequence)
        finish(engine)
        for i, each in enumerate(first):
            assert each.ids == ids_of(alone(tiny, prompt, 12, seed=i))
            assert sum(part.attention.shape[2] for part in each.parts) == 10
            assert sum(len(part.logprobs) for part in each.parts) == 9
            assert [step.attention.shape[-1] for step in each.steps] == list(range(10, 22))


def test_a_failing_step_fails_its_requests_and_the_engine_continues(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tiny, max_batch=2)
    asked = [Asked(tiny, "A", 5, seed=i) for i in range(3)]
    engine.submit(*[each.sequence for each in asked])
    engine.step()
    with monkeypatch.context() as broken:
        broken.setattr(torch_reader, "forward_batch", lambda *_: (_ for _ in ()).throw(MemoryError("no more")))
        engine.step()
    for each in asked[:2]:
        assert isinstance(each.events[-1], Failure) and "no more" in str(each.events[-1].error)
    finish(engine)
    assert asked[2].ids == ids_of(alone(tiny, "A", 5, seed=2))


def test_a_fault_outside_the_forward_pass_ends_all_requests_and_the_engine_continues(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tiny, max_batch=1)
    lost = [Asked(tiny, "A", 5), Asked(tiny, "B", 5)]
    engine.submit(*[each.sequence for each in lost])

    def plan(self: Engine) -> list[TextSequence]:
        self.close()  # so that run returns when nothing is left
        raise IndexError("a fault")

    with monkeypatch.context() as broken:
        broken.setattr(Engine, "plan", plan)
        engine.run()
    for each in lost:
        (failure,) = each.events
        assert isinstance(failure, Failure) and str(failure.error) == "a fault"
    engine.closed = False
    asked = Asked(tiny, "A", 5, seed=3)
    engine.submit(asked.sequence)
    engine.close(grace=60)
    engine.run()
    assert asked.ids == ids_of(alone(tiny, "A", 5, seed=3))


def test_nan_fails_only_its_request_and_leaves_nothing_in_its_slot() -> None:
    loaded = tiny_model(context_length=32)
    loaded.gpt.wte.weight[9] = torch.nan
    engine = Engine(loaded, max_batch=2)
    bad = Asked(loaded, [1, 9, 2], 5)
    engine.submit(bad.sequence)
    engine.step()
    assert isinstance(bad.events[-1], Failure) and isinstance(bad.events[-1].error, FloatingPointError)
    assert not engine.active
    assert isinstance(engine.reader, TorchReader)
    cache = engine.reader.cache
    assert cache.keys.isfinite().all() and cache.values.isfinite().all()


def test_a_consumer_that_raises_loses_its_own_request_alone(tiny: LoadedModel) -> None:
    engine = Engine(tiny)
    good, bad = Asked(tiny, "A", 5), Asked(tiny, "B", 5)

    def refuse(event: Event) -> None:
        raise OSError("the reader is gone")

    bad.sequence.listener = refuse
    engine.submit(good.sequence, bad.sequence)
    engine.step()
    engine.step()
    assert engine.active == [good.sequence]
    finish(engine)
    assert len(good.steps) == 5


def test_a_closed_engine_refuses_requests_and_ends_running_ones(tiny: LoadedModel) -> None:
    engine = Engine(tiny)
    quick, slow = Asked(tiny, "A", 3), Asked(tiny, "B", 60)
    engine.submit(quick.sequence, slow.sequence)
    engine.step()
    engine.close(grace=3600)
    with pytest.raises(Closed):
        engine.submit(Asked(tiny, "C", 3).sequence)
    for _ in range(3):
        engine.step()
    assert quick.end == "length" and slow.end is None
    engine.close()
    engine.step()
    assert slow.end == "deadline"
    engine.run()  # nothing is left, so it returns
