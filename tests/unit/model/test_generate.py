"""Writing with the cache equals reading everything again; lengths, seeds, recordings and masks work as documented."""

import random
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import model
from helpers.engine import SETTINGS, ids_of
from helpers.models import PROSE, max_difference, prompt_ids, tiny_bpe, tiny_model
from model import LoadedModel
from model.generate import generate_naive
from model.modules.cache import KVCache
from model.sampling import SamplingSettings


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model(n_layer=3)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1, 2, 12345])
@pytest.mark.parametrize("record", [False, True])
def test_cached_equals_naive(settings: dict, seed: int, record: bool, tiny: LoadedModel) -> None:
    prompt = prompt_ids(5, seed=seed)
    request = tiny.request(prompt, 20, seed=seed, sampling=SamplingSettings(**settings))
    expected = generate_naive(tiny.gpt, request)
    found = list(tiny.generate(prompt, 20, seed=seed, record=record, **settings))
    assert ids_of(found) == expected
    assert len(expected) == 20


@pytest.mark.parametrize(
    ("n_prompt", "asked", "written"), [(32, 10, 1), (32, 1, 1), (31, 10, 2), (20, 100, 13), (1, 5, 5)]
)
def test_generation_ends_at_the_context_length(n_prompt: int, asked: int, written: int, tiny: LoadedModel) -> None:
    prompt = prompt_ids(n_prompt)
    steps = list(tiny.generate(prompt, asked, temperature=0))
    assert len(steps) == written
    assert [step.finish_reason for step in steps] == [None] * (written - 1) + ["length"]
    request = tiny.request(prompt, asked, sampling=SamplingSettings(temperature=0))
    assert ids_of(steps) == generate_naive(tiny.gpt, request)


def test_prompt_longer_than_the_context_is_refused(tiny: LoadedModel) -> None:
    with pytest.raises(model.ContextLengthExceeded, match="33 tokens, but this model reads at most 32") as caught:
        tiny.generate(prompt_ids(33))
    assert (caught.value.n_tokens, caught.value.context_length) == (33, 32)


def test_same_seed_same_text_other_seed_other_text(tiny: LoadedModel) -> None:
    texts = [[step.text for step in tiny.generate("ROMEO:", 25, seed=seed)] for seed in (1, 1, 2, -1, 0)]
    assert texts[0] == texts[1]
    assert len({"".join(text) for text in texts}) == 4


def test_without_a_seed_each_text_is_another(tiny: LoadedModel) -> None:
    assert ids_of(list(tiny.generate("ROMEO:", 25))) != ids_of(list(tiny.generate("ROMEO:", 25)))


def test_interleaved_requests_write_what_each_writes_alone(tiny: LoadedModel) -> None:
    keys = [("ROMEO:", 1), ("JULIET", 1), ("ROMEO:", 2), ("A", 3)]
    alone = [ids_of(list(tiny.generate(prompt, 20, seed=seed))) for prompt, seed in keys]
    running = [tiny.generate(prompt, 20, seed=seed, record=seed == 2) for prompt, seed in keys]
    together: list[list[int]] = [[] for _ in keys]
    order = random.Random(0)
    while running_now := [i for i, ids in enumerate(together) if len(ids) < 20]:
        i = order.choice(running_now)
        together[i].append(next(running[i]).token_id)
    assert together == alone


def test_requests_in_threads_write_what_each_writes_alone(tiny: LoadedModel) -> None:
    def write(seed: int) -> list[int]:
        return ids_of(list(tiny.generate("ROMEO:", 20, seed=seed % 3, record=seed % 2 == 0)))

    alone = [write(seed) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(write, range(24))) == [alone[seed % 6] for seed in range(24)]


def test_global_random_state_is_not_used(tiny: LoadedModel) -> None:
    before, torch_before = random.getstate(), torch.get_rng_state()
    list(tiny.generate("ROMEO:", 10, seed=1))
    assert random.getstate() == before
    assert torch.equal(torch.get_rng_state(), torch_before)


@pytest.mark.parametrize("seed", range(5))
def test_pieces_join_to_the_decoded_ids(seed: int) -> None:
    """Random bytes for the most part: half characters are held back, and no step gives out one."""
    bpe = tiny_bpe(257)
    tiny = tiny_model(tokenizer=bpe, context_length=200)
    steps = list(tiny.generate("Hé", 150, seed=seed, temperature=3.0))
    shown = [token_id for token_id in ids_of(steps) if token_id not in bpe.special_ids]
    assert "".join(step.text for step in steps) == bpe.decode(shown)


def test_records_equal_the_trace(tiny: LoadedModel) -> None:
    """Each step's weights and logits are those of one reading of the whole text."""
    prompt = prompt_ids(6)
    steps = list(tiny.generate(prompt, 15, seed=4, record=True))
    trace = tiny.trace(prompt + ids_of(steps)[:-1])
    logprobs = torch.log_softmax(trace.logits, dim=-1)
    for n, step in enumerate(steps):
        position = len(prompt) - 1 + n
        assert step.attention.shape == (3, 2, position + 1)
        assert step.attention.dtype == step.logits.dtype == torch.float32
        assert max_difference(step.attention, trace.attention[:, :, position, : position + 1]) <= 1e-5
        assert max_difference(step.logits, trace.logits[position]) <= 1e-5
        assert abs(step.logprob - float(logprobs[position, step.token_id])) <= 1e-5


def test_attention_is_recorded_on_request_only(tiny: LoadedModel) -> None:
    for step in tiny.generate("ROMEO:", 3, seed=0):
        assert step.attention is None
        assert step.logits.shape == (65,)


def test_logprob_is_of_the_raw_logits(tiny: LoadedModel) -> None:
    """Temperature, filters and bias affect the choice, never the reported probability."""
    for settings in SETTINGS:
        for step in tiny.generate("ROMEO:", 5, seed=0, **settings):
            assert step.logprob == pytest.approx(float(step.logits.log_softmax(-1)[step.token_id]), abs=1e-6)


def test_head_mask_changes_the_text(tiny: LoadedModel) -> None:
    plain = list(tiny.generate("ROMEO:", 20, temperature=0))
    ones = torch.ones(3, 2)
    assert ids_of(list(tiny.generate("ROMEO:", 20, temperature=0, head_mask=ones))) == ids_of(plain)
    without = ones.clone()
    without[0, 1] = 0
    masked = list(tiny.generate("ROMEO:", 20, temperature=0, head_mask=without.tolist(), record=True))
    ids = tiny.tokenizer.encode("ROMEO:") + ids_of(masked)
    trace = tiny.trace(ids[:-1], head_mask=without)
    assert ids_of(masked) == trace.logits[5:].argmax(-1).tolist()
    assert max_difference(masked[-1].attention, trace.attention[:, :, -1]) <= 1e-5
    assert max_difference(masked[0].logits, plain[0].logits) > 1e-3


def test_an_abandoned_generator_frees_its_cache(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    caches: weakref.WeakSet[KVCache] = weakref.WeakSet()

    def make_cache(*args: Any, **options: Any) -> KVCache:
        cache = KVCache(*args, **options)
        caches.add(cache)
        return cache

    monkeypatch.setattr("model.generate.KVCache", make_cache)
    for abandon in ("close", "del", "exhaust", "never started"):
        running = tiny.generate("ROMEO:", 10, seed=0)
        if abandon != "never started":
            next(running)
            assert len(caches) == 1
        if abandon == "close":
            running.close()
            assert list(running) == []
        elif abandon == "exhaust":
            list(running)
        del running
        assert not caches, abandon


def test_gradients_are_back_at_every_yield(tiny: LoadedModel) -> None:
    for record in (False, True):
        for step in tiny.generate("ROMEO:", 4, seed=0, record=record):
            assert torch.is_grad_enabled()
            assert not step.logits.requires_grad and not step.logits.is_inference()
    weight = torch.ones(3, requires_grad=True)
    running = tiny.generate("ROMEO:", 4, seed=0)
    next(running)
    weight.square().sum().backward()  # training continues between two steps
    assert weight.grad.tolist() == [2, 2, 2]


def test_bfloat16_writes_and_records() -> None:
    tiny = tiny_model()
    tiny.gpt.to(torch.bfloat16)
    steps = list(tiny.generate("ROMEO:", 10, temperature=0, record=True))
    assert all(step.logits.dtype == step.attention.dtype == torch.float32 for step in steps)
    assert all(torch.allclose(step.attention.sum(-1), torch.ones(2, 2), atol=0.02) for step in steps)


def test_bpe_prompt_and_text() -> None:
    bpe = tiny_bpe()
    tiny = tiny_model(tokenizer=bpe, context_length=256)
    ids = bpe.encode(PROSE)
    by_text, by_ids, by_tuple = (ids_of(list(tiny.generate(p, 10, seed=3))) for p in (PROSE, ids, tuple(ids)))
    assert by_text == by_ids == by_tuple
