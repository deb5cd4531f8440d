"""int8 is close to float32, and its texts do not depend on the rest of the batch."""

from pathlib import Path

import pytest
import torch
from torch import nn

import model
from helpers.models import max_difference, prompt_ids, tiny_model
from helpers.serve_once import ROOT
from helpers.texts import Texts
from model.checkpoint import load as precision
from model.kernels.int8 import Int8Linear, is_exact
from model.sampling import SamplingSettings
from model.serving.engine import Engine
from model.serving.sequence import TextSequence
from model.train.data import encode
from model.train.losses import validation_loss

pytestmark = pytest.mark.skipif(not is_exact(), reason="int8 products are not exact on this processor")
SHIPPED = ROOT / "checkpoints" / "shakespeare-char"


@pytest.fixture(scope="module")
def int8() -> model.LoadedModel:
    return model.load(SHIPPED, device="cpu", dtype="int8")


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(24,), (1, 24), (2, 5, 24), (17, 24)])
def test_layer_is_the_product_of_rounded_values(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(24, 40, bias=bias)
    x = torch.randn(shape if len(shape) > 1 else (1, *shape)) * 3
    layer = Int8Linear(linear)
    assert layer.weight.dtype == torch.int8 and layer.weight.abs().amax(1).eq(127).all()
    scale = x.abs().amax(-1, keepdim=True).double() / 127
    expected = (x / scale).round() * scale @ (layer.weight.double() * layer.scale[:, None].double()).T
    expected = expected + (linear.bias if bias else 0)
    assert max_difference(layer(x), expected) < 1e-4
    assert max_difference(layer(x), linear(x)) < 0.05


def test_no_rows_give_no_rows() -> None:
    assert Int8Linear(nn.Linear(8, 5))(torch.zeros(0, 3, 8)).shape == (0, 3, 5)


def test_zeros_stay_zeros() -> None:
    linear = nn.Linear(8, 8, bias=False)
    nn.init.zeros_(linear.weight)
    assert not Int8Linear(linear)(torch.randn(2, 8)).any()
    assert not Int8Linear(nn.Linear(8, 8, bias=False))(torch.zeros(2, 8)).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data"), [("shakespeare-char", "tinyshakespeare"), ("stories-bpe", "tinystories-valid")]
)
def test_int8_loss_is_close_to_float32(name: str, data: str, texts: Texts) -> None:
    text = texts.read(data)[-1_000:]  # which no model was trained on
    losses = []
    for dtype in ("float32", "int8"):
        loaded = model.load(SHIPPED.with_name(name), device="cpu", dtype=dtype)
        losses.append(validation_loss(loaded.gpt, encode(loaded.tokenizer, text), loaded.config.context_length))
    assert abs(losses[1] - losses[0]) <= 0.005


def test_int8_logits_are_close_to_float32(int8: model.LoadedModel) -> None:
    exact = model.load(SHIPPED, device="cpu", dtype="float32")
    text = "ROMEO:\nI do beseech your royal grace:\nI know not what you have; good nurse, gentle Nurse."
    one, other = int8.trace(text), exact.trace(text)
    assert max_difference(one.logits.softmax(-1), other.logits.softmax(-1)) < 0.05
    assert max_difference(one.attention, other.attention) < 0.05
    ids = torch.tensor([token.id for token in other.tokens[1:]])
    losses = [nn.functional.cross_entropy(trace.logits[:-1], ids) for trace in (one, other)]
    assert abs(losses[0] - losses[1]) < 0.01


@pytest.mark.slow
def test_text_does_not_depend_on_the_batch(int8: model.LoadedModel) -> None:
    written: list[list[int]] = [[] for _ in range(8)]
    engine = Engine(int8)
    for i, ids in enumerate(written):
        request = int8.request(prompt_ids(3 + i, seed=i), 20, sampling=SamplingSettings(temperature=0.8), seed=i)
        engine.submit(TextSequence(request, int8, lambda event, ids=ids: ids.append(event.token_id)))
    while engine.active or engine.queue:
        engine.step()
    for i, ids in enumerate(written):
        alone = int8.generate(prompt_ids(3 + i, seed=i), 20, temperature=0.8, seed=i)
        assert ids == [step.token_id for step in alone]


def test_shown_attention_is_that_of_the_int8_model(int8: model.LoadedModel) -> None:
    steps = list(int8.generate("ROMEO:", 12, seed=1, record=True))
    trace = int8.trace(int8.parse_prompt("ROMEO:") + [step.token_id for step in steps[:-1]])
    for n, step in enumerate(steps):
        assert max_difference(step.attention, trace.attention[:, :, 5 + n, : 6 + n]) < 0.02
        assert max_difference(step.logits, trace.logits[5 + n]) < 0.2


def test_int8_dtype_is_reported_and_saving_is_refused(int8: model.LoadedModel, tmp_path: Path) -> None:
    assert int8.dtype == torch.int8
    with pytest.raises(ValueError, match="int8 cannot be saved"):
        int8.save(tmp_path / "saved")
    assert tiny_model().dtype == torch.float32
    with pytest.raises(ValueError, match="requires a CPU"):
        precision.choose_dtype("int8", int8.config, torch.device("meta"))
