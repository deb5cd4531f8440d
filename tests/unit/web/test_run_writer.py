"""A run while it is written: recorded events, ignored ones, and the effect of a context shift."""

from typing import Any

import pytest
import torch

from helpers.engine import recorded_events
from helpers.models import max_difference, tiny_model
from helpers.oracles.pipelines import PIPELINES
from model import LoadedModel
from model.drawing.weight_buffer import lower_triangle
from model.serving.sequence import ContextShift
from model.tokenizer import from_spec
from web.runs.store import Runs, RunWriter


def writer_of(loaded: LoadedModel, n_new: int, prompt: str = "ab") -> RunWriter:
    runs = Runs()
    return RunWriter(runs, runs.new(loaded, loaded.parse_prompt(prompt), n_new))


def of_one_text(events: list[Any]) -> list[tuple[int, Any]]:
    return [(0, event) for event in events]


def test_it_takes_a_text_as_it_is_written(loaded: LoadedModel) -> None:
    writer = writer_of(loaded, 5)
    for event in recorded_events(loaded, "ab", 6):  # the sixth only reads the fifth
        writer.take(of_one_text([event]), stopped=False)
    writer.end()
    run = writer.run
    assert run.ids == loaded.parse_prompt("ab") + [step.token_id for step in loaded.generate("ab", 5, seed=1)]
    assert run.recording.n_rows == len(run.ids) == 7 and not run.writing
    found = torch.frombuffer(bytearray(writer.runs.exact.picture(run, 1, 2, 0)), dtype=torch.float32)
    assert max_difference(found, lower_triangle(loaded.trace(run.ids).attention[1, 2])) <= 1e-5


def test_text_after_the_end_is_ignored(loaded: LoadedModel) -> None:
    writer = writer_of(loaded, 5)
    prompt, first, *later = recorded_events(loaded, "ab", 6)
    writer.take(of_one_text([prompt, first]), stopped=False)
    writer.end()
    before = list(writer.run.ids)
    writer.take(of_one_text(later), stopped=False)
    writer.end()
    assert writer.run.ids == before and len(before) == 3


def test_the_last_step_of_a_stopped_text_only_reads(loaded: LoadedModel) -> None:
    writer = writer_of(loaded, 30)
    *events, last = recorded_events(loaded, "ab", 4)
    writer.take(of_one_text(events), stopped=False)
    n_before = len(writer.run.ids)
    writer.take(of_one_text([last]), stopped=True)
    writer.end()
    assert len(writer.run.ids) == n_before == writer.run.recording.n_rows


def test_a_shift_continues_in_another_run(loaded: LoadedModel) -> None:
    context, n_new = loaded.config.context_length, 100
    writer = writer_of(loaded, n_new)
    first = writer.run
    events = list(recorded_events(loaded, "ab", n_new + 1, context_shift=True))
    writer.take(of_one_text(events), stopped=False)
    writer.end()
    shifts = [event for event in events if isinstance(event, ContextShift)]
    assert shifts and writer.run is not first and not first.writing
    assert len(first.ids) == context + 1 and first.recording.n_rows == context
    assert writer.run.ids[: len(shifts[-1].ids)] == shifts[-1].ids
    assert writer.run.n_earlier + len(writer.run.ids) == 2 + n_new
    text = writer.run.earlier + loaded.tokenizer.decode(writer.run.ids)
    assert text.startswith("ab") and len(text) == 2 + n_new  # a character a token
    assert writer.runs.get(first.id) is first and writer.run.recording.n_rows == len(writer.run.ids)


@pytest.mark.parametrize("name", ["llama 2", "llama 3", "qwen 2"])
def test_the_dropped_text_is_whole(name: str) -> None:
    """A space that begins a later part stays, and so does a character that two parts share."""
    tokenizer = from_spec(PIPELINES[name]())
    given = tokenizer.encode_prompt("one two é three 日本 four")
    runs, most = Runs(), len(given)
    run = runs.new(tiny_model(tokenizer=tokenizer, context_length=most), given, most)
    while len(run.ids) > 2:
        run = runs.shifted(run, run.ids[2:])
    assert run.earlier == tokenizer.decode(given[: run.n_earlier]) and len(run.earlier) > 20
