"""Rungs 9 and 10 of the ladder: a block and its parts, compared with torch and with the model's own forward pass."""

from functools import partial
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from helpers.models import tiny_model
from model import ladder
from model.gpt import Block
from model.ladder.averages import VECTOR_LENGTH, trained_words
from model.ladder.block import block_by_ladder, block_by_model
from model.ladder.terms import largest_difference
from model.lens.text_pass import TextPass

IDS = [1, 5, 2, 2, 7, 0, 3]
# The module of a block whose output is a stage, and whether the stage is its input instead.
HOOKED = {
    "normed": "ln_1",
    "heads": "attn.c_proj input",
    "attended": "attn.c_proj",
    "resid_mid": "ln_2 input",
    "mlp_input": "ln_2",
    "hidden": "mlp.c_fc",
    "activated": "mlp.c_proj input",
    "mlp_output": "mlp",
}


def test_layer_norm_equals_torch() -> None:
    x = torch.randn(4, 10, generator=torch.Generator().manual_seed(1)) * 3 + 1
    weight, bias = torch.linspace(0.5, 2, 10), torch.linspace(-1, 1, 10)
    expected = F.layer_norm(x, (10,), weight, bias, eps=1e-5)
    torch.testing.assert_close(ladder.layer_norm(x, weight, bias), expected)


@pytest.mark.parametrize(("exact", "form"), [(False, "tanh"), (True, "none")])
def test_gelu_equals_torch(exact: bool, form: str) -> None:
    x = torch.linspace(-6, 6, 101)
    torch.testing.assert_close(ladder.gelu(x, exact), F.gelu(x, approximate=form))


@pytest.mark.parametrize(
    "changes", [{}, {"scale_attn_by_inverse_layer_idx": True}, {"activation_function": "gelu", "qkv_bias": False}]
)
def test_the_stages_of_a_block_are_those_of_a_forward_pass(changes: dict[str, Any]) -> None:
    gpt = tiny_model(3, n_layer=2, n_head=4, n_embd=32, **changes).gpt
    text_pass = TextPass(gpt, IDS)
    for layer in range(2):
        block, seen = cast(Block, gpt.h[layer]), {}

        def keep(name: str, is_input: bool, _: Any, inputs: tuple[Tensor, ...], output: Any, seen: Any = seen) -> None:
            seen[name] = (inputs[0] if is_input else output)[0]

        hooks = [
            block.get_submodule(place.split()[0]).register_forward_hook(partial(keep, name, place.endswith("input")))
            for name, place in HOOKED.items()
        ]
        with torch.inference_mode():
            attention = gpt(torch.tensor([IDS]), record=[layer]).attention[layer][0]
        for hook in hooks:
            hook.remove()
        stages = block_by_ladder(block, text_pass.stream[layer][0])
        for name, expected in seen.items():
            assert largest_difference(getattr(stages, name), expected) <= 2e-5, name
        assert seen.keys() == HOOKED.keys()
        assert largest_difference(stages.weights, attention) <= 1e-5
        assert largest_difference(stages.after, text_pass.stream[layer + 1][0]) <= 2e-5
        theirs = block_by_model(block, text_pass.stream[layer][0])
        assert all(largest_difference(getattr(stages, name), stage) <= 2e-5 for name, stage in theirs.items())


def test_words_in_three_trained_numbers_keep_their_dot_products_best() -> None:
    loaded = tiny_model(3, n_embd=32)
    words = ["To", "be", "or", "not", "at", "home"]
    reduced, whole = trained_words(loaded, words), trained_words(loaded, words, size=32)
    assert reduced is not None and whole is not None and reduced.x.shape == (len(words), 3)
    found, full = reduced.x, whole.x @ whole.x.T
    torch.testing.assert_close(reduced.products, full)
    torch.testing.assert_close(full.diagonal(), torch.full((len(words),), VECTOR_LENGTH**2.0))
    values = torch.linalg.eigvalsh(full)
    error = (full - found @ found.T).norm()
    assert error.item() == pytest.approx(values[:-3].norm().item(), abs=1e-5)  # Eckart & Young
    assert trained_words(loaded, ["\U0001f98a"]) is None
    assert (found.gather(0, found.abs().argmax(dim=0, keepdim=True)) > 0).all()
