"""Writing many texts from Python gives each the text that it would have alone."""

from pathlib import Path

import pytest

from helpers.engine import KERNELS
from helpers.models import prompt_ids, tiny_model
from model import BatchWriter, InputError, LoadedModel, PromptError, load
from model.generate import generate
from model.sampling import SamplingSettings
from model.serving import writer as writer_module

PROMPTS = [prompt_ids(1 + 3 * i, seed=i) for i in range(7)]


@pytest.fixture(params=["torch", "compiled"])
def writer(request: pytest.FixtureRequest, tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> BatchWriter:
    if request.param == "torch":
        monkeypatch.setattr(writer_module, "choose_reader", lambda *_, **__: None)
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


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_an_edit_reaches_every_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """However large the model is; in the writer, too."""
    monkeypatch.setattr("model.kernels.pack.MIN_PANEL_BYTES", 0)
    tiny_model(n_embd=32).save(tmp_path)
    loaded = load(tmp_path, dtype=dtype, device="cpu")
    writer = BatchWriter(loaded, n_streams=2, cache=KERNELS)

    def answers() -> tuple[list[str], list[float]]:
        (written,) = writer.write([PROMPTS[3]], 20, temperature=0)
        traced = loaded.trace(PROMPTS[3]).logits[-1].tolist()
        assert loaded.attribution(PROMPTS[3]).logit == pytest.approx(max(traced), abs=1e-4)
        if dtype == "float32":
            assert written == "".join(step.text for step in loaded.generate(PROMPTS[3], 20, temperature=0))
        return [written], [loaded.knockout(PROMPTS[3]).loss, *traced]

    def edit_all() -> None:
        for parameter in loaded.gpt.parameters():
            parameter.data.mul_(-2)

    def swap_heads() -> None:
        weight = loaded.gpt.h[1].attn.c_attn.weight.data
        weight[:8] = weight[:8].flip(0)

    before = answers()
    loaded.gpt.h[0].mlp.c_proj.weight.data.zero_()
    edited = answers()
    assert edited[1] != before[1]
    swap_heads()
    swapped = answers()
    assert swapped[1] != edited[1]
    edit_all()
    assert answers()[0] != before[0]
    state = {name: tensor.clone() for name, tensor in loaded.gpt.state_dict().items()}
    loaded.gpt.load_state_dict({name: 3 * x if name.endswith("ln_f.bias") else x for name, x in state.items()})
    answers()


def test_a_hook_of_torch_is_refused_by_name(tiny: LoadedModel, writer: BatchWriter) -> None:
    handle = tiny.gpt.h[0].mlp.register_forward_hook(lambda *_: None)
    with pytest.raises(InputError, match="gpt.h.0.mlp has a hook of torch's"):
        writer.write(PROMPTS, 5)
    handle.remove()


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
