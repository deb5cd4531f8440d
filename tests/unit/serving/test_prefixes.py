"""Beginnings that texts have in common are read once, and no text changes by it."""

import random
from typing import Any

import pytest
import torch

from helpers.engine import Asked, MakeEngine, alone, finish, ids_of, reader_for
from helpers.models import prompt_ids
from model import LoadedModel
from model.serving.engine import SLOTS_TO_REUSE, Engine
from model.serving.prefixes import MIN_SHARED, NOTHING

PROMPT = prompt_ids(50)


@pytest.fixture(params=["torch", "compiled"])
def new_engine(request: pytest.FixtureRequest) -> MakeEngine:
    def make(loaded: LoadedModel, max_batch: int = 4) -> Engine:
        return Engine(loaded, max_batch=max_batch, reader=reader_for(loaded, request.param, max_batch))

    return make


def expected_ids(loaded: LoadedModel, asked: Asked, n: int, seed: int) -> list[int]:
    return ids_of(alone(loaded, asked.sequence.request.prompt, n, seed=seed, temperature=1.0))


def test_choices_of_one_prompt_read_it_once(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    engine = new_engine(tiny)
    choices = [Asked(tiny, PROMPT, 5, seed=i) for i in range(4)]
    engine.submit(*[asked.sequence for asked in choices])
    finish(engine)
    assert [asked.ids for asked in choices] == [expected_ids(tiny, asked, 5, i) for i, asked in enumerate(choices)]
    assert engine.tokens_shared == 3 * 49
    assert engine.tokens_read == 50 + 3 + 4 * 4


def test_a_beginning_is_shared_after_its_text_has_ended(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    engine = new_engine(tiny)
    for i, (n_before, end) in enumerate([(0, [1]), (40, [2, 3]), (40, [2, 4, 5]), (40, [])]):
        before = engine.tokens_shared
        asked = Asked(tiny, PROMPT[:40] + end, 6, seed=i)
        engine.submit(asked.sequence)
        finish(engine)
        assert engine.tokens_shared - before == (n_before + (i == 2) if end else 39)
        assert asked.ids == expected_ids(tiny, asked, 6, i)


def test_clients_share_whole_blocks(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    engine = new_engine(tiny)
    for client, n_shared in ((1, 0), (1, 49), (2, 32), (3, 32)):
        before, asked = engine.tokens_shared, Asked(tiny, PROMPT, 3, client=client)
        engine.submit(asked.sequence)
        finish(engine)
        assert engine.tokens_shared - before == n_shared
        assert asked.ids == expected_ids(tiny, asked, 3, 0)


def test_what_a_slot_held_is_forgotten_once_another_text_is_read_there(
    tiny: LoadedModel, new_engine: MakeEngine
) -> None:
    engine = new_engine(tiny, max_batch=1)
    engine.submit(Asked(tiny, PROMPT, 3).sequence)
    finish(engine)
    assert engine.kept[0].ids[:50] == PROMPT
    short = Asked(tiny, [1], 3)
    engine.submit(short.sequence)
    engine.step()
    assert engine.kept == [NOTHING]
    short.sequence.cancel()
    finish(engine)
    assert engine.kept[0].ids == short.sequence.ids[:-1]


def test_texts_that_follow_each_other_use_few_slots(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    engine, used = new_engine(tiny, max_batch=SLOTS_TO_REUSE + 4), []
    for i in range(2 * SLOTS_TO_REUSE):
        asked = Asked(tiny, [i % 5], 3)
        engine.submit(asked.sequence)
        engine.step()
        used.append(asked.sequence.slot)
        finish(engine)
    assert used == 2 * list(range(SLOTS_TO_REUSE))


@pytest.mark.parametrize("options", [{"record": True}, {"prompt_logprobs": True}, {"head_mask": torch.zeros(3, 2)}])
@pytest.mark.parametrize("comes_first", [True, False])
def test_texts_that_need_their_whole_prompt_read_it(
    tiny: LoadedModel, new_engine: MakeEngine, options: dict[str, Any], comes_first: bool
) -> None:
    engine = new_engine(tiny)
    for is_special in (comes_first, not comes_first):
        asked = Asked(tiny, PROMPT, 3, **options if is_special else {})
        engine.submit(asked.sequence)
        finish(engine)
        if is_special and "head_mask" not in options:
            assert sum(part.attention is not None or len(part.logprobs) > 0 for part in asked.parts)
        if not is_special:
            assert asked.ids == expected_ids(tiny, asked, 3, 0)
    assert engine.tokens_shared == (49 if comes_first and "head_mask" not in options else 0)


def test_any_mixture_of_texts_is_written_as_if_alone(tiny: LoadedModel, new_engine: MakeEngine) -> None:
    rng = random.Random(1)
    engine = new_engine(tiny, max_batch=3)
    beginnings = [prompt_ids(60, seed=i) for i in range(2)]
    waiting = []
    for i in range(24):
        n, tail = rng.choice([0, 33, 36, 50]), prompt_ids(1 + rng.randrange(4), seed=i)
        prompt, options = beginnings[i % 2][:n] + tail, {"seed": i, "context_shift": i % 3 == 0}
        waiting.append(tuple(Asked(tiny, prompt, 20, **options) for _ in range(2)))
    for asked, _ in waiting:
        engine.submit(asked.sequence)
        for _ in range(rng.randrange(6)):
            engine.step()
    finish(engine)
    for asked, same in waiting:
        by_itself = new_engine(tiny, max_batch=1)
        by_itself.submit(same.sequence)
        finish(by_itself)
        assert asked.ids == same.ids and not by_itself.tokens_shared
    assert engine.tokens_shared > 10 * MIN_SHARED


def test_what_is_shared_is_the_same_to_the_last_bit(tiny: LoadedModel) -> None:
    found = []
    for n_texts in (1, 2):
        engine = Engine(tiny, max_batch=4, reader=reader_for(tiny, "compiled", 4))
        for _ in range(n_texts):
            asked = Asked(tiny, PROMPT, 10, seed=7)
            engine.submit(asked.sequence)
            finish(engine)
        found.append([(step.token_id, step.logprob) for step in asked.steps])
    assert found[0] == found[1] and engine.tokens_shared
