"""The engine writes the same text for each request, regardless of which others join and leave."""

from threading import Thread
from typing import Any

import pytest
import torch

from helpers.engine import SETTINGS, Asked, MakeEngine, alone, finish, ids_of, reader_for
from helpers.models import max_difference, prompt_ids, scripted_model, tiny_bpe, tiny_model
from model import LoadedModel
from model.sampling import random_generator
from model.serving import engine as engine_module
from model.serving import sequence as sequence_module
from model.serving.engine import Engine
from model.serving.sequence import ContextShift
from model.serving.torch_reader import TorchReader, neighbours


@pytest.fixture(params=["torch", "compiled"])
def new_engine(request: pytest.FixtureRequest) -> MakeEngine:
    """Makes an engine that reads with torch, or with compiled loops."""

    def make(loaded: LoadedModel, max_batch: int = 16) -> Engine:
        return Engine(loaded, max_batch=max_batch, reader=reader_for(loaded, request.param, max_batch))

    return make


@pytest.mark.parametrize("neighbours_too", [0, 1, 16])
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_same_seed_writes_the_same_text_in_any_batch(
    neighbours_too: int, settings: dict[str, Any], tiny: LoadedModel, new_engine: MakeEngine
) -> None:
    engine = new_engine(tiny, max_batch=17)
    asked = Asked(tiny, prompt_ids(5), 40, seed=3, settings=settings)
    others = [Asked(tiny, prompt_ids(1 + 2 * i, seed=i), 30 - i, seed=i) for i in range(neighbours_too)]
    engine.submit(*[other.sequence for other in others[: len(others) // 2]])
    for _ in range(3):
        engine.step()
    engine.submit(asked.sequence)
    engine.step()
    engine.submit(*[other.sequence for other in others[len(others) // 2 :]])
    finish(engine)
    expected = alone(tiny, prompt_ids(5), 40, seed=3, **settings)
    assert asked.ids == ids_of(expected)
    assert asked.text == "".join(step.text for step in expected)
    assert [step.finish_reason for step in asked.steps] == [None] * 39 + ["length"]
    assert max(abs(a.logprob - b.logprob) for a, b in zip(asked.steps, expected, strict=True)) < 1e-5
    for i, other in enumerate(others):
        assert other.ids == ids_of(alone(tiny, prompt_ids(1 + 2 * i, seed=i), 30 - i, seed=i))


def test_a_prompt_is_read_before_others_write_on_but_only_every_other_time(
    tiny: LoadedModel, new_engine: MakeEngine
) -> None:
    engine = new_engine(tiny)
    writers = [Asked(tiny, prompt_ids(4), 40, seed=i) for i in range(5)]
    engine.submit(*[asked.sequence for asked in writers])
    engine.step()
    n_written = [1]
    for i in range(8):  # one more comes before every step
        new = Asked(tiny, prompt_ids(6, seed=i), 1, seed=i)
        engine.submit(new.sequence)
        engine.step()
        assert len(new.steps) == 1
        n_written.append(len(writers[0].steps))
    assert n_written == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    finish(engine)
    assert [asked.ids for asked in writers] == [
        ids_of(alone(tiny, prompt_ids(4), 40, seed=i)) for i in range(len(writers))
    ]


@pytest.mark.parametrize("budget", [1, 3, 7, 64])
def test_prompts_are_read_in_pieces(
    budget: int, tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch, new_engine: MakeEngine
) -> None:
    """No step reads more than its budget of prompts, and those that write get a token at every step."""
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", budget)
    engine = new_engine(tiny)
    writer = Asked(tiny, prompt_ids(4), 50, seed=1)
    engine.submit(writer.sequence)
    engine.step()
    long = [Asked(tiny, prompt_ids(20 + i, seed=i), 10, seed=i, record=i == 1, prompt_logprobs=True) for i in range(3)]
    engine.submit(*[asked.sequence for asked in long])
    while engine.active:
        before, written = engine.tokens_read, len(writer.steps)
        n_writing = sum(sequence.n_unread == 1 for sequence in engine.active)
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


def test_recorded_attention_equals_the_trace(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch, new_engine: MakeEngine
) -> None:
    monkeypatch.setattr(engine_module, "PREFILL_TOKENS", 5)
    engine = new_engine(tiny)
    engine.submit(Asked(tiny, "A", 40).sequence)
    engine.step()
    asked = [Asked(tiny, prompt_ids(9 + i, seed=i), 12, seed=i, record=i != 1) for i in range(3)]
    engine.submit(*[each.sequence for each in asked])
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


def test_each_has_its_own_head_mask(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    masks = [None, torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 0.5]]), torch.zeros(3, 2)]
    engine = new_engine(tiny)
    asked = [Asked(tiny, "ROMEO:", 20, seed=2, head_mask=mask) for mask in masks]
    engine.submit(*[each.sequence for each in asked])
    finish(engine)
    for each, mask in zip(asked, masks, strict=True):
        assert each.ids == ids_of(alone(tiny, "ROMEO:", 20, seed=2, head_mask=mask))
    assert len({tuple(each.ids) for each in asked}) == 3


def test_stop_strings_and_characters_split_across_tokens(new_engine: MakeEngine) -> None:
    bpe = tiny_bpe(257)  # bytes alone
    script = bpe.encode("a🙂bENDc")
    loaded = scripted_model([0, *script], bpe)
    engine = new_engine(loaded)
    whole = Asked(loaded, [1], len(script), settings={"temperature": 0})
    # A scripted model writes by position, so the first token of the script follows a prompt of two.
    stopped = Asked(loaded, [1, 1], len(script), settings={"temperature": 0}, stop=["END"])
    engine.submit(whole.sequence, stopped.sequence)
    finish(engine)
    assert stopped.text == "a🙂b" and stopped.end == "stop"
    assert "" in [step.text for step in stopped.steps]  # inside the emoji, and where END might begin
    assert whole.ids == [0, *script][: len(script)]


def test_a_full_context_shifts_if_requested(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    engine = new_engine(tiny)
    asked = Asked(tiny, prompt_ids(60), 100, seed=5, context_shift=True, record=True)
    engine.submit(asked.sequence)
    finish(engine)
    assert len(asked.ids) == 100 and asked.end == "length"
    text = prompt_ids(60) + asked.ids
    generator = random_generator(5)
    window: list[int] = prompt_ids(60)
    for i, token_id in enumerate(asked.ids):  # each token is drawn behind the window that was to be read
        logits = tiny.trace(window).logits[-1]
        assert Asked(tiny, window, 1).sequence.ids == window
        drawn = torch.softmax(logits.double(), -1).cumsum(-1)
        assert int(torch.searchsorted(drawn, generator.random() * drawn[-1], right=True)) == token_id
        window = [*window, token_id]
        if len(window) > 64:
            window = window[-32:]
        assert window == text[: 60 + i + 1][-len(window) :]
    shifts = [event.ids for event in asked.events if isinstance(event, ContextShift)]
    assert [len(ids) for ids in shifts] == [32, 32, 32] and shifts[0] == text[65 - 32 : 65]
    lengths = [step.attention.shape[-1] for step in asked.steps]
    assert lengths == [*range(60, 65), *range(32, 65), *range(32, 65), *range(32, 61)]
    trace = tiny.trace(shifts[1])
    _, _, part, _ = asked.parts
    assert part.start == 0
    assert max_difference(part.attention, trace.attention) <= 1e-5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_min_new_tokens(temperature: float, tiny: LoadedModel, new_engine: MakeEngine) -> None:
    settings = {"temperature": temperature}
    free = ids_of(alone(tiny, prompt_ids(4), 12, seed=1, **settings))
    engine = new_engine(tiny)
    asked = Asked(
        tiny, prompt_ids(4), 12, seed=1, settings=settings, stop_token_ids=[free[2]], min_new_tokens=12, record=False
    )
    engine.submit(asked.sequence)
    finish(engine)
    assert len(asked.ids) == 12 and free[2] not in asked.ids[:11]


def test_top_logprobs_equal_the_models(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    engine = new_engine(tiny)
    asked = Asked(tiny, prompt_ids(6), 4, n_top_logprobs=3, prompt_logprobs=True)
    engine.submit(asked.sequence)
    finish(engine)
    logprobs = tiny.trace(prompt_ids(6) + asked.ids[:-1]).logits.log_softmax(-1)
    found = [top for part in asked.parts for top in part.top_logprobs] + [step.top_logprobs for step in asked.steps]
    assert len(found) == 9
    for row, top in zip(logprobs, found, strict=True):
        values, ids = row.topk(3)
        assert list(top) == ids.tolist()
        assert max_difference(torch.tensor(list(top.values())), values) < 1e-5


def test_texts_of_similar_length_attend_together() -> None:
    """Side by side in the cache, recorded or not, and of lengths that are not far apart."""
    texts = [(0, 10, False), (1, 12, False), (3, 12, False), (4, 12, True), (5, 70, True), (6, 500, True)]
    assert neighbours(texts) == [[0, 1], [2], [3, 4], [5]]
    assert neighbours([]) == []


def test_a_long_recorded_prompt_is_read_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the size that fits a step: the first rows see few keys, so more of them are read in one pass."""
    loaded, ids = tiny_model(), prompt_ids(30)
    config = loaded.config
    most = 4 * config.n_layer * config.n_head * 30 * 7  # seven of the last rows
    monkeypatch.setattr(sequence_module, "MAX_STEP_BYTES", most)
    asked, unrecorded = Asked(loaded, ids, 2, record=True), Asked(loaded, ids, 2)
    engine = Engine(loaded)
    engine.submit(asked.sequence, unrecorded.sequence)
    finish(engine)
    assert [part.start for part in asked.parts] == [0, 8, 16, 24]
    assert asked.ids == unrecorded.ids == ids_of(alone(loaded, ids, 2))
    expected = loaded.trace(ids).attention
    for part in asked.parts:
        assert part.attention is not None and part.attention.nbytes <= most
        rows, end = part.attention.shape[2:]
        torch.testing.assert_close(part.attention, expected[:, :, part.start : end, :end], atol=1e-5, rtol=0)
        assert part.start + rows == end


def test_a_text_whose_recorded_rows_nobody_takes_stalls_while_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = tiny_model()
    monkeypatch.setattr(sequence_module, "MAX_UNTAKEN_BYTES", 0)
    stalled, other = Asked(loaded, "ab", 3, record=True), Asked(loaded, "ab", 5)
    engine = Engine(loaded)
    engine.submit(stalled.sequence, other.sequence)
    stalled.sequence.count_reported(1)
    while len(other.steps) < 5:
        engine.step()
    assert not stalled.events
    engine.step()  # all texts of the batch are stalled
    stalled.sequence.count_taken(1)
    finish(engine)
    assert stalled.ids == ids_of(alone(loaded, "ab", 3))


def test_a_cache_grows_with_the_longest_text(tiny: LoadedModel) -> None:
    """Copied slots, recorded texts and longer prompts keep what was read before it grew."""
    reader = TorchReader(tiny.gpt, 4, length=4)
    engine, lengths = Engine(tiny, max_batch=4, reader=reader), [reader.cache.keys.shape[3]]
    asked = [Asked(tiny, prompt_ids(3), 20, seed=0)]
    engine.submit(asked[0].sequence)
    for n_tokens in (3, 9, 30):
        engine.step()
        asked.append(Asked(tiny, prompt_ids(n_tokens), 25, seed=n_tokens, record=n_tokens == 9))
        engine.submit(asked[-1].sequence)
        engine.step()
        lengths.append(reader.cache.keys.shape[3])
    finish(engine)
    assert lengths[0] < lengths[-1] < 64 and {4, 8, 16, 32} >= set(lengths)
    assert reader.cache.keys.shape[3] == reader.cache.values.shape[3] == 64
    for each, (n_tokens, n_new, seed) in zip(asked, [(3, 20, 0), (3, 25, 3), (9, 25, 9), (30, 25, 30)], strict=True):
        assert each.ids == ids_of(alone(tiny, prompt_ids(n_tokens), n_new, seed=seed))


def test_on_a_cpu_a_cache_is_as_long_as_the_context_from_the_start(tiny: LoadedModel) -> None:
    assert TorchReader(tiny.gpt, 2).cache.keys.shape[3] == 64


def test_a_faster_reader_is_not_overwritten_by_the_default_of_a_text_just_then(
    tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, faster, default = Engine(tiny, max_batch=2), TorchReader(tiny.gpt, 2), TorchReader(tiny.gpt, 2)
    arriving = Thread(target=engine.use, args=(faster,))

    def make(*_: Any) -> TorchReader:
        arriving.start()
        arriving.join(0.1)  # as far as it can get: the end of the text's admission is what it must wait for
        return default

    monkeypatch.setattr(engine_module, "TorchReader", make)
    engine.submit(Asked(tiny, prompt_ids(3), 2, seed=0).sequence)
    engine.step()
    arriving.join()
    assert engine.reader is faster
