"""A recording compared with plain loops over the same weights, whatever the order of arrival."""

import math

import pytest
import torch
from torch import Tensor

from helpers import also_slow
from model.drawing import pictures
from model.drawing import recording as recording_module
from model.drawing.metrics import DISTANCES, FRAME_MEASURES, METRICS
from model.drawing.pictures import last_rows, picture_index
from model.drawing.recording import Recording
from model.drawing.summary import Summary, compile_summaries
from model.drawing.thumbnails import encode_weights, tile
from model.drawing.weight_buffer import lower_triangle, triangle


@pytest.fixture(params=["torch", "loops"], autouse=True)
def summarised_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Summary, "summarise", None)
    if request.param == "loops":
        compile_summaries()
        assert Summary.summarise


def causal(n_layer: int, n_head: int, T: int, seed: int = 0) -> Tensor:
    """Random attention weights ``(n_layer, n_head, T, T)``: lower triangles whose rows sum to 1."""
    scores = 3 * torch.randn(n_layer, n_head, T, T, generator=torch.Generator().manual_seed(seed))
    return torch.softmax(scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf), -1)


def every_picture(attention: Tensor) -> list[Tensor]:
    """All pictures in the order of their index, from the formulas in float64."""
    T = attention.shape[2]
    attention = attention.double()
    pictures, rolled = [], torch.eye(T, dtype=torch.float64)
    for layer in attention:
        rolled = 0.5 * (layer.mean(0) + torch.eye(T)) @ rolled
        pictures += [*layer, layer.mean(0), rolled]
    return [*pictures, attention.flatten(0, 1).mean(0)]


def recorded(attention: Tensor, prompt: int, looks: tuple[int, ...] = (), **options: bool) -> Recording:
    """Filled as a text is written: the prompt at once, then row by row, with reads in between."""
    n_layer, n_head, T, _ = attention.shape
    recording = Recording(n_layer, n_head, T, **options)
    if prompt:
        recording.extend(attention[:, :, :prompt, :prompt])
    for q in range(prompt, T):
        recording.append(attention[:, :, q, : q + 1])
        if q in looks:
            recording.thumbnails()
    return recording


@pytest.mark.parametrize(
    ("T", "prompt", "looks"), [(7, 0, ()), (65, 65, ()), (66, 3, (10, 11)), *also_slow((300, 40, (41, 128, 129, 257)))]
)
@pytest.mark.parametrize(("n_layer", "n_head"), [(3, 4), (1, 1)])
def test_every_picture_is_exact_for_any_arrival_of_its_rows(
    monkeypatch: pytest.MonkeyPatch, n_layer: int, n_head: int, T: int, prompt: int, looks: tuple[int, ...]
) -> None:
    monkeypatch.setattr(pictures, "ROLLOUT_ROWS", 16)
    attention = causal(n_layer, n_head, T)
    recording = recorded(attention, prompt, looks)
    expected = every_picture(attention)
    assert recording.n_pictures == len(expected)
    for place in range(recording.n_pictures):
        layer, column = divmod(place, n_head + 2) if place < recording.n_pictures - 1 else (n_layer, n_head)
        assert picture_index(layer, column, n_layer, n_head) == place
        found = torch.frombuffer(
            bytearray(recording.picture(layer, column, 0, lambda n: torch.zeros(n, n))), dtype=torch.float32
        )
        lower = expected[place][torch.ones(T, T).tril().bool()].float()
        torch.testing.assert_close(found, lower, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("T", "prompt", "looks"), [(7, 0, ()), (65, 65, ()), (66, 3, (10, 11)), *also_slow((300, 40, (41, 128, 129, 257)))]
)
def test_thumbnails_hold_the_largest_of_each_tile_with_a_separate_first_token(
    monkeypatch: pytest.MonkeyPatch, T: int, prompt: int, looks: tuple[int, ...]
) -> None:
    monkeypatch.setattr(recording_module, "POOLED_AT_ONCE", 3 * T)
    attention = causal(2, 3, T)
    n_rows, factor, first, data = recorded(attention, prompt, looks).thumbnails()
    side = tile(T - 1, factor) + 1
    assert (n_rows, first) == (T, 0) and side <= 65 and (factor == 1 or tile(T - 1, factor // 2) >= 65)
    expected = torch.zeros(len(every_picture(attention)), side, side)
    for place, weights in enumerate(every_picture(attention)):
        for q in range(T):
            for k in range(q + 1):
                a, b = math.ceil(q / factor), math.ceil(k / factor)
                expected[place, a, b] = max(expected[place, a, b], weights[q, k])
    found = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(len(expected), -1)
    lower = encode_weights(expected)[:, torch.ones(side, side).tril().bool()]
    assert int((found.int() - lower.int()).abs().max()) <= 1  # a mean may round the other way


def test_metrics_are_means_over_the_queries() -> None:
    T = 20
    attention = causal(2, 3, T)
    found = recorded(attention, 5, (9,)).metrics()
    for place, weights in enumerate(every_picture(attention)):
        sums = dict.fromkeys(METRICS, 0.0)
        for q in range(1, T):
            row = weights[q, : q + 1].tolist()
            sums["entropy"] -= sum(w * math.log2(w) for w in row if w)
            sums["distance"] += sum(w * (q - k) for k, w in enumerate(row))
            sums["first"] += row[0]
            sums["previous"] += row[q - 1]
            sums["uniform"] += sum(abs(w - 1 / (q + 1)) for w in row) / 2
        means = {name: total / (T - 1) for name, total in sums.items()}
        for n in DISTANCES:
            means[f"{n} back"] = sum(float(weights[q, q - n]) for q in range(n, T)) / (T - n)
        for name, value in zip(FRAME_MEASURES, found[place].tolist(), strict=True):
            assert value == pytest.approx(means[name], abs=1e-5), (place, name)


def test_a_recording_may_go_without_rollouts() -> None:
    attention, T = causal(3, 2, 30), 30
    with_rollout, without = (recorded(attention, 20, has_rollout=has_rollout) for has_rollout in (True, False))
    assert without.working_bytes == 0 < with_rollout.working_bytes
    is_rollout = torch.tensor([index % 4 == 3 for index in range(without.n_pictures)])
    assert without.metrics()[is_rollout].isnan().all()
    assert torch.equal(without.metrics()[~is_rollout], with_rollout.metrics()[~is_rollout])
    cells = [
        torch.frombuffer(bytearray(r.thumbnails().cells), dtype=torch.uint8).view(13, -1)
        for r in (with_rollout, without)
    ]
    assert torch.equal(cells[1][~is_rollout], cells[0][~is_rollout]) and not cells[1][is_rollout].any()
    rows = last_rows(layer[:, -1:] for layer in attention)  # as they are computed again
    assert rows[is_rollout].isnan().all()
    exact = torch.stack([weights[T - 1] for weights in every_picture(attention)]).float()
    torch.testing.assert_close(rows[~is_rollout], exact[~is_rollout], atol=1e-6, rtol=0)


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_recording_returns_its_state_at_fewer_rows(is_finished: bool) -> None:
    T = 150
    attention = causal(2, 3, T)
    recording = recorded(attention, 5)
    if is_finished:
        recording.finish()
    for until in (3, 9, 66, 80, 20, 133):  # one goes back
        then = recorded(attention[:, :, :until, :until], 5 if until > 5 else until)
        assert recording.thumbnails(0, until)[:3] == then.thumbnails()[:3]
        for start in (0, until - 2):
            found, expected = recording.thumbnails(start, until).cells, then.thumbnails(start).cells
            difference = torch.frombuffer(bytearray(found), dtype=torch.uint8).int() - torch.frombuffer(
                bytearray(expected), dtype=torch.uint8
            )
            assert int(difference.abs().max()) <= 1
        torch.testing.assert_close(recording.metrics(until), then.metrics(), atol=1e-5, rtol=1e-6)
    whole = recording.thumbnails()
    for until in (T - 2, T, T + 9):  # about as many
        assert recording.thumbnails(0, until) == whole
        assert recording.metrics(until).equal(recording.metrics())


def test_where_not_all_weights_are_kept_it_tells_what_it_is() -> None:
    recording = recorded(causal(2, 3, 40), 5, keep_weights=False)
    newest = recording.thumbnails()
    assert newest.n_rows == 40 and recording.thumbnails(0, 20) == newest


def test_few_rows_are_stored_only_if_they_are_needed() -> None:
    attention = causal(2, 3, 40)
    recording = recorded(attention, 0)
    own = attention[1, 2]

    def rows(start: int, until: int | None) -> Tensor:
        content = recording.picture(1, 2, start, lambda n: own[:n, :n], until)
        return torch.frombuffer(bytearray(content), dtype=torch.float32)

    assert rows(0, 20).equal(lower_triangle(own[:32, :32])) and len(recording.pending) == 8
    assert recording.thumbnails(0, 20).n_rows == 20 and len(recording.pending) == 8
    assert rows(32, 33).equal(lower_triangle(own)[triangle(32) :]) and not recording.pending
    assert rows(0, None).equal(lower_triangle(own))


def test_a_single_token_has_no_metrics() -> None:
    assert recorded(causal(1, 2, 1), 1).metrics().abs().max() == 0


def test_layers_may_come_in_groups_and_rows_after_them() -> None:
    attention, T = causal(4, 2, 30), 30
    recording = Recording(4, 2, T)
    for layers in (range(0, 1), range(1, 3), range(3, 4)):
        recording.extend(attention[layers.start : layers.stop, :, :25, :25], layers)
    for q in range(25, T):
        recording.append(attention[:, :, q, : q + 1])
    whole = recorded(attention, T)
    for place in ((0, 0), (3, 1), (2, 2), (2, 3), (3, 3), (4, 2)):
        a, b = (
            torch.frombuffer(bytearray(r.picture(*place, 0, lambda n: n)), dtype=torch.float32)
            for r in (recording, whole)
        )
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)
    torch.testing.assert_close(recording.metrics(), whole.metrics(), atol=1e-5, rtol=0)


def test_a_picture_that_was_not_kept_is_recomputed_and_grows_on() -> None:
    attention, T = causal(3, 2, 40), 40
    recording = Recording(3, 2, T, keep_weights=False)
    recording.extend(attention[:, :, :10, :10])
    asked: list[int] = []

    def look(layer: int, column: int) -> Tensor:
        def recompute(n: int) -> Tensor:
            asked.append(n)
            return every_picture(attention[:, :, :n, :n])[picture_index(layer, column, 3, 2)].float()

        return torch.frombuffer(bytearray(recording.picture(layer, column, 0, recompute)), dtype=torch.float32)

    places = {(1, 0): 4, (1, 2): 6, (2, 3): 11, (3, 2): 12}
    for place in places:
        look(*place)
    for q in range(10, T):
        recording.append(attention[:, :, q, : q + 1])
    recording.finish()
    for place, index in places.items():
        expected = every_picture(attention)[index][torch.ones(T, T).tril().bool()].float()
        torch.testing.assert_close(look(*place), expected, atol=1e-6, rtol=0)
    assert asked == [10] * 4


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (0, 4), (2, 0), (2, 3), (3, 2)])
def test_there_is_no_other_picture(place: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=f"no picture in layer {place[0]}, column {place[1]}"):
        picture_index(*place, 2, 2)


def test_a_triangle_has_this_many_cells() -> None:
    assert [triangle(n) for n in range(5)] == [0, 1, 3, 6, 10]


@pytest.mark.parametrize("keep", [True, False])
def test_the_row_of_one_query_in_every_picture(keep: bool) -> None:
    attention, T = causal(3, 2, 30), 30
    recording = recorded(attention, 5, (9,), keep_weights=keep)
    expected = every_picture(attention)
    for q in (0, 4, 5, 29):
        found = recording.query(q, lambda n: last_rows(attention[i, :, :n, :n] for i in range(3)))
        rows = torch.frombuffer(bytearray(found), dtype=torch.float32).view(len(expected), q + 1)
        torch.testing.assert_close(rows, torch.stack([w[q, : q + 1] for w in expected]).float(), atol=1e-6, rtol=0)
    for q in (-1, T):
        with pytest.raises(ValueError, match=f"no row {q}"):
            recording.query(q, torch.zeros)
