"""A trace is the model's own forward pass, and its pictures are as exact as documented."""

import math

import pytest
import torch

import model
from helpers.models import max_difference, prompt_ids, tiny_bpe, tiny_model
from model import LoadedModel, Token
from model.drawing.recorded_pass import take_weights
from model.drawing.thumbnails import encode_weights, pool


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model(n_layer=3, n_embd=12, n_head=4)


def test_trace_equals_the_forward_pass(tiny: LoadedModel) -> None:
    ids = prompt_ids(10)
    trace = tiny.trace(ids)
    plain = tiny.gpt(torch.tensor([ids]), record=range(3))
    assert trace.attention.shape == (3, 4, 10, 10)
    assert trace.logits.shape == (10, 65)
    assert trace.attention.dtype == trace.logits.dtype == torch.float32
    assert max_difference(trace.logits, tiny.gpt(torch.tensor([ids])).logits[0]) <= 1e-5
    for layer in range(3):
        assert max_difference(trace.attention[layer], plain.attention[layer][0]) <= 1e-6
    assert (trace.layers, trace.heads) == ((0, 1, 2), (0, 1, 2, 3))
    torch.testing.assert_close(trace.attention.sum(-1), torch.ones(3, 4, 10))


@pytest.mark.parametrize(("layers", "heads"), [([2], None), (None, [3, 0]), ([2, 0], [1]), ([0, 1, 2], [3, 2, 1, 0])])
def test_layers_and_heads_in_the_requested_order(
    layers: list[int] | None, heads: list[int] | None, tiny: LoadedModel
) -> None:
    ids = prompt_ids(6)
    whole = tiny.trace(ids)
    part = tiny.trace(ids, layers=layers, heads=heads)
    layers, heads = layers or [0, 1, 2], heads or [0, 1, 2, 3]
    assert (part.layers, part.heads) == (tuple(layers), tuple(heads))
    assert max_difference(part.attention, whole.attention[layers][:, heads]) <= 1e-6
    assert max_difference(part.logits, whole.logits) <= 1e-5


@pytest.mark.parametrize(("name", "count"), [("layers", 3), ("heads", 4)])
@pytest.mark.parametrize("chosen", [[], [0, 0], [-1], [9], [1.0], ["1"], [True], [None]])
def test_bad_layers_and_heads_are_refused(name: str, count: int, chosen: list, tiny: LoadedModel) -> None:
    with pytest.raises(ValueError, match=rf"{name} must .*found"):
        tiny.trace([1], **{name: chosen})
    with pytest.raises(ValueError, match=f"{name} must be an integer from 0 to {count - 1}, found {count}"):
        tiny.trace([1], **{name: [count]})


def test_tokens_of_the_prompt(tiny: LoadedModel) -> None:
    trace = tiny.trace("Hi\n")
    assert [token.text for token in trace.tokens] == ["H", "i", "\n"]
    assert trace.tokens[0] == Token(tiny.tokenizer.encode("H")[0], "H")
    bpe = tiny_model(tokenizer=tiny_bpe(257))
    parts = bpe.trace("a🙂")
    assert [token.text for token in parts.tokens] == ["a", "<0xF0>", "<0x9F>", "<0x99>", "🙂"]
    assert parts.text == "a🙂"


def test_head_mask_scales_heads(tiny: LoadedModel) -> None:
    mask = torch.ones(3, 4)
    mask[1, 2] = 0
    ids = prompt_ids(8)
    plain, masked = tiny.trace(ids), tiny.trace(ids, head_mask=mask.tolist())
    assert max_difference(masked.attention[:2], plain.attention[:2]) <= 1e-6  # nothing before it, nor its own weights
    assert max_difference(masked.attention[2], plain.attention[2]) > 1e-4
    assert max_difference(masked.logits, tiny.gpt(torch.tensor([ids]), head_mask=mask).logits[0]) <= 1e-5
    assert max_difference(tiny.trace(ids, head_mask=torch.ones(3, 4)).logits, plain.logits) <= 1e-6


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[1.0] * 4] * 2, r"shape \(n_layer, n_head\) = \(3, 4\), found \(2, 4\)"),
        ([1.0] * 12, r"found \(12,\)"),
        ([[1.0] * 4, [1.0] * 3, [1.0] * 4], "rows of numbers"),
        ([[1.0, 1.0, 1.0, math.nan]] * 3, "from -100 to 100"),
        ([[1.0, 1.0, 1.0, math.inf]] * 3, "from -100 to 100"),
        ("ones", "rows of numbers"),
        ([["1"] * 4] * 3, "rows of numbers"),
        (5, r"found \(\)"),
        ({}, "rows of numbers"),
    ],
)
def test_bad_head_masks_are_refused(mask: object, message: str, tiny: LoadedModel) -> None:
    for call in (tiny.trace, tiny.generate):
        with pytest.raises(ValueError, match=message):
            call([1, 2], head_mask=mask)


@pytest.mark.parametrize("call", ["trace", "generate"])
def test_bad_prompts_are_refused(call: str, tiny: LoadedModel) -> None:
    read = getattr(tiny, call)
    for empty in ("", [], ()):
        with pytest.raises(model.EmptyPrompt):
            read(empty)
    for ids in ([65], [-1], [1, 2, 10**30], [True], [1.0], ["1"], [None], [[1]]):
        with pytest.raises(model.UnknownTokens, match="from 0 to 64, found"):
            read(ids)
    with pytest.raises(model.UnknownCharacters, match="has never seen 'é'"):
        read("café")
    with pytest.raises(model.ContextLengthExceeded, match="33 tokens"):
        read("a" * 33)
    codes = {error.code for error in model.PromptError.__subclasses__()}
    assert codes == {"empty_prompt", "unknown_characters", "unknown_token", "context_length_exceeded"}


@pytest.mark.parametrize(
    "arguments",
    [{"max_new_tokens": value} for value in (0, -1, 1.0, True, None, "5", 2**31 + 1)]
    + [{"seed": value} for value in (1.0, True, "1", 2**63, -(2**63))]
    + [{"temperature": -1}, {"top_k": -1}, {"top_p": 0}, {"min_p": 2}, {"repetition_penalty": 0}]
    + [{"logit_bias": {65: 1.0}}, {"logit_bias": {"a": 1}}, {"frequency_penalty": math.nan}]
    + [
        {"logit_bias": [1]},
        {"logit_bias": []},
        {"logit_bias": 5},
        {"stop": 5},
        {"stop": None},
        {"presence_penalty": 3},
    ],
)
def test_arguments_are_checked_before_the_first_step(arguments: dict, tiny: LoadedModel) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        tiny.generate([1], **arguments)


def pool_by_hand(attention: torch.Tensor, factor: int, n_rows: int, n_keys: int) -> torch.Tensor:
    n = attention.shape[-1]
    row, key = (lambda i, first=first: math.ceil((i + 1 - first) / factor) * (i >= first) for first in (n_rows, n_keys))
    pooled = torch.zeros(*attention.shape[:-2], row(n - 1) + 1, key(n - 1) + 1)
    for q in range(n):
        for k in range(n):
            tile = pooled[..., row(q), key(k)]
            pooled[..., row(q), key(k)] = torch.maximum(tile, attention[..., q, k])
    return pooled


@pytest.mark.parametrize(("n_tokens", "factor"), [(1, 2), (9, 2), (9, 3), (8, 4), (9, 4), (3, 8), (1, 5), (17, 16)])
@pytest.mark.parametrize("first", [(1, 1), (2, 1), (1, 2)])
def test_pooling_keeps_the_largest_of_each_tile(n_tokens: int, factor: int, first: tuple[int, int]) -> None:
    attention = torch.rand(2, 3, n_tokens, n_tokens, generator=torch.Generator().manual_seed(0))
    assert torch.equal(pool(attention, factor, *first), pool_by_hand(attention, factor, *first))
    assert torch.equal(pool(attention[0], factor, *first), pool_by_hand(attention[0], factor, *first))


def test_weights_are_encoded_as_bytes() -> None:
    """One byte: the error of the square root is at most half a step, so that of a weight w about sqrt(w) / 255."""
    weights = torch.linspace(0, 1, 10_001)
    coded = encode_weights(weights)
    assert coded.dtype == torch.uint8
    assert (coded[0], coded[-1]) == (0, 255)
    assert (coded.int().diff() >= 0).all()
    decoded = (coded.double() / 255) ** 2
    assert ((decoded.sqrt() - weights.double().sqrt()).abs() <= 0.5 / 255 + 1e-7).all()
    assert encode_weights(torch.tensor([-1e-7, 1 + 1e-6])).tolist() == [0, 255]
    assert encode_weights((torch.arange(256) / 255) ** 2).tolist() == list(range(256))


def test_bfloat16_trace_is_float32() -> None:
    tiny = tiny_model()
    tiny.gpt.to(torch.bfloat16)
    trace = tiny.trace("Hello")
    assert trace.attention.dtype == trace.logits.dtype == torch.float32
    torch.testing.assert_close(trace.attention.sum(-1), torch.ones(2, 2, 5), atol=0.02, rtol=0)


def test_recorded_weights_are_taken_out_of_the_forward_pass(tiny: LoadedModel) -> None:
    """Each layer is freed once it is copied, so that the weights of a long prompt are in memory only once."""
    result = tiny.gpt(torch.tensor([prompt_ids(6)]), record=range(3))
    expected = {layer: weights.clone() for layer, weights in result.attention.items()}
    assert torch.equal(
        take_weights(result.attention, [2, 0], [1]), torch.stack([expected[2][0, [1]], expected[0][0, [1]]])
    )
    assert list(result.attention) == [1]
    assert torch.equal(take_weights(result.attention, [1]), expected[1])
    assert not result.attention
