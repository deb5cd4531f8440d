"""Writing many texts from Python gives each the text that it would have alone."""

import pytest

from helpers.engine import KERNELS
from helpers.models import prompt_ids
from model import BatchWriter, InputError, LoadedModel, PromptError
from model.generate import generate
from model.sampling import SamplingSettings
from model.serving import writer as writer_module

PROMPTS = [prompt_ids(1 + 3 * i, seed=i) for i in range(7)]


@pytest.fixture(params=["torch", "compiled"])
def writer(request: pytest.FixtureRequest, tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> BatchWriter:
    if request.param == "torch":
        monkeypatch.setattr(writer_module, "choose_reader", lambda *_: None)
    return BatchWriter(tiny, n_streams=3, cache=KERNELS)


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.9, "top_k": 20, "repetition_penalty": 1.2}])
def test_texts_equal_those_written_alone(tiny: LoadedModel, writer: BatchWriter, sampling: dict[str, float]) -> None:
    settings = SamplingSettings(**sampling)
    for _ in range(2):  # nothing is left of the first texts
        texts = writer.write(PROMPTS, 30, seed=5, stop="zq", **sampling)
        for place, (prompt, text) in enumerate(zip(PROMPTS, texts, strict=True)):
            request = tiny.request(prompt, 30, sampling=settings, seed=5, stop="zq", choice=(place, 0))
            assert text == "".join(step.text for step in generate(tiny.gpt, tiny.begin(request))), place


def test_muted_heads_stay_muted(tiny: LoadedModel, writer: BatchWriter) -> None:
    mask = [[0.0] * tiny.config.n_head] * 3
    (muted,) = writer.write(PROMPTS[:1], 30, temperature=0, head_mask=mask)
    assert muted == "".join(step.text for step in tiny.generate(PROMPTS[0], 30, temperature=0, head_mask=mask))
    assert [muted] != writer.write(PROMPTS[:1], 30, temperature=0)


def test_invalid_request_starts_nothing(writer: BatchWriter) -> None:
    with pytest.raises(PromptError):
        writer.write([PROMPTS[0], ""], 5)
    with pytest.raises(InputError, match="temperature"):
        writer.write(PROMPTS, 5, temperature=-1)
    assert writer.write([], 5) == []


def test_errors_are_raised(tiny: LoadedModel, writer: BatchWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(writer_module.TextSequence, "add", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            writer.write(PROMPTS, 5)
    assert writer.write(PROMPTS[:1], 5, temperature=0) == [
        "".join(step.text for step in tiny.generate(PROMPTS[0], 5, temperature=0))
    ]
