"""Attention weights from any source: what is drawn of them, and what is refused."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import model
from helpers.saved import content, frame_of, numbers
from model.drawing import drawing
from model.drawing.metrics import METRICS
from model.drawing.pictures import n_pictures
from model.drawing.weight_buffer import lower_triangle


def weights(n_layer: int = 2, n_head: int = 3, queries: int = 9, keys: int = 9, *, causal: bool = False) -> Tensor:
    scores = torch.randn(n_layer, n_head, queries, keys, generator=torch.Generator().manual_seed(0)) * 2
    return (scores.masked_fill(torch.ones(queries, keys).triu(1).bool(), -torch.inf) if causal else scores).softmax(-1)


def words(n: int, prefix: str = "w") -> list[str]:
    return [f" {prefix}{i}" for i in range(n)]


def test_causal_attention_is_drawn_as_triangles() -> None:
    attention = weights(causal=True)
    shown = model.view(attention, words(9))
    data = content(shown.html(exact=True))
    assert data["n_keys"] == 0 and data["vocab_size"] == 0 and "logits" not in data
    expected = torch.stack([lower_triangle(head) for head in attention.flatten(0, 1)]).flatten().numpy()
    assert np.array_equal(numbers(data["weights"], "<f4"), expected)
    assert data["pointer"]["n_prompt"] == data["pointer"]["tokens"] == 9


def test_the_windows_of_layers_are_found() -> None:
    distance = torch.arange(9)[:, None] - torch.arange(9)
    scores = weights(n_layer=3, causal=True).log()
    for layer, window in enumerate((1, 4)):
        scores[layer].masked_fill_(distance >= window, -torch.inf)
    shown = model.view(scores.softmax(-1), words(9))
    assert content(shown.html())["pointer"]["windows"] == [1, 4, None]
    assert model.view(weights(), words(9)).windows == [None, None]
    hard = F.one_hot((torch.arange(9) - 1).clamp_min(0), 9).float().expand(1, 1, 9, 9)
    assert model.view(hard, words(9)).windows == [None]


def test_an_encoder_is_drawn_as_squares() -> None:
    attention = weights(queries=70, keys=70)
    data = content(model.view(attention, words(70)).html(exact=True))
    assert data["n_keys"] == 70
    assert np.array_equal(numbers(data["weights"], "<f4"), attention.flatten().numpy())
    header, measured, thumbnails = frame_of(data)
    assert header["factor"] == 2 and header["pictures"] == n_pictures(2, 3)
    side = 1 + math.ceil(69 / 2)
    cells = thumbnails.reshape(header["pictures"], side, side)
    for picture, head in ((0, attention[0, 0]), (7, attention[1, 2])):
        for row, column in ((0, side - 1), (3, 20), (side - 1, 0), (side - 1, side - 1)):
            rows, columns = (slice(max(0, 2 * i - 1), 2 * i + 1) for i in (row, column))
            assert cells[picture, row, column] == round(255 * math.sqrt(head[rows, columns].max()))
    entropy = -(attention[1, 2, 1:] * attention[1, 2, 1:].log2()).sum(-1).mean()
    assert measured[7, METRICS.index("entropy")] == pytest.approx(float(entropy), abs=1e-4)
    away = (torch.arange(70)[:, None] - torch.arange(70)).abs()
    distance = (attention[1, 2] * away)[1:].sum(-1).mean()
    assert measured[7, METRICS.index("distance")] == pytest.approx(float(distance), abs=1e-4)
    uniform = (attention[1, 2, 1:] - 1 / 70).abs().sum(-1).mean() / 2
    assert measured[7, METRICS.index("uniform")] == pytest.approx(float(uniform), abs=1e-5)


def test_means_and_rollouts_of_an_encoder() -> None:
    attention = weights()
    header, _, thumbnails = frame_of(content(model.view(attention, words(9)).html()))
    first, second = ((layer.mean(0) + torch.eye(9)) / 2 for layer in attention)
    expected = {3: attention[0].mean(0), 4: first, 9: second @ first, 10: attention.mean((0, 1))}
    cells = thumbnails.reshape(header["pictures"], 9, 9)
    for picture, shown in expected.items():
        assert np.abs(cells[picture] - 255 * shown.sqrt().numpy()).max() < 0.51


def test_cross_attention_is_kept_and_drawn_as_a_rectangle() -> None:
    attention = weights(queries=5, keys=7)
    shown = model.view(attention, words(5, "q"), words(7, "k"))
    assert [token.text for token in shown.tokens] == words(7, "k") + words(5, "q")
    assert torch.equal(shown.attention, attention) and "(2, 3, 5, 7)" in repr(shown)
    data = content(shown.html(exact=True))
    assert data["n_keys"] == 7 and data["pointer"]["tokens"] == 12
    assert np.array_equal(numbers(data["weights"], "<f4"), attention.flatten().numpy())
    header, measured, thumbnails = frame_of(data)
    assert len(header["tokens"]) == header["rows"] == 12
    mean = attention.mean(1)
    rollout = (mean[1] + mean[0] / 2) / 2
    pictures = {0: attention[0, 0], 7: attention[1, 2], 8: mean[1], 9: rollout, 10: mean.mean(0)}
    for picture, expected in pictures.items():
        rows = expected / expected.sum(-1, keepdim=True)
        entropy, uniform = -(rows * rows.log2()).sum(-1).mean(), (rows - 1 / 7).abs().sum(-1).mean() / 2
        assert measured[picture, METRICS.index("entropy")] == pytest.approx(float(entropy), abs=1e-5)
        assert measured[picture, METRICS.index("uniform")] == pytest.approx(float(uniform), abs=1e-5)
        assert measured[picture, METRICS.index("first")] == pytest.approx(float(rows[:, 0].mean()), abs=1e-5)
        # The thumbnail is the rectangle, stretched to a square.
        cells = thumbnails.reshape(header["pictures"], 12, 12)[picture]
        shown_cells = expected[torch.arange(12) * 5 // 12][:, torch.arange(12) * 7 // 12]
        assert np.abs(cells - 255 * shown_cells.sqrt().numpy()).max() < 0.51


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 9), (9, 1), (3, 300), (300, 3), (70, 70)])
def test_rectangles_of_any_shape(queries: int, keys: int) -> None:
    shown = model.view(weights(queries=queries, keys=keys), words(queries, "q"), words(keys, "k"))
    data = content(shown.html())
    header, measured, thumbnails = frame_of(data)
    side = 1 + math.ceil((queries + keys - 1) / header["factor"])
    assert side <= 65 and thumbnails.size == header["pictures"] * side**2 and np.isfinite(measured).all()
    assert data["n_keys"] == keys and numbers(data["weights"], "<u2").size == 6 * queries * keys


def test_cross_attention_takes_no_more_memory_than_was_given() -> None:
    given = weights(queries=30, keys=900)
    shown = model.view(list(given), words(30, "q"), words(900, "k"))
    assert shown.attention.nbytes == given.nbytes and not shown.problem


def test_words_with_a_separator() -> None:
    shown = model.view(weights(queries=2, keys=3), ["le", "chat"], ["the", "black", "cat"], separator=" ")
    assert shown.text == "the black cat le chat"
    assert model.view(weights(queries=2, keys=2), ["a", "b"]).text == "ab"


def test_a_text_of_a_batch() -> None:
    batch = torch.stack([weights(), weights(n_head=3).flip(2)], 1)  # (layers, texts, heads, queries, keys)
    assert torch.equal(model.view(batch, words(9), batch=1).attention, batch[:, 1])
    steps = [tuple(layer[:, :, :1, :1] for layer in weights(causal=True)[:, None].expand(2, 4, 3, 9, 9))]
    assert model.view(steps, words(1), batch=3).attention.shape == (2, 3, 1, 1)
    for index in (2, -1, "a"):
        with pytest.raises(ValueError, match="batch must be an integer from 0 to 1, found"):
            model.view(batch, words(9), batch=index)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"batch names a text of .*attentions\[0\] has \(3, 9, 9\)"):
        model.view(weights(), words(9), batch=0)


def test_rows_that_do_not_sum_to_1_are_named() -> None:
    attention = weights()
    attention[1, 2, 4] *= 0.5
    with pytest.warns(UserWarning, match=r"1 of 54 rows .* do not sum to 1: 0.5 in layer 1, head 2, query 4.*eval"):
        model.view(attention, words(9))
    with pytest.warns(UserWarning, match="do not sum to 1: 0 in layer 0"):
        model.view(torch.zeros(1, 1, 2, 3), words(2), words(3))


@pytest.mark.parametrize(
    "given",
    [
        lambda attention: attention,
        lambda attention: list(attention),
        lambda attention: tuple(attention[:, None]),
        lambda attention: attention.numpy(),
        lambda attention: [layer.numpy() for layer in attention],
        lambda attention: attention.clone().requires_grad_(),
    ],
    ids=["tensor", "list", "batch of one", "array", "arrays", "graph"],
)
def test_accepted_forms_of_attention(given: Any) -> None:
    attention = weights()
    assert torch.equal(model.view(given(attention), words(9)).attention, attention)


def test_the_steps_of_generate_are_one_text() -> None:
    attention = weights(causal=True)
    steps = [tuple(attention[:, None, :, :6, :6]), *(tuple(attention[:, None, :, [i], : i + 1]) for i in (6, 7, 8))]
    assert torch.equal(model.view(steps, words(9)).attention, attention)


@pytest.mark.parametrize("windows", [(None, 4), (4, None), (4, 4), (1, 3), (None, None)])
@pytest.mark.parametrize("n_fixed", [0, 12])
def test_the_steps_of_generate_with_sliding_windows(windows: tuple[int | None, ...], n_fixed: int) -> None:
    """Each layer's rows end at their query; a cache of fixed size leaves room until it is full."""
    attention = weights(causal=True)
    for layer, window in enumerate(windows):
        if window:
            seen = attention[layer].tril().triu(1 - window)
            attention[layer] = seen / seen.sum(-1, keepdim=True)

    def rows(layer: int, first: int, end: int) -> Tensor:
        window = windows[layer]
        start = max(0, end - window - (end - first - 1)) if window and first else 0
        shown = attention[layer, :, first:end, start:end]
        size = min(n_fixed, window or n_fixed) if first else n_fixed
        return F.pad(shown, (0, max(0, size - shown.shape[-1])))[None]

    for ends in ((6, 7, 8, 9), (1, 2, 3, 4, 5, 6, 7, 8, 9), (5, 8, 9), (9,)):
        steps = [tuple(rows(layer, first, end) for layer in (0, 1)) for first, end in pairwise((0, *ends))]
        assert torch.equal(model.view(steps, words(9)).attention, attention)


def test_steps_of_cross_attention_need_the_texts_of_the_keys() -> None:
    attention = weights(queries=5, keys=7)
    steps = [tuple(attention[:, None, :, [i]]) for i in range(5)]
    assert torch.equal(model.view(steps, words(5), words(7)).attention, attention)
    with pytest.raises(ValueError, match="step 0 has weights on 7 keys, but the text has only 1 token.*key_tokens"):
        model.view(steps, words(5))
    with pytest.raises(ValueError, match=r"must have the same keys, found \[6, 7\]"):
        model.view([*steps[:4], tuple(attention[:, None, :, [4], :6])], words(5), words(7))


def test_narrow_weights_may_round_above_one() -> None:
    attention = torch.eye(3).expand(1, 1, 3, 3).bfloat16() * 1.0005
    assert model.view(attention, words(3)).attention.max() <= 1


@pytest.mark.parametrize(
    ("attentions", "tokens", "keys", "said"),
    [
        (None, words(9), None, "attentions is None.*output_attentions=True"),
        ((weights()[0], None), words(9), None, r"attentions\[1\] is None.*attn_implementation='eager'"),
        ((), words(9), None, "at least one layer"),
        (weights()[0, 0], words(9), None, r"\(n_head, queries, keys\).*\[0\] has \(9,\)"),
        (weights()[:, None].expand(2, 4, 3, 9, 9), words(9), None, r"index batch= of the text.*\(4, 3, 9, 9\)"),
        ((weights()[0], weights()[0, :2]), words(9), None, r"same shape: attentions\[0\] has \(3, 9, 9\).*\[1\] \(2"),
        (weights(), words(8), None, "9 queries, found 8 tokens"),
        (weights(), "nine letters", None, "tokens must be a list of texts"),
        (weights(), [1] * 9, None, "tokens must be a list of texts"),
        (weights(queries=5), words(5), None, "5 queries and 9 keys: cross-attention needs key_tokens"),
        (weights(queries=5), words(5), words(8), "9 keys, found 8 key_tokens"),
        (weights().index_fill(3, torch.tensor(4), torch.nan), words(9), None, "nan in layer 0, head 0, query 0, key 4"),
        (weights() * 3, words(9), None, "from 0 to 1, after the softmax: found"),
        (weights() - 0.5, words(9), None, "from 0 to 1, after the softmax: found -0"),
        (torch.zeros(2, 3, 0, 0), [], None, "must have heads, queries and keys"),
    ],
)
def test_what_cannot_be_drawn_is_refused(attentions: Any, tokens: Any, keys: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){said}"):
        model.view(attentions, tokens, keys)


def test_what_a_notebook_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = model.view(weights(), ["</script><b>", *words(8)])
    drawn = shown._repr_html_()
    assert drawn is not None and drawn.startswith("<iframe sandbox")
    assert "<b>" not in drawn and repr(shown).count("\n") == 2 and "no model to ask" in repr(shown)
    monkeypatch.setattr(drawing, "MAX_SHOWN_BYTES", 900)
    assert shown._repr_html_() is None and "too many for a notebook" in repr(shown)
    assert model.view(weights(causal=True), words(9))._repr_html_()  # half as many
    with pytest.raises(ValueError, match="too many"):
        shown.show()
