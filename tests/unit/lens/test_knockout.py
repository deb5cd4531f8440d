"""The knock-out map against whole passes with one head removed: with a head mask, and by hooks in transformers."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import GPT2LMHeadModel

from helpers.models import max_difference, prompt_ids, tiny_model
from model import InputError, LoadedModel
from model.lens import text_pass
from model.lens.knockout import METHODS, Method, knockout, removal
from model.lens.text_pass import TextPass

IDS = prompt_ids(12)


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model(n_layer=3, n_embd=24, n_head=4)


def losses(logits: Tensor) -> Tensor:
    return F.cross_entropy(logits[:-1], torch.tensor(IDS[1:]), reduction="none")


def test_zero_ablation_equals_a_masked_pass(tiny: LoadedModel) -> None:
    found = knockout(TextPass(tiny.gpt, IDS))
    plain = losses(tiny.trace(IDS).logits)
    assert found.loss == pytest.approx(float(plain.mean()), abs=1e-5)
    assert max_difference(found.token_loss, plain) < 1e-5
    for layer in range(3):
        for head in range(4):
            mask = torch.ones(3, 4)
            mask[layer, head] = 0
            expected = losses(tiny.trace(IDS, head_mask=mask).logits) - plain
            assert max_difference(found.token_delta[layer, head], expected) < 1e-5
            assert float(found.delta[layer, head]) == pytest.approx(float(expected.mean()), abs=1e-5)
    assert found.delta.abs().max() > 0.05  # the heads of this model matter


@pytest.mark.parametrize("method", METHODS)
def test_knockout_equals_transformers_with_hooks(tiny: LoadedModel, method: Method, tmp_path: Path) -> None:
    tiny.save(tmp_path)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ids = torch.tensor([IDS])
    with torch.inference_mode():
        plain = losses(theirs(ids).logits[0])
        found = knockout(TextPass(tiny.gpt, IDS), method=method)
        for layer in range(3):
            for head in range(4):

                def remove(_module: object, inputs: tuple[Tensor], head: int = head) -> tuple[Tensor]:
                    context = inputs[0].clone()
                    part = context[..., 6 * head : 6 * head + 6]
                    part[:] = 0 if method == "zero" else part.mean(1, keepdim=True)
                    return (context,)

                hook = theirs.transformer.h[layer].attn.c_proj.register_forward_pre_hook(remove)
                expected = losses(theirs(ids).logits[0]) - plain
                hook.remove()
                assert max_difference(found.token_delta[layer, head], expected) < 1e-4


@pytest.mark.parametrize("method", METHODS)
def test_removal_of_several_heads(tiny: LoadedModel, method: Method, tmp_path: Path) -> None:
    tiny.save(tmp_path)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ids, heads = torch.tensor([IDS]), [(0, 1), (0, 3), (2, 0)]
    text = TextPass(tiny.gpt, IDS)
    found = removal(text, heads, method=method)
    with torch.inference_mode():
        plain = losses(theirs(ids).logits[0])
        contexts: list[Tensor] = []  # of the text as it is
        blocks = theirs.transformer.h
        keep = [
            block.attn.c_proj.register_forward_pre_hook(lambda _, inputs: contexts.append(inputs[0]))
            for block in blocks
        ]
        theirs(ids)
        for hook in keep:
            hook.remove()
        for layer, block in enumerate(blocks):

            def remove(_module: object, inputs: tuple[Tensor], layer: int = layer) -> tuple[Tensor]:
                context = inputs[0].clone()
                for head in (head for where, head in heads if where == layer):
                    part = slice(6 * head, 6 * head + 6)
                    context[..., part] = 0 if method == "zero" else contexts[layer][..., part].mean(1, keepdim=True)
                return (context,)

            block.attn.c_proj.register_forward_pre_hook(remove)
        expected = losses(theirs(ids).logits[0]) - plain
    assert max_difference(found.token_delta, expected) < 1e-4
    assert found.delta == pytest.approx(float(expected.mean()), abs=1e-5)
    one = removal(text, [(1, 2)], method=method)
    assert max_difference(one.token_delta, knockout(text, method=method).token_delta[1, 2]) < 1e-5
    assert removal(text, [], method=method).token_delta.abs().max() == 0
    with pytest.raises(InputError, match="a layer below 3 and a head below 4, found 'layer 3, head 0'"):
        removal(text, [(3, 0)])


def test_result_does_not_depend_on_batch_size(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    together = knockout(TextPass(tiny.gpt, IDS)).token_delta
    monkeypatch.setattr(text_pass, "TOKENS_AT_ONCE", 3 * len(IDS))  # four heads in batches of three and one
    monkeypatch.setattr(text_pass, "LOGITS_AT_ONCE", 7 * 65)
    fractions: list[float] = []
    assert max_difference(knockout(TextPass(tiny.gpt, IDS), progress=fractions.append).token_delta, together) < 1e-5
    assert len(fractions) == 6 and fractions == sorted(fractions) and fractions[-1] == pytest.approx(1)


def test_knockout_of_muted_heads_has_no_effect(tiny: LoadedModel) -> None:
    mask = torch.ones(3, 4)
    mask[1, 2] = 0
    found = knockout(TextPass(tiny.gpt, IDS, mask))
    assert found.token_delta[1, 2].abs().max() < 1e-6  # removing a head again changes nothing
    other = mask.clone()
    other[0, 1] = 0
    expected = losses(tiny.trace(IDS, head_mask=other).logits) - losses(tiny.trace(IDS, head_mask=mask).logits)
    assert max_difference(found.token_delta[0, 1], expected) < 1e-5


def test_invalid_arguments_are_refused(tiny: LoadedModel) -> None:
    with pytest.raises(InputError, match="method must be 'zero' or 'mean', found 'half'"):
        knockout(TextPass(tiny.gpt, IDS), method="half")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two tokens"):
        knockout(TextPass(tiny.gpt, IDS[:1]))
