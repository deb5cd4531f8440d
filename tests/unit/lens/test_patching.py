"""Activation patching compared with hooks in transformers, and the page's examples."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

import model
from helpers.files import ROOT
from helpers.models import max_difference, prompt_ids, tiny_model
from model import InputError, LoadedModel
from model.lens import text_pass
from model.lens.interventions.patch_run import DIRECTIONS, Direction
from model.lens.interventions.patching import Patching, patch
from model.lens.text_pass import TextPass

CLEAN = prompt_ids(10)
CORRUPTED = [*CLEAN[:3], *prompt_ids(4, seed=1), *CLEAN[7:]]
ANSWER, WRONG = 5, 9


def patched(
    loaded: LoadedModel, clean: list[int] = CLEAN, corrupted: list[int] = CORRUPTED, **options: Any
) -> Patching:
    given = {"answer": ANSWER, "wrong": WRONG} | options
    return patch(TextPass(loaded.gpt, clean), TextPass(loaded.gpt, corrupted), **given)


@pytest.mark.parametrize("direction", DIRECTIONS)
@torch.inference_mode()
def test_patching_equals_transformers_with_hooks(tiny: LoadedModel, tmp_path: Path, direction: Direction) -> None:
    tiny.save(tmp_path)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    blocks = theirs.transformer.h
    together = [(0, 1), (2, 3), (0, 2)]
    found = patched(tiny, direction=direction, heads=together)
    source, into = (CLEAN, CORRUPTED) if direction == "denoise" else (CORRUPTED, CLEAN)

    def difference(ids: list[int]) -> float:
        logits = theirs(torch.tensor([ids])).logits[0, -1]
        return float(logits[ANSWER] - logits[WRONG])

    kept: dict[Any, Tensor] = {}

    def keep(name: Any) -> Any:
        return lambda _module, inputs: kept.update({name: inputs[0].clone()})

    places = [*blocks, theirs.transformer.ln_f]  # before each layer, and after the last
    hooks = [place.register_forward_pre_hook(keep(("stream", i))) for i, place in enumerate(places)]
    hooks += [block.attn.c_proj.register_forward_pre_hook(keep(("context", i))) for i, block in enumerate(blocks)]
    difference(source)
    for hook in hooks:
        hook.remove()
    assert found.clean == pytest.approx(difference(CLEAN), abs=1e-4)
    assert found.corrupted == pytest.approx(difference(CORRUPTED), abs=1e-4)

    def with_patches(*places: tuple[Any, Any, Any]) -> float:
        """Each place is a module, its recorded output, and the part of the output that is patched in."""

        def patch(name: Any, part: Any) -> Any:
            def put(_module: object, inputs: tuple[Tensor]) -> tuple[Tensor]:
                x = inputs[0].clone()
                x[part] = kept[name][part]
                return (x,)

            return put

        hooks = [module.register_forward_pre_hook(patch(name, part)) for module, name, part in places]
        try:
            return difference(into)
        finally:
            for hook in hooks:
                hook.remove()

    def head(layer: int, index: int) -> tuple[Any, Any, Any]:
        return blocks[layer].attn.c_proj, ("context", layer), (..., slice(6 * index, 6 * index + 6))

    heads = [[with_patches(head(layer, index)) for index in range(4)] for layer in range(len(blocks))]
    residual = [[with_patches((place, ("stream", i), (0, p))) for p in range(10)] for i, place in enumerate(places)]
    assert found.heads is not None and found.residual is not None
    assert max_difference(found.raw["heads"], torch.tensor(heads)) < 1e-4
    assert max_difference(found.raw["residual"], torch.tensor(residual)) < 1e-4
    assert found.raw["joint"] == pytest.approx(with_patches(*(head(*place) for place in together)), abs=1e-4)


def test_several_heads_without_the_grid(tiny: LoadedModel) -> None:
    both = patched(tiny, heads=[(1, 2)])
    alone = patched(tiny, heads=[(1, 2)], grid=False)
    assert alone.heads is None and alone.residual is None and alone.joint == both.joint
    assert both.joint == pytest.approx(float(both.heads[1, 2]), abs=1e-5)
    every = [(layer, head) for layer in range(3) for head in range(4)]
    # The prompts end alike, and nothing but heads carries anything to the last position.
    assert patched(tiny, heads=every).raw["joint"] == pytest.approx(both.clean, abs=1e-5)
    # Noising one run is the same as denoising the other.
    there = patched(tiny, direction="noise", heads=every)
    back = patched(tiny, CORRUPTED, CLEAN, heads=every)
    assert there.raw["joint"] == pytest.approx(back.raw["joint"], abs=1e-5)
    assert max_difference(there.raw["heads"], back.raw["heads"]) < 1e-5


def test_identities_of_the_definition(tiny: LoadedModel) -> None:
    found = patched(tiny)
    restored = found.residual
    assert restored[:, :3].abs().max() == 0  # nothing differs before position 3
    assert restored[-1, -1] == pytest.approx(1, abs=1e-5)  # everything that the logits are computed from
    assert restored[-1, :-1].abs().max() < 1e-5
    same = patched(tiny, CLEAN, [*CLEAN[:-1], 3])  # prompts that differ in the last token only
    assert same.residual[:, -1] == pytest.approx(torch.ones(4), abs=1e-5)
    back = patched(tiny, CORRUPTED, CLEAN)
    assert (back.clean, back.corrupted) == pytest.approx((found.corrupted, found.clean), abs=1e-5)


def test_result_does_not_depend_on_batch_size(tiny: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    together, fractions = patched(tiny), list[float]()
    monkeypatch.setattr(text_pass, "TOKENS_AT_ONCE", 3 * len(CLEAN))
    apart = patched(tiny, progress=fractions.append)
    assert max_difference(apart.heads, together.heads) < 1e-5
    assert max_difference(apart.residual, together.residual) < 1e-5
    assert fractions == sorted(fractions) and fractions[-1] == pytest.approx(1) and len(fractions) > 10


def test_invalid_arguments_are_refused(tiny: LoadedModel) -> None:
    with pytest.raises(InputError, match="same number of tokens.*prompt has 10, corrupted has 9"):
        patched(tiny, corrupted=CORRUPTED[1:])
    with pytest.raises(InputError, match="Both prompts are the same"):
        patched(tiny, corrupted=CLEAN)
    with pytest.raises(InputError, match="two different tokens"):
        patched(tiny, wrong=ANSWER)
    with pytest.raises(InputError, match="direction.*'denoise' or 'noise'"):
        patched(tiny, direction="back")
    with pytest.raises(InputError, match="found 'layer 3, head 0'"):
        patched(tiny, heads=[(3, 0)])
    # Where every token has the same embeddings, no prompt favours anything over what another one does.
    other = tiny_model(n_layer=3, n_embd=24, n_head=4, tie_word_embeddings=False)
    other.gpt.wte.weight[:] = other.gpt.wte.weight[0]
    with pytest.raises(InputError, match="Both prompts give a logit difference of .* nothing to restore"):
        patched(other)


# ---- The examples on the page ----------------------------------------------------------------------------------------

EXAMPLES: list[dict[str, Any]] = json.loads(
    (ROOT / "web" / "js" / "look" / "ask" / "questions" / "patching_examples.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["model"])
def test_example_shows_the_stated_effect(example: dict[str, Any]) -> None:
    loaded = model.load(ROOT / "checkpoints" / example["model"], device="cpu", dtype="float32")
    texts = [TextPass(loaded.gpt, loaded.tokenizer.encode(example[name])) for name in ("prompt", "corrupted")]
    tokens = [loaded.tokenizer.encode(example[name]) for name in ("answer", "wrong")]
    (answer,), (wrong,) = tokens
    assert example["tokens"] == [*texts[0].ids, answer]  # the text that the page opens
    found = patch(*texts, answer=answer, wrong=wrong)
    assert found.clean > 2 and found.corrupted < -2
    restored = found.heads
    together = [(layer, head) for layer, head in example["carriers"]]
    assert patch(*texts, answer=answer, wrong=wrong, heads=together, grid=False).joint > 0.6
    carriers = sum(float(restored[layer, head]) for layer, head in example["carriers"])
    assert carriers > 0.8
    strongest = restored.flatten().argsort(descending=True)[: len(example["carriers"])]
    n_head = loaded.config.n_head
    assert sorted(divmod(int(i), n_head) for i in strongest) == sorted(map(tuple, example["carriers"]))
    mask = torch.ones(loaded.config.n_layer, n_head)
    for layer, head in example["carriers"]:
        mask[layer, head] = 0
    # Muting the carriers takes the answer away.
    logits = [loaded.trace(example["prompt"], head_mask=m).logits[-1].softmax(-1) for m in (None, mask)]
    assert float(logits[1][answer]) < float(logits[0][answer]) / 3
