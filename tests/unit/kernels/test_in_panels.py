"""Layers that share their weights with the loops: everything that uses a model gets the same results as before."""

from pathlib import Path
from typing import Any

import pytest
import torch

import model
from helpers.models import max_difference, prompt_ids, tiny_model
from model.config import RotaryConfig
from model.kernels import int8
from model.kernels import pack as in_panels
from model.kernels.pack import PanelLinear, pack
from model.lens.float32 import float32_bytes, in_float32

SHAPE: Any = {"n_layer": 2, "n_head": 3, "n_embd": 42}  # no whole number of panels, nor of groups


LLAMA: Any = SHAPE | {
    "n_kv_head": 1,
    "rotary": RotaryConfig(n_dim=14),
    "norm": "RMSNorm",
    "activation_function": "silu",
    "gated_mlp": True,
    "qkv_bias": False,
    "attn_proj_bias": False,
    "mlp_bias": False,
}


@pytest.fixture(params=["float32", "float16", "bfloat16", "int8", "Llama"])
def loaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> model.LoadedModel:
    """A model whose weights are stored in one of the ways that the loops know."""
    monkeypatch.setattr(in_panels, "MIN_PANEL_BYTES", 0)
    tiny = tiny_model(**(LLAMA if request.param == "Llama" else SHAPE))
    if request.param == "float16":
        tiny.gpt.half().float()
    elif request.param == "bfloat16":
        tiny.gpt.bfloat16()
    elif request.param == "int8":
        int8.quantize(tiny.gpt)
    return tiny


def test_weights_are_unchanged(loaded: model.LoadedModel) -> None:
    gpt = loaded.gpt
    before, wide = gpt.state_dict(), in_float32(gpt).state_dict()
    pack(gpt, share=True)
    after = gpt.state_dict()
    assert set(before) - set(after) <= {name for name in before if name.endswith("scale")}
    for name, tensor in after.items():
        assert tensor.dtype == before[name].dtype and torch.equal(tensor, before[name]), name
    copy = in_float32(gpt)
    assert all(torch.equal(tensor, wide[name]) for name, tensor in copy.state_dict().items())
    assert (copy.lm_head.weight is copy.wte.weight) == (gpt.lm_head.weight is gpt.wte.weight)
    own = {tensor.data_ptr() for tensor in [*gpt.parameters(), *gpt.buffers()]}
    found = {tensor.data_ptr(): tensor.nbytes for tensor in copy.state_dict().values()}
    assert float32_bytes(gpt) == sum(nbytes for address, nbytes in found.items() if address not in own)


@pytest.mark.slow
def test_trace_is_unchanged(loaded: model.LoadedModel) -> None:
    ids = prompt_ids(20)
    before = loaded.trace(ids)
    pack(loaded.gpt, share=True)
    assert isinstance(loaded.gpt.h[0].attn.c_attn, PanelLinear)
    after = loaded.trace(ids)
    within = {torch.bfloat16: 0.05, torch.int8: 0.05}.get(loaded.dtype, 1e-5)
    assert max_difference(before.attention, after.attention) < within
    assert max_difference(before.logits.softmax(-1), after.logits.softmax(-1)) < within
    assert after.logits.dtype == before.logits.dtype


@pytest.mark.slow
def test_products_are_shared_between_threads(loaded: model.LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(loaded.gpt, share=True)
    layer, x = loaded.gpt.h[1].mlp.c_fc, torch.randn(2, 10, SHAPE["n_embd"])
    alone = layer(x)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(layer(x), alone)


def test_model_in_panels_can_be_packed_again(loaded: model.LoadedModel) -> None:
    first = pack(loaded.gpt, share=True)
    second = pack(loaded.gpt)
    assert (first.panels == second.panels).all() and (first.scales == second.scales).all()


def test_saved_files_are_unchanged(loaded: model.LoadedModel, tmp_path: Path) -> None:
    if loaded.dtype == torch.int8:
        return  # is never saved
    pack(loaded.gpt, share=True)
    loaded.save(tmp_path / "saved")
    again = model.load(tmp_path / "saved", dtype=str(loaded.dtype).removeprefix("torch."))
    assert all(torch.equal(tensor, loaded.gpt.state_dict()[name]) for name, tensor in again.gpt.state_dict().items())


def test_small_models_keep_their_own_weights() -> None:
    tiny = tiny_model(**SHAPE)
    pack(tiny.gpt, share=True)
    assert not any(isinstance(module, PanelLinear) for module in tiny.gpt.modules())
