"""The terms behind the ladder's numbers add up to them, recipes with a seed stay apart, a real head is the model's."""

import threading

import pytest
import torch

from helpers.models import tiny_model
from helpers.oracles import published
from model import ladder
from model.ladder.bigram_training import BigramTraining
from model.ladder.terms import (
    causal_stages,
    dot_product_terms,
    embed_words,
    largest_difference,
    scaled_softmax,
    seeded,
    softmax_terms,
    weights_of_random_query,
)
from model.ladder.timing import fastest_seconds, time_attention
from model.ladder.trained_head import head_by_ladder
from model.lens.residuals import Residuals


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
    unscaled, scaled = weights_of_random_query(256, 12, torch.Generator().manual_seed(1))
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


def test_a_busy_moment_is_not_in_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0, 5, 0, 0.25, 0, 7, 9])  # the start, each run from when to when, the end
    monkeypatch.setattr("model.ladder.timing.time.perf_counter", lambda: next(clock))
    assert fastest_seconds({"way": lambda: torch.zeros(1)}, 0) == ({"way": 0.25}, 3)


@pytest.mark.parametrize("changes", [{}, {"scale_attn_by_inverse_layer_idx": True}])
def test_a_head_by_the_ladder_is_the_model_s(changes: dict[str, bool]) -> None:
    loaded = tiny_model(3, n_layer=2, n_head=4, n_embd=32, **changes)
    reading = Residuals(loaded.gpt, [1, 5, 2, 2, 7, 0, 3])
    for layer in range(2):
        for head in range(4):
            found = head_by_ladder(reading, layer, head)
            assert found.query.shape == found.key.shape == (7, 8)
            assert largest_difference(found.attention.weights, reading.attention(layer)[head]) <= 1e-6
            score = (found.query[6] @ found.key[2]).item()
            assert found.attention.scores[6, 2].item() == pytest.approx(score, abs=1e-6)


def test_the_stages_of_both_masks() -> None:
    layers = seeded(789, lambda: ladder.SelfAttentionV2(3, 2))
    scores = layers.attend(torch.tensor(list(ladder.JOURNEY.values()))).scores
    stages = causal_stages(scores, layers.scale)
    for weights in (stages.renormalised, stages.weights):
        torch.testing.assert_close(weights, torch.tensor(published.CAUSAL_WEIGHTS), atol=1.01e-4, rtol=0)
    torch.testing.assert_close(stages.all_weights, torch.tensor(published.V2_WEIGHTS), atol=1.01e-4, rtol=0)
    torch.testing.assert_close(stages.cut / stages.left[:, None], stages.renormalised)
    assert torch.equal(stages.masked.isinf(), torch.ones(6, 6).triu(1).bool())


def test_larger_scores() -> None:
    scores = torch.tensor([[1.0, 2.0]])
    assert all(torch.allclose(found, ladder.stable_softmax(scores)) for found in scaled_softmax(scores, 1)[1:])
    larger = scaled_softmax(scores, 100)
    assert larger.scores.tolist() == [[100.0, 200.0]]
    assert larger.naive.isnan().any()
    torch.testing.assert_close(larger.stable, torch.tensor([[0.0, 1.0]]))


def test_a_training_tells_where_it_is() -> None:
    training = BigramTraining("to be or not to be. " * 20, steps=450, learning_rate=0.1)
    begin = training.begin()
    assert begin["loss"] > begin["uniform"] > begin["floor"]
    points = []
    while not training.done:
        told = training.advance(0.001)
        assert told["steps"] == 450 and told["every"] == 3
        points += told["points"]
    assert len(points) == 150 and points[0] > points[-1]
    end = training.end("be x")
    assert begin["floor"] < end["loss"] < begin["floor"] + 0.05
    assert [judged["known"] for judged in end["sentence"]] == [True, True, True, False]
    assert end["sentence"][0]["probability"] is None is end["sentence"][3]["probability"]
    assert end["sentence"][1]["probability"] > 0.9  # e after b
    assert begin["wrote"] != end["wrote"] and len(end["frequent"]) == len(begin["characters"])
