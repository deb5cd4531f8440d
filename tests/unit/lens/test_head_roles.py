"""Role scores, compared with a loop over the same numbers, and for heads constructed to have one role."""

import pytest
import torch

from helpers.models import tiny_bpe, tiny_model
from model import InputError
from model.lens.head_roles import CLEAR_ROLE, LOOKS, clear_role, repeated_tokens, role_scores
from model.tokenizer import CharTokenizer

ALPHABET = CharTokenizer.train("abcdefghijklmnopqrstuvwxyz\n\x00")


def test_scores_are_the_weights_where_the_role_looks() -> None:
    loaded = tiny_model(3, ALPHABET, context_length=24)
    length, n_texts = 10, 3
    found = role_scores(loaded, n_texts, length, seed=7)
    expected = {role: torch.zeros(2, 2) for role in LOOKS}
    by_text: dict[str, list[torch.Tensor]] = {role: [] for role in LOOKS}
    entropy = torch.zeros(2, 2)
    second_half = []
    for text in repeated_tokens(loaded, n_texts, length, seed=7).tolist():
        assert text[:length] == text[length:]
        trace = loaded.trace(text)
        for role in LOOKS:
            by_text[role].append(torch.zeros(2, 2))
        for query in range(length, 2 * length):
            places = {"previous_token": query - 1, "duplicate_token": query - length, "induction": query - length + 1}
            places |= {"first_token": 0, "self": query}
            for role, key in places.items():
                expected[role] += trace.attention[:, :, query, key] / (n_texts * length)
                by_text[role][-1] += trace.attention[:, :, query, key] / length
            weights = trace.attention[:, :, query, : query + 1]
            entropy -= (weights * weights.log2()).sum(-1) / (n_texts * length)
        logprobs = trace.logits.log_softmax(-1)
        second_half += [-float(logprobs[i - 1, text[i]]) for i in range(length + 1, 2 * length)]
    for role, scores in expected.items():
        assert torch.allclose(found.scores[role], scores, atol=1e-6)
        squares = sum((one - scores).square() for one in by_text[role])
        assert torch.allclose(found.errors[role], (squares / (n_texts - 1) / n_texts).sqrt(), atol=1e-6)
        layer, head, score = found.best(role)
        assert score == found.scores[role][layer, head] == found.scores[role].max()
    assert torch.allclose(found.entropy, entropy, atol=1e-5)
    assert found.second_loss == pytest.approx(sum(second_half) / len(second_half), abs=1e-5)


def test_heads_that_look_everywhere_alike_score_the_baseline() -> None:
    loaded = tiny_model(0, ALPHABET, context_length=24)
    for block in loaded.gpt.h:
        torch.nn.init.zeros_(block.attn.c_attn.weight)
        torch.nn.init.zeros_(block.attn.c_attn.bias)
    found = role_scores(loaded, 2, 8)
    assert found.uniform == pytest.approx(sum(1 / (q + 1) for q in range(8, 16)) / 8)
    for scores in found.scores.values():
        assert torch.allclose(scores, torch.full((2, 2), found.uniform), atol=1e-6)
    assert torch.allclose(found.entropy, torch.full((2, 2), found.uniform_entropy), atol=1e-5)


def test_a_role_is_named_only_where_it_is_clear() -> None:
    none = dict.fromkeys(LOOKS, 0.01)
    assert clear_role(none, 0.01) is None
    assert clear_role(none | {"self": CLEAR_ROLE}, 0.01) == "self"
    assert clear_role(none | {"self": CLEAR_ROLE - 0.001}, 0.01) is None
    assert clear_role(none | {"self": 0.4, "induction": 0.5}, 0.01) == "induction"
    assert clear_role(none | {"self": 0.5}, 0.2) is None  # in a short text uniform attention is not far from it


def test_random_tokens_can_be_seen_and_are_no_special_ones() -> None:
    loaded = tiny_model(0, ALPHABET, context_length=24)
    text = loaded.tokenizer.decode(repeated_tokens(loaded, 50, 10, seed=0).flatten().tolist())
    assert set(text) == set("abcdefghijklmnopqrstuvwxyz")


def test_random_tokens_of_a_byte_level_vocabulary_are_merges() -> None:
    loaded = tiny_model(tokenizer=tiny_bpe(280))
    drawn = set(repeated_tokens(loaded, 50, 10, seed=0).flatten().tolist())
    texts = [loaded.tokenizer.token_bytes(token) for token in drawn]
    assert len(drawn) > 10 and all(len(text) > 1 for text in texts) and b"<|endoftext|>" not in texts


def test_a_context_too_short_to_repeat_anything_is_refused() -> None:
    with pytest.raises(ValueError, match="context_length of at least 4"):
        role_scores(tiny_model(0, ALPHABET, context_length=3))
    assert role_scores(tiny_model(0, ALPHABET, context_length=4)).uniform == pytest.approx((1 / 3 + 1 / 4) / 2)


def test_the_tokens_their_number_and_the_seed_may_be_chosen() -> None:
    loaded = tiny_model(3, ALPHABET, context_length=24)
    assert torch.equal(loaded.roles().scores["induction"], role_scores(loaded).scores["induction"])
    found = loaded.roles(tokens=["b", 5, torch.tensor([7])], length=6, seed=3)
    texts = repeated_tokens(loaded, 16, 6, 3, torch.tensor([loaded.tokenizer.encode("b")[0], 5, 7]))
    assert set(texts.flatten().tolist()) == {loaded.tokenizer.encode("b")[0], 5, 7}
    weights = torch.stack([loaded.trace(text).attention for text in texts.tolist()])
    queries = torch.arange(6, 12)
    assert torch.allclose(found.scores["induction"], weights[..., queries, queries - 5].mean((0, -1)), atol=1e-6)
    with pytest.raises(InputError, match="length must be 2 to 12, half of the context, found 13"):
        loaded.roles(length=13)
    with pytest.raises(InputError, match="tokens .*at least 2"):
        loaded.roles(tokens=["a"])
    with pytest.raises(InputError, match="tokens"):
        loaded.roles(tokens=range(1000))
