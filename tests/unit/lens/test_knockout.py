"""The knockout map, compared with whole passes with one head removed, by a head mask or by hooks in transformers."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import GPT2LMHeadModel

from helpers.files import ROOT
from helpers.models import max_difference, prompt_ids, tiny_model
from model import InputError, LoadedModel, load
from model.lens import text_pass
from model.lens.interventions.knockout import knockout, removal
from model.lens.interventions.reference import METHODS, Method, contexts_of, mean_contexts, shipped_passages
from model.lens.text_pass import TextPass
from model.tokenizer import CharTokenizer

IDS = prompt_ids(12)


OTHER = prompt_ids(12, seed=3)
REFERENCE = [prompt_ids(5, seed=1), prompt_ids(9, seed=2)]


def reference_for(loaded: LoadedModel, method: Method) -> Tensor | None:
    if method == "mean":
        return mean_contexts(loaded.gpt, REFERENCE)
    return contexts_of(TextPass(loaded.gpt, OTHER)) if method == "resample" else None


class Theirs:
    """The same model in transformers, in float64, and what replaces its heads' context vectors."""

    def __init__(self, loaded: LoadedModel, folder: Path) -> None:
        loaded.save(folder)
        self.gpt = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float64).eval()
        self.blocks = self.gpt.transformer.h

    def logits(self, ids: list[int]) -> Tensor:
        found: Tensor = self.gpt(torch.tensor([ids])).logits[0]
        return found

    def contexts(self, ids: list[int]) -> list[Tensor]:
        """The input ``(T, C)`` of each layer's output projection."""
        found: list[Tensor] = []
        hooks = [
            block.attn.c_proj.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0][0]))
            for block in self.blocks
        ]
        self.logits(ids)
        for hook in hooks:
            hook.remove()
        return found

    def instead(self, method: Method) -> list[Tensor]:
        """What replaces each layer's context vectors, ``(T or 1, C)``."""
        own = self.contexts(IDS)
        match method:
            case "zero":
                return [torch.zeros_like(x) for x in own]
            case "text_mean":
                return [x.mean(0, keepdim=True) for x in own]
            case "resample":
                return self.contexts(OTHER)
        texts = [self.contexts(ids) for ids in REFERENCE]
        return [torch.cat(layers).mean(0, keepdim=True) for layers in zip(*texts, strict=True)]

    def losses_without(self, heads: list[tuple[int, int]], instead: list[Tensor]) -> Tensor:
        hooks = []
        for layer, head in heads:

            def remove(_module: object, inputs: tuple[Tensor], layer: int = layer, head: int = head) -> tuple[Tensor]:
                context, part = inputs[0].clone(), slice(6 * head, 6 * head + 6)
                context[0, :, part] = instead[layer][:, part]
                return (context,)

            hooks.append(self.blocks[layer].attn.c_proj.register_forward_pre_hook(remove))
        found = losses(self.logits(IDS))
        for hook in hooks:
            hook.remove()
        return found


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
@torch.inference_mode()
def test_knockout_equals_transformers_with_hooks(tiny: LoadedModel, method: Method, tmp_path: Path) -> None:
    theirs = Theirs(tiny, tmp_path)
    found = knockout(TextPass(tiny.gpt, IDS), method=method, reference=reference_for(tiny, method))
    plain, instead = losses(theirs.logits(IDS)), theirs.instead(method)
    for layer in range(3):
        for head in range(4):
            expected = theirs.losses_without([(layer, head)], instead) - plain
            assert max_difference(found.token_delta[layer, head], expected) < 1e-5


@pytest.mark.parametrize("method", METHODS)
@torch.inference_mode()
def test_removal_of_several_heads(tiny: LoadedModel, method: Method, tmp_path: Path) -> None:
    theirs, heads = Theirs(tiny, tmp_path), [(0, 1), (0, 3), (2, 0)]
    text, reference = TextPass(tiny.gpt, IDS), reference_for(tiny, method)
    found = removal(text, heads, method=method, reference=reference)
    expected = theirs.losses_without(heads, theirs.instead(method)) - losses(theirs.logits(IDS))
    assert max_difference(found.token_delta, expected) < 1e-5
    assert found.delta == pytest.approx(float(expected.mean()), abs=1e-5)
    one = removal(text, [(1, 2)], method=method, reference=reference)
    alone = knockout(text, method=method, reference=reference).token_delta[1, 2]
    assert max_difference(one.token_delta, alone) < 1e-5
    assert removal(text, [], method=method, reference=reference).token_delta.abs().max() == 0
    with pytest.raises(InputError, match="a layer below 3 and a head below 4, found 'layer 3, head 0'"):
        removal(text, [(3, 0)])


def test_reference_mean_does_not_depend_on_later_tokens(tiny: LoadedModel) -> None:
    changed = [*IDS[:-1], (IDS[-1] + 1) % 60]
    texts = [TextPass(tiny.gpt, ids) for ids in (IDS, changed)]
    one, other = (knockout(text, method="mean", reference=reference_for(tiny, "mean")) for text in texts)
    assert max_difference(one.token_delta[..., :-1], other.token_delta[..., :-1]) < 1e-5
    one, other = (knockout(text, method="text_mean") for text in texts)
    assert max_difference(one.token_delta[..., :-1], other.token_delta[..., :-1]) > 1e-3


def test_shipped_passages_fit_every_shipped_model() -> None:
    for folder in sorted(path.parent for path in (ROOT / "checkpoints").glob("*/config.json")):
        loaded = load(folder, device="cpu", dtype="float32")
        passages = shipped_passages(loaded)
        assert len(passages) == 24 and all(2 < len(ids) <= 64 for ids in passages)
    with pytest.raises(InputError, match="knows none of the shipped passages"):
        shipped_passages(tiny_model(0, CharTokenizer.train("abc")))


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
    with pytest.raises(InputError, match="method must be 'zero', 'mean', 'text_mean' or 'resample', found 'half'"):
        knockout(TextPass(tiny.gpt, IDS), method="half")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two tokens"):
        knockout(TextPass(tiny.gpt, IDS[:1]))
    with pytest.raises(InputError, match=r"reference must be context vectors of the shape \(3, 1, 4, 6\)"):
        knockout(TextPass(tiny.gpt, IDS), method="mean")
    with pytest.raises(
        InputError, match=r"of the shape \(3, 12, 4, 6\) for the method 'resample', found \(3, 5, 4, 6\)"
    ):
        knockout(TextPass(tiny.gpt, IDS), method="resample", reference=contexts_of(TextPass(tiny.gpt, IDS[:5])))
