"""The engine writes for everyone what each would write alone, whoever comes and goes."""

import time
from typing import Any

import pytest
import torch
from helpers import max_difference, prompt_ids, scripted_model, tiny_bpe, tiny_model

from model import LoadedModel, Step
from model import engine as engine_module
from model.batch import neighbours
from model.engine import Busy, Closed, Engine
from model.sampling import SamplingSettings
from model.ticket import Cut, Event, Failure, PromptPart, Shift, Ticket

SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 10, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 1.3, "presence_penalty": 0.7, "frequency_penalty": 0.4, "repetition_penalty": 1.4},
    {"temperature": 0.0, "frequency_penalty": 2.0, "logit_bias": {5: 4.0, 7: -100.0}},
]


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model(n_layer=3, context_length=64)


class Asked:
    """A request, and all that was reported of it."""

    def __init__(
        self,
        gpt: LoadedModel,
        prompt: Any,
        n: int,
        *,
        seed: int = 0,
        stop: Any = (),
        settings: Any = None,
        **options: Any,
    ) -> None:
        self.events: list[Event] = []
        settings = SamplingSettings(**({"temperature": 1.0} if settings is None else settings))
        shift = options.get("context_shift", False)
        draft = gpt.draft(prompt, n, settings, seed=seed, stop=stop, context_shift=shift)
        self.ticket = Ticket(draft, self.events.append, **options)

    @property
    def steps(self) -> list[Step]:
        return [event for event in self.events if isinstance(event, Step)]

    @property
    def parts(self) -> list[PromptPart]:
        return [event for event in self.events if isinstance(event, PromptPart)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Step | Cut))

    @property
    def ids(self) -> list[int]:
        return [step.token_id for step in self.steps]

    @property
    def end(self) -> str | None:
        last = self.events[-1]
        return last.finish_reason if isinstance(last, Step) else last.reason if isinstance(last, Cut) else None


def finish(engine: Engine) -> None:
    while engine.at_work or engine.line:
        engine.step()


def alone(gpt: LoadedModel, prompt: Any, n: int, seed: int = 0, **settings: Any) -> list[Step]:
    return list(gpt.generate(prompt, n, seed=seed, **settings))


def ids_of(steps: list[Step]) -> list[int]:
    return [step.token_id for step in steps]


@pytest.mark.parametrize("neighbours_too", [0, 1, 16])
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_same_seed_writes_the_same_text_whatever_else_runs(
    neighbours_too: int, settings: dict[str, Any], tiny: LoadedModel
) -> None:
    engine = Engine(tiny, max_batch=17)
    asked = Asked(tiny, prompt_ids(5), 40, seed=3, settings=settings)
    others = [Asked(tiny, prompt_ids(1 + 2 * i, seed=i), 30 - i, seed=i) for i in range(neighbours_too)]
    engine.submit(*[other.ticket for other in others[: len(others) // 2]])
    for _ in range(3):
        engine.step()
    engine.submit(asked.ticket)
    engine.step()
    engine.submit(*[other.ticket for other in others[len(others) // 2 :]])
    finish(engine)
    expected = alone(tiny, prompt_ids(5), 40, seed=3, **settings)
    assert asked.ids == ids_of(expected)
    assert asked.text == "".join(step.text for step in expected)
    assert [step.finish_reason for step in asked.steps] == [None] * 39 + ["length"]
    assert max(abs(a.logprob - b.logprob) for a, b in zip(asked.steps, expected, strict=True)) < 1e-5
    for i, other in enumerate(others):
        assert other.ids == ids_of(alone(tiny, prompt_ids(1 + 2 * i, seed=i), 30 - i, seed=i))


@pytest.mark.parametrize("budget", [1, 3, 7, 64])
def test_prompts_are_read_in_pieces(budget: int, tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step reads more than its budget of prompts, and those that write get a token at every step."""
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", budget)
    engine = Engine(tiny)
    writer = Asked(tiny, prompt_ids(4), 50, seed=1)
    engine.submit(writer.ticket)
    engine.step()
    long = [Asked(tiny, prompt_ids(20 + i, seed=i), 10, seed=i, record=i == 1, read_prompt=True) for i in range(3)]
    engine.submit(*[asked.ticket for asked in long])
    while engine.at_work:
        before, written = engine.tokens_read, len(writer.steps)
        n_writing = sum(ticket.n_todo == 1 for ticket in engine.at_work)
        engine.step()
        if written < 50:
            assert engine.tokens_read - before <= n_writing + budget
            assert len(writer.steps) == written + 1
    assert writer.ids == ids_of(alone(tiny, prompt_ids(4), 50, seed=1))
    for i, asked in enumerate(long):
        prompt = prompt_ids(20 + i, seed=i)
        assert asked.ids == ids_of(alone(tiny, prompt, 10, seed=i))
        logits = tiny.trace(prompt).logits.log_softmax(-1)
        expected = logits[:-1].gather(1, torch.tensor(prompt[1:])[:, None])[:, 0]
        found = torch.tensor([logprob for part in asked.parts for logprob in part.logprobs])
        assert max_difference(found, expected) < 1e-5
        assert [part.start for part in asked.parts] == sorted({part.start for part in asked.parts})


def test_what_is_recorded_is_the_trace(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", 5)
    engine = Engine(tiny)
    engine.submit(Asked(tiny, "A", 40).ticket)
    engine.step()
    asked = [Asked(tiny, prompt_ids(9 + i, seed=i), 12, seed=i, record=i != 1) for i in range(3)]
    engine.submit(*[each.ticket for each in asked])
    finish(engine)
    assert all(step.attention is None and step.logits is None for step in asked[1].steps)
    for i in (0, 2):
        prompt = prompt_ids(9 + i, seed=i)
        trace = tiny.trace(prompt + asked[i].ids[:-1])
        for part in asked[i].parts:
            n = part.attention.shape[2]
            rows = slice(part.start, part.start + n)
            assert max_difference(part.attention, trace.attention[:, :, rows, : part.start + n]) <= 1e-5
        assert sum(part.attention.shape[2] for part in asked[i].parts) == len(prompt)
        for n, step in enumerate(asked[i].steps):
            position = len(prompt) - 1 + n
            assert max_difference(step.attention, trace.attention[:, :, position, : position + 1]) <= 1e-5
            assert max_difference(step.logits, trace.logits[position]) <= 1e-4


def test_each_has_its_own_head_mask(tiny: LoadedModel) -> None:
    masks = [None, torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 0.5]]), torch.zeros(3, 2)]
    engine = Engine(tiny)
    asked = [Asked(tiny, "ROMEO:", 20, seed=2, head_mask=mask) for mask in masks]
    engine.submit(*[each.ticket for each in asked])
    finish(engine)
    for each, mask in zip(asked, masks, strict=True):
        assert each.ids == ids_of(alone(tiny, "ROMEO:", 20, seed=2, head_mask=mask))
    assert len({tuple(each.ids) for each in asked}) == 3


def test_stop_strings_and_characters_split_across_tokens() -> None:
    bpe = tiny_bpe(257)  # bytes alone
    script = bpe.encode("a🙂bENDc")
    gpt = scripted_model([0, *script], bpe)
    engine = Engine(gpt)
    whole = Asked(gpt, [1], len(script), settings={"temperature": 0})
    # A scripted model writes by position, so the first token of the script follows a prompt of two.
    stopped = Asked(gpt, [1, 1], len(script), settings={"temperature": 0}, stop=["END"])
    engine.submit(whole.ticket, stopped.ticket)
    finish(engine)
    assert stopped.text == "a🙂b" and stopped.end == "stop"
    assert "" in [step.text for step in stopped.steps]  # inside the emoji, and where END might begin
    assert whole.ids == [0, *script][: len(script)]


def test_cancelling_frees_the_place_at_the_next_step(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=2)
    asked = [Asked(tiny, "A", 30, seed=i) for i in range(3)]
    engine.submit(*[each.ticket for each in asked])
    for _ in range(4):
        engine.step()
    assert [len(each.steps) for each in asked] == [4, 4, 0]
    asked[0].ticket.cancel()
    engine.step()
    assert asked[0].end == "cancelled" and len(asked[0].steps) == 4
    assert asked[2].ticket.slot == 0 and len(asked[2].steps) == 1
    asked[1].ticket.cancel()
    asked[2].ticket.cancel()
    engine.step()
    assert not engine.at_work


def test_one_that_waits_can_be_cancelled(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=1)
    first, waiting = Asked(tiny, "A", 5), Asked(tiny, "B", 5)
    engine.submit(first.ticket, waiting.ticket)
    engine.step()
    waiting.ticket.finish()
    engine.step()
    assert waiting.events and waiting.end == "cancelled" and not engine.line
    finish(engine)
    assert len(first.steps) == 5


def test_finishing_early_takes_one_token_more(tiny: LoadedModel) -> None:
    """So that the last token that counts was read, and has its row."""
    engine = Engine(tiny)
    asked = Asked(tiny, "A", 30, record=True)
    engine.submit(asked.ticket)
    for _ in range(3):
        engine.step()
    asked.ticket.finish()
    finish(engine)
    assert len(asked.steps) == 4 and asked.end == "length"


def test_a_deadline_ends_where_it_is(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=1)
    late = Asked(tiny, "A", 30, deadline=time.monotonic() + 3600)
    waiting = Asked(tiny, "B", 30, deadline=time.monotonic() - 1)
    engine.submit(late.ticket, waiting.ticket)
    for _ in range(5):
        engine.step()
    assert waiting.end == "deadline" and not waiting.steps
    late.ticket.deadline = time.monotonic() - 1
    engine.step()
    assert late.end == "deadline" and len(late.steps) == 5 and not engine.at_work


def test_text_held_back_is_given_at_a_deadline() -> None:
    bpe = tiny_bpe(257)
    gpt = scripted_model(bpe.encode("abXYZ"), bpe)
    engine = Engine(gpt)
    asked = Asked(gpt, [0], 5, settings={"temperature": 0}, stop=["XYZ!"])
    engine.submit(asked.ticket)
    for _ in range(4):
        engine.step()
    assert asked.text == "ab"
    asked.ticket.deadline = 0
    engine.step()
    assert asked.text == "abXY" and asked.end == "deadline"


def test_the_line_is_bounded_and_all_join_or_none(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=2, max_waiting=3)
    asked = [Asked(tiny, "A", 5) for _ in range(6)]
    engine.submit(*[each.ticket for each in asked[:4]])
    with pytest.raises(Busy):
        engine.submit(asked[4].ticket, asked[5].ticket)
    assert len(engine.line) == 4
    engine.submit(asked[4].ticket)
    with pytest.raises(Busy):
        engine.submit(asked[5].ticket)
    engine.step()
    with pytest.raises(Busy):
        engine.submit(asked[5].ticket)
    finish(engine)
    engine.submit(asked[5].ticket)
    finish(engine)
    assert all(len(each.steps) == 5 for each in asked)


def test_a_hundred_requests_of_one_client_do_not_keep_another_waiting(tiny: LoadedModel) -> None:
    engine = Engine(tiny, max_batch=4, max_waiting=200)
    many = [Asked(tiny, "A", 50, seed=i, client="many") for i in range(100)]
    engine.submit(*[each.ticket for each in many])
    for _ in range(10):
        engine.step()
    one = Asked(tiny, "B", 20, seed=7, client="one")
    engine.submit(one.ticket)
    for _ in range(20):
        engine.step()
    assert one.end == "length"
    finish(engine)
    for i, each in enumerate(many):  # the one that made room has written the same as alone
        assert each.ids == ids_of(alone(tiny, "A", 50, seed=i))
    assert one.ids == ids_of(alone(tiny, "B", 20, seed=7))


def test_one_that_made_room_reports_nothing_twice(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", 4)
    monkeypatch.setattr(engine_module, "PREFILL_ALONE", 4)
    engine = Engine(tiny, max_batch=2)
    prompt = prompt_ids(10)
    for n_steps in (1, 2, 5, 8):  # while it reads its prompt, and while it writes
        first = [Asked(tiny, prompt, 12, seed=i, client="a", record=True, read_prompt=True) for i in range(2)]
        engine.submit(*[each.ticket for each in first])
        for _ in range(n_steps):
            engine.step()
        engine.submit(Asked(tiny, "B", 3, client="b").ticket)
        finish(engine)
        for i, each in enumerate(first):
            assert each.ids == ids_of(alone(tiny, prompt, 12, seed=i))
            assert sum(part.attention.shape[2] for part in each.parts) == 10
            assert sum(len(part.logprobs) for part in each.parts) == 9
            assert [step.attention.shape[-1] for step in each.steps] == list(range(10, 22))


def test_a_full_context_shifts_where_that_is_asked_for(tiny: LoadedModel) -> None:
    engine = Engine(tiny)
    asked = Asked(tiny, prompt_ids(60), 100, seed=5, context_shift=True, record=True)
    engine.submit(asked.ticket)
    finish(engine)
    assert len(asked.ids) == 100 and asked.end == "length"
    text = prompt_ids(60) + asked.ids
    generator = tiny.draft(prompt_ids(60), 5, SamplingSettings(), seed=5).generator
    window: list[int] = prompt_ids(60)
    for i, token_id in enumerate(asked.ids):  # each token is drawn behind the window that was to be read
        logits = tiny.trace(window).logits[-1]
        assert Asked(tiny, window, 1).ticket.draft.prompt == window
        drawn = torch.softmax(logits.double(), -1).cumsum(-1)
        assert int(torch.searchsorted(drawn, generator.random() * drawn[-1], right=True)) == token_id
        window = window + [token_id]
        if len(window) > 64:
            window = window[-32:]
        assert window == text[: 60 + i + 1][-len(window) :]
    shifts = [event.ids for event in asked.events if isinstance(event, Shift)]
    assert [len(ids) for ids in shifts] == [32, 32, 32] and shifts[0] == text[65 - 32 : 65]
    lengths = [step.attention.shape[-1] for step in asked.steps]
    assert lengths == [*range(60, 65), *range(32, 65), *range(32, 65), *range(32, 61)]
    trace = tiny.trace(shifts[1])
    _, _, part, _ = asked.parts
    assert part.start == 0
    assert max_difference(part.attention, trace.attention) <= 1e-5


def test_a_failing_step_fails_its_requests_and_the_engine_goes_on(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(tiny, max_batch=2)
    asked = [Asked(tiny, "A", 5, seed=i) for i in range(3)]
    engine.submit(*[each.ticket for each in asked])
    engine.step()
    with monkeypatch.context() as broken:
        broken.setattr(engine_module, "forward_batch", lambda *_: (_ for _ in ()).throw(MemoryError("no more")))
        engine.step()
    for each in asked[:2]:
        assert isinstance(each.events[-1], Failure) and "no more" in str(each.events[-1].error)
    finish(engine)
    assert asked[2].ids == ids_of(alone(tiny, "A", 5, seed=2))


def test_nan_fails_its_own_request_and_leaves_nothing_in_its_place() -> None:
    gpt = tiny_model(context_length=32)
    gpt.gpt.wte.weight[9] = torch.nan
    engine = Engine(gpt, max_batch=2)
    bad = Asked(gpt, [1, 9, 2], 5)
    engine.submit(bad.ticket)
    engine.step()
    assert isinstance(bad.events[-1], Failure) and isinstance(bad.events[-1].error, FloatingPointError)
    assert not engine.at_work
    assert engine.cache.keys.isfinite().all() and engine.cache.values.isfinite().all()


def test_a_consumer_that_raises_loses_its_own_request_alone(tiny: LoadedModel) -> None:
    engine = Engine(tiny)
    good, bad = Asked(tiny, "A", 5), Asked(tiny, "B", 5)

    def refuse(event: Event) -> None:
        raise OSError("the reader is gone")

    bad.ticket.sink = refuse
    engine.submit(good.ticket, bad.ticket)
    engine.step()
    engine.step()
    assert engine.at_work == [good.ticket]
    finish(engine)
    assert len(good.steps) == 5


def test_a_closed_engine_takes_nothing_and_ends_what_runs(tiny: LoadedModel) -> None:
    engine = Engine(tiny)
    quick, slow = Asked(tiny, "A", 3), Asked(tiny, "B", 60)
    engine.submit(quick.ticket, slow.ticket)
    engine.step()
    engine.close(grace=3600)
    with pytest.raises(Closed):
        engine.submit(Asked(tiny, "C", 3).ticket)
    for _ in range(3):
        engine.step()
    assert quick.end == "length" and slow.end is None
    engine.close()
    engine.step()
    assert slow.end == "deadline"
    engine.run()  # nothing is left, so it returns


def test_top_logprobs(tiny: LoadedModel) -> None:
    engine = Engine(tiny)
    asked = Asked(tiny, prompt_ids(6), 4, n_top=3, read_prompt=True)
    engine.submit(asked.ticket)
    finish(engine)
    logprobs = tiny.trace(prompt_ids(6) + asked.ids[:-1]).logits.log_softmax(-1)
    found = [top for part in asked.parts for top in part.top_logprobs] + [step.top_logprobs for step in asked.steps]
    assert len(found) == 9
    for row, top in zip(logprobs, found, strict=True):
        values, ids = row.topk(3)
        assert list(top) == ids.tolist()
        assert max_difference(torch.tensor(list(top.values())), values) < 1e-5


def test_who_attends_together() -> None:
    """Side by side in the cache, recorded or not, and of lengths that are not far apart."""
    places = [(0, 10, False), (1, 12, False), (3, 12, False), (4, 12, True), (5, 70, True), (6, 500, True)]
    assert neighbours(places) == [[0, 1], [2], [3, 4], [5]]
    assert neighbours([]) == []
