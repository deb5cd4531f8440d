"""The terms of each of the ladder's numbers add up to it, recipes are independent, and a real head is the model's."""

import threading

import pytest
import torch

from helpers.oracles import published
from model import ladder
from model.ladder.bigram import BigramTraining
from model.ladder.terms import (
    causal_stages,
    dot_product_terms,
    embed_words,
    scaled_softmax,
    seeded,
    softmax_terms,
    weights_of_random_query,
)
from model.ladder.timing import fastest_seconds, time_attention


def test_the_terms_add_up_to_the_product() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    terms = dot_product_terms(a, b)
    assert terms.shape == (2, 3, 5, 4)
    torch.testing.assert_close(terms.sum(dim=-1), a @ b.mT)


def test_the_terms_of_softmax() -> None:
    scores = torch.tensor([[1.0, 2.0, -torch.inf], [500.0, 499.0, 0.0]])
    largest, exponentials, sums = softmax_terms(scores)
    assert largest.tolist() == [2.0, 500.0]
    assert torch.equal(exponentials / sums[:, None], ladder.stable_softmax(scores))


def test_a_recipe_leaves_the_generator_as_it_was() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    made = seeded(123, lambda: torch.rand(3, 2))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(made, seeded(123, lambda: torch.rand(3, 2)))


def test_recipes_of_several_threads_stay_apart() -> None:
    expected = {seed: seeded(seed, lambda: torch.rand(1000)) for seed in range(8)}
    found: dict[int, torch.Tensor] = {}

    def make(seed: int) -> None:
        found[seed] = seeded(seed, lambda: torch.cat([torch.rand(1) for _ in range(1000)]))

    threads = [threading.Thread(target=make, args=[seed]) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(found[seed], expected[seed]) for seed in expected)


def test_words_of_a_sentence_have_the_published_embedding() -> None:
    embedded = embed_words(published.SENTENCE)
    assert embedded.ids.tolist() == [0, 1, 3, 5, 2, 4]
    torch.testing.assert_close(embedded.token[2], torch.tensor(published.EMBEDDING_ROW_3), atol=1.01e-4, rtol=0)
    assert torch.equal(embedded.x, embedded.token + embedded.position)
    assert embed_words(["a", "<|endoftext|>", "a"]).ids.tolist() == [0, 1, 0]


def test_one_query_is_sharper_without_the_scale() -> None:
    scores, unscaled, scaled = weights_of_random_query(256, 12, torch.Generator().manual_seed(1))
    torch.testing.assert_close(torch.softmax(scores, dim=0), unscaled)
    assert unscaled.shape == scaled.shape == (12,)
    assert unscaled.sum().item() == pytest.approx(1) == scaled.sum().item()
    assert unscaled.max() > scaled.max()


def test_what_is_timed_is_the_same_attention() -> None:
    times = time_attention(n_head=2, n_embd=8, n_tokens=5, seconds=0)
    assert times.rounds == 3
    assert times.difference <= 1e-5
    assert list(times.constructions) == ["stacked heads", "weight splits", "MultiHeadAttention"]
    assert len(times.stages) == 5
    assert all(seconds > 0 for seconds in [*times.constructions.values(), *times.stages.values()])


def test_timing_ignores_a_busy_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0, 5, 0, 0.25, 0, 7, 9])  # the start, each run from when to when, the end
    monkeypatch.setattr("model.ladder.timing.time.perf_counter", lambda: next(clock))
    assert fastest_seconds({"way": lambda: torch.zeros(1)}, 0) == ({"way": 0.25}, 3)


def test_the_stages_of_both_masks() -> None:
    layers = seeded(789, lambda: ladder.SelfAttentionV2(3, 2))
    scores = layers.attend(torch.tensor(list(ladder.JOURNEY.values()))).scores
    stages = causal_stages(scores, layers.scale)
    for weights in (stages.renormalised, stages.weights):
        torch.testing.assert_close(weights, torch.tensor(published.CAUSAL_WEIGHTS), atol=1.01e-4, rtol=0)
    torch.testing.assert_close(stages.all_weights, torch.tensor(published.V2_WEIGHTS), atol=1.01e-4, rtol=0)
    torch.testing.assert_close(stages.cut / stages.left[:, None], stages.renormalised)
    assert torch.equal(stages.masked.isinf(), torch.ones(6, 6).triu(1).bool())
    torch.testing.assert_close(stages.renormalised, ladder.causal_by_renormalising(scores, layers.scale))
    torch.testing.assert_close(stages.weights, ladder.causal_by_minus_infinity(scores, layers.scale))
    mask = torch.eye(6, dtype=torch.bool)
    mask[0, 5] = True
    for weights in causal_stages(scores, layers.scale, mask)[3::2]:
        torch.testing.assert_close(weights[0, 5], torch.sigmoid((scores[0, 5] - scores[0, 0]) * layers.scale))
        assert torch.equal(weights[1:], torch.eye(6)[1:])


def test_scaled_softmax_of_larger_scores() -> None:
    scores = torch.tensor([[1.0, 2.0]])
    assert all(torch.allclose(found, ladder.stable_softmax(scores)) for found in scaled_softmax(scores, 1)[1:])
    larger = scaled_softmax(scores, 100)
    assert larger.scores.tolist() == [[100.0, 200.0]]
    assert larger.naive.isnan().any()
    torch.testing.assert_close(larger.stable, torch.tensor([[0.0, 1.0]]))


def test_a_training_reports_its_progress() -> None:
    training = BigramTraining("to be or not to be. " * 20, steps=450, learning_rate=0.1)
    begin = training.begin()
    assert begin["loss"] > begin["uniform"] > begin["floor"]
    points, held, snapshots = [], [], [*begin["snapshots"]]
    while not training.done:
        told = training.advance(0.001)
        assert told["steps"] == 450 and told["every"] == 3
        points += told["points"]
        held += told["held_out"]
        snapshots += told["snapshots"]
    assert len(points) == 150 and points[0] > points[-1]
    end = training.end("be x")
    assert begin["floor"] < end["loss"] < begin["floor"] + 0.05
    assert (begin["n_train"], begin["n_held_out"]) == (360, 40) and end["held_out"] == pytest.approx(
        end["loss"], abs=0.2
    )
    assert len(held) == 150 and held[-1] == pytest.approx(end["held_out"], abs=1e-6)
    assert [snapshot["step"] for snapshot in snapshots] == training.snapshot_steps and snapshots[0]["step"] == 0
    assert snapshots[-1]["loss"] == pytest.approx(end["loss"]) and snapshots[0]["loss"] == begin["loss"]
    table = torch.tensor(snapshots[-1]["follows"])
    assert table.shape == (len(begin["frequent"]),) * 2
    b, e = (begin["frequent"].index(c) for c in "be")
    assert table[b, e].item() == pytest.approx(end["sentence"][1]["probability"], abs=1e-6)
    assert [judged["known"] for judged in end["sentence"]] == [True, True, True, False]
    assert end["sentence"][0]["probability"] is None is end["sentence"][3]["probability"]
    assert end["sentence"][1]["probability"] > 0.9  # e after b
    assert begin["wrote"] != end["wrote"] and len(begin["frequent"]) == len(begin["characters"])


def test_a_text_too_short_to_hold_any_of_it_out() -> None:
    training = BigramTraining("ab", steps=2)
    assert training.begin()["held_out"] is None
    while not training.done:
        training.advance(0.001)
    assert training.end("ab")["held_out"] is None
    assert training.end("")["sentence"] == []
