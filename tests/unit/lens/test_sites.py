"""Patching every site, exactly and by attribution, and paths, compared with hooks in transformers in float64."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

from helpers.models import max_difference, prompt_ids, tiny_config, tiny_model
from model import InputError, LoadedModel
from model.config import RotaryConfig
from model.lens.interventions.patch_run import DIRECTIONS, Direction
from model.lens.interventions.patching import patch_site
from model.lens.interventions.paths import patch_paths
from model.lens.interventions.sites import SITE_NAMES, SITES, find_site, layer_activations
from model.lens.text_pass import TextPass

CLEAN = prompt_ids(8)
CORRUPTED = [*CLEAN[:3], *prompt_ids(3, seed=1), *CLEAN[6:]]
ANSWER, WRONG = 5, 9
# The sites whose activations can be given to a module of transformers.
PATCHED = ["resid_pre", "q", "k", "v", "pattern", "z", "attn_out", "resid_mid", "mlp_post", "mlp_out", "resid_post"]
N_LAYER, N_HEAD, SIZE, T = 2, 4, 6, 8


@pytest.fixture(scope="module")
def tiny() -> LoadedModel:
    return tiny_model(n_layer=N_LAYER, n_embd=24, n_head=N_HEAD)


class Theirs:
    """The model in transformers, with every activation of a text, and runs in which some are replaced."""

    def __init__(self, loaded: LoadedModel, folder: Path) -> None:
        loaded.save(folder)
        self.gpt = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
        self.blocks = self.gpt.transformer.h

    def difference(self, ids: list[int]) -> Tensor:
        logits = self.gpt(torch.tensor([ids])).logits[0, -1]
        found: Tensor = logits[ANSWER] - logits[WRONG]
        return found

    def activations(self, ids: list[int], layer: int) -> dict[str, Tensor]:
        """``(T, ...)`` by site; heads and neurons are the second dimension, and a pattern is ``(T, n_head, T)``."""
        block, found, hooks = self.blocks[layer], dict[str, Tensor](), []

        def keep(module: Any, name: str, of_input: bool = False) -> None:
            def hook(_module: Any, inputs: Any, output: Any) -> None:
                x = inputs[0] if of_input else output[0] if isinstance(output, tuple) else output
                found[name] = x.reshape(-1, *x.shape[-1:]) if x.dim() == 3 else x

            hooks.append(module.register_forward_hook(hook))

        keep(block.ln_1, "resid_pre", of_input=True)
        keep(block.attn.c_attn, "qkv")
        keep(block.attn.c_proj, "z", of_input=True)
        keep(block.attn, "attn_out")
        keep(block.ln_2, "resid_mid", of_input=True)
        keep(block.mlp.c_proj, "mlp_post", of_input=True)
        keep(block.mlp, "mlp_out")
        attention = self.gpt(torch.tensor([ids]), output_attentions=True).attentions[layer][0]
        for hook in hooks:
            hook.remove()
        found |= dict(zip("qkv", found.pop("qkv").split(24, -1), strict=True))
        found = {name: x.unflatten(-1, (N_HEAD, SIZE)) if name in "qkvz" else x for name, x in found.items()}
        return found | {"pattern": attention.transpose(0, 1), "resid_post": found["resid_mid"] + found["mlp_out"]}

    def run_with(self, ids: list[int], layer: int, site: str, value: Tensor) -> Tensor:
        """The logit difference if the activation of a site were ``value``, as ``activations`` gives it."""
        block, own = self.blocks[layer], self.activations(ids, layer)
        into_output: Callable[[Any], Any] = lambda module: module.register_forward_hook  # noqa: E731
        into_input: Callable[[Any], Any] = lambda module: module.register_forward_pre_hook  # noqa: E731

        def output(x: Tensor) -> Any:
            return lambda _module, _inputs, out: (x[None], *out[1:]) if isinstance(out, tuple) else x[None]

        def given(x: Tensor) -> Any:
            return lambda _module, inputs: (x[None], *inputs[1:])

        match site:
            case "resid_pre":
                hook = into_input(block)(given(value))
            case "q" | "k" | "v":
                parts = own | {site: value}
                hook = into_output(block.attn.c_attn)(output(torch.cat([parts[name].flatten(1) for name in "qkv"], -1)))
            case "pattern":
                context = torch.einsum("qhk,khd->qhd", value, own["v"])
                hook = into_input(block.attn.c_proj)(given(context.flatten(1)))
            case "z":
                hook = into_input(block.attn.c_proj)(given(value.flatten(1)))
            case "attn_out":
                hook = into_output(block.attn)(output(value))
            case "resid_mid":
                hook = into_output(block.attn)(output(value - own["resid_pre"]))
            case "mlp_post":
                hook = into_input(block.mlp.c_proj)(given(value))
            case "mlp_out":
                hook = into_output(block.mlp)(output(value))
            case _:
                hook = into_output(block.mlp)(output(value - own["resid_mid"]))
        found = self.difference(ids)
        hook.remove()
        return found


@pytest.fixture(scope="module")
def theirs(tiny: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Theirs:
    return Theirs(tiny, tmp_path_factory.mktemp("theirs"))


@torch.inference_mode()
def test_activations_equal_transformers_with_hooks(tiny: LoadedModel, theirs: Theirs) -> None:
    text = TextPass(tiny.gpt, CLEAN)
    for layer in range(N_LAYER):
        expected = theirs.activations(CLEAN, layer)
        found = dict(zip(PATCHED, layer_activations(text, layer, [SITES[name] for name in PATCHED]), strict=True))
        found["pattern"] = found["pattern"].transpose(1, 2)  # heads come first, unlike in ``Theirs``
        assert all(max_difference(x[0], expected[site]) < 1e-5 for site, x in found.items())


def texts(loaded: LoadedModel) -> tuple[TextPass, TextPass]:
    return TextPass(loaded.gpt, CLEAN), TextPass(loaded.gpt, CORRUPTED)


def put(own: Tensor, other: Tensor, position: int | slice, component: int | None) -> Tensor:
    x = own.clone()
    at: Any = position if component is None else (position, component)
    x[at] = other[at]
    return x


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("site", PATCHED)
def test_site_patching_equals_transformers_with_hooks(
    tiny: LoadedModel, theirs: Theirs, site: str, direction: Direction
) -> None:
    into, source = (CORRUPTED, CLEAN) if direction == "denoise" else (CLEAN, CORRUPTED)
    neurons = [(0, 3), (1, 95), (0, 50)] if site == "mlp_post" else None
    component = SITES[site].component
    places: list[tuple[int, int | None]] = (
        [(layer, i) for layer in range(N_LAYER) for i in (range(N_HEAD) if component else [None])]
        if neurons is None
        else [*neurons]
    )
    for each_position in (True, False):
        positions: list[int | slice] = [*range(T)] if each_position else [slice(None)]
        found = patch_site(
            *texts(tiny),
            answer=ANSWER,
            wrong=WRONG,
            site=site,
            direction=direction,
            positions="each" if each_position else "all",
            neurons=neurons,
            estimate=True,
        )
        assert found.exact is not None and found.estimate is not None and found.exact.shape == found.estimate.shape
        assert len(found.axes) == found.exact.dim() and ("position" in found.axes) == each_position
        exact, estimate = (x.reshape(len(places), len(positions)) for x in found.raw.values())
        for i, (layer, index) in enumerate(places):
            own, other = (theirs.activations(ids, layer)[site] for ids in (into, source))
            leaf = own.detach().requires_grad_()
            plain = theirs.run_with(into, layer, site, leaf)
            (slope,) = torch.autograd.grad(plain, [leaf])
            for j, position in enumerate(positions):
                value = put(own, other, position, index)
                with torch.inference_mode():
                    expected = theirs.run_with(into, layer, site, value)
                assert float(exact[i, j]) == pytest.approx(float(expected), abs=1e-5)
                change = ((value - own) * slope).sum()
                assert float(estimate[i, j]) == pytest.approx((plain + change).item(), abs=1e-5)
        if found.exact.numel() > 3:
            pair = torch.stack([found.exact.flatten(), found.estimate.flatten()])
            assert found.correlation == pytest.approx(float(torch.corrcoef(pair)[0, 1]), abs=1e-4)


@torch.inference_mode()
def test_path_patching_equals_transformers_with_hooks(tiny: LoadedModel, theirs: Theirs) -> None:
    layer, head = 1, 2
    for direction in DIRECTIONS:
        into, source = (CORRUPTED, CLEAN) if direction == "denoise" else (CLEAN, CORRUPTED)
        found = patch_paths(*texts(tiny), layer=layer, head=head, answer=ANSWER, wrong=WRONG, direction=direction)
        own, other = (theirs.activations(ids, 0) for ids in (into, source))
        above = theirs.activations(into, layer)
        for earlier in range(N_HEAD):
            z = put(own["z"], other["z"], slice(None), earlier)
            kept: list[Tensor] = []
            hooks = [
                theirs.blocks[0].attn.c_proj.register_forward_pre_hook(lambda _, __, z=z: (z.flatten(1)[None],)),
                theirs.blocks[layer].register_forward_pre_hook(lambda _, inputs, kept=kept: kept.append(inputs[0])),
            ]
            theirs.difference(into)
            for hook in hooks:
                hook.remove()
            part = slice(SIZE * earlier, SIZE * earlier + SIZE)
            added = (z - own["z"])[:, earlier] @ theirs.blocks[0].attn.c_proj.weight[part]
            for route, stream in (("every", kept[0]), ("direct", above["resid_pre"][None] + added)):
                block = theirs.blocks[layer]
                cut = dict(zip("qkv", block.attn.c_attn(block.ln_1(stream))[0].split(24, -1), strict=True))
                for way in "qkv":
                    value = put(above[way], cut[way].unflatten(-1, (N_HEAD, SIZE)), slice(None), head)
                    expected = float(theirs.run_with(into, layer, way, value))
                    ours = found.effects[route][way][0, earlier]  # type: ignore[index]
                    assert float(ours) == pytest.approx(expected, abs=1e-5)
        assert found.restored(found.clean) == 1 and found.restored(found.corrupted) == 0


def test_sites_are_found_by_their_names() -> None:
    every: dict[str, Any] = {"gated_mlp": True, "norm": "RMSNorm", "norm_place": "both"}
    config, rotary = tiny_config(), tiny_config(rotary=RotaryConfig(n_dim=4), **every)
    for site in SITES.values():
        names = [site.name, site.hook, site.hook.rpartition(".")[2]]
        for name in names[: 2 if site.hook.startswith("ln") else 3]:
            assert name in SITE_NAMES and find_site(rotary, name) == (site, None)
            for of_one in (f"blocks.1.{name}", f"blocks.1*{site.hook}"):
                assert find_site(rotary, of_one) == (site, 1)
    assert find_site(config, "attention pattern")[0].name == "pattern" and find_site(config, "neuron")[1] is None
    refused = (
        "",
        "blocks.x.hook_z",
        "hook_",
        "embed",
        "blocks.2.hook_z",
        "blocks.1.",
        "rot_q",
        "mlp_pre_linear",
        "hook_scale",
        "hook_embed",
        "ln_final.hook_scale",
        "blocks.1.*",
    )
    by_list = "site must be one of resid_pre, .*, or TransformerLens's name .* 0 to 1"
    for name in refused:
        message = {
            "blocks.2.hook_z": "site must be a point of a layer from 0 to 1",
            "blocks.x.hook_z": "site must be the name of a point, such as blocks.1.attn.hook_z",
        }.get(name, by_list)
        with pytest.raises(InputError, match=message):
            find_site(config, name)
    with pytest.raises(InputError):
        find_site(tiny_config(parallel=True), "resid_mid")


def test_a_name_with_a_layer_means_that_layer(tiny: LoadedModel) -> None:
    given: dict[str, Any] = {"answer": ANSWER, "wrong": WRONG, "positions": "all", "estimate": True}
    whole, one = (patch_site(*texts(tiny), site=site, **given) for site in ("z", "blocks.1.attn.hook_z"))
    assert one.exact is not None and whole.exact is not None and one.axes == whole.axes
    assert one.estimate is not None and whole.estimate is not None
    assert torch.equal(one.exact, whole.exact[1:]) and torch.equal(one.estimate, whole.estimate[1:])


def test_a_metric_of_ones_own(tiny: LoadedModel) -> None:
    given: dict[str, Any] = {"site": "z", "positions": "all", "estimate": True}
    plain = patch_site(*texts(tiny), answer=ANSWER, wrong=WRONG, **given)
    own = patch_site(*texts(tiny), metric=lambda logits: logits[0, -1, ANSWER] - logits[0, -1, WRONG], **given)
    for ours, theirs in ((own.exact, plain.exact), (own.estimate, plain.estimate)):
        assert ours is not None and theirs is not None and max_difference(ours, theirs) < 1e-5
    assert own.answer is None and own.to_dict()["answer"] is None
    loss = tiny.patch(CLEAN, CORRUPTED, metric=lambda logits: -logits.log_softmax(-1)[0, :-1].mean())
    assert loss.heads is not None and loss.heads.shape == (N_LAYER, N_HEAD)
    with pytest.raises(InputError, match="metric must be a function that gives one number, found 'one that gives"):
        tiny.patch_site(CLEAN, CORRUPTED, "z", metric=lambda logits: logits)
    with pytest.raises(InputError, match="stands in the place of answer and wrong"):
        tiny.patch_site(CLEAN, CORRUPTED, "z", answer=ANSWER, metric=lambda logits: logits.sum())
    with pytest.raises(InputError, match="An estimate takes the gradient of metric"):
        tiny.patch_site(
            CLEAN, CORRUPTED, "z", metric=lambda logits: logits[0, -1, 3].item(), exact=False, estimate=True
        )
    with pytest.raises(InputError, match="Both prompts give a metric of 0"):
        tiny.patch_site(CLEAN, CORRUPTED, "z", metric=lambda logits: 0.0)


def test_bad_neurons_are_refused(tiny: LoadedModel) -> None:
    given: dict[str, Any] = {"answer": ANSWER, "wrong": WRONG}
    with pytest.raises(InputError, match="Name the neurons"):
        patch_site(*texts(tiny), **given, site="mlp_post")
    with pytest.raises(InputError, match="at sites of the MLP's neurons only, found z"):
        patch_site(*texts(tiny), **given, site="z", neurons=[(0, 0)])
    with pytest.raises(InputError, match="a neuron below 96, found 'layer 0, neuron 96'"):
        patch_site(*texts(tiny), **given, site="mlp_post", neurons=[(0, 96)])
    every = patch_site(*texts(tiny), **given, site="mlp_post", positions="all", exact=False, estimate=True)
    assert every.exact is None and every.estimate is not None and every.estimate.shape == (N_LAYER, 96)
    assert every.correlation is None


def test_masked_head_has_no_effect(tiny: LoadedModel) -> None:
    mask, fractions = torch.ones(N_LAYER, N_HEAD), list[float]()
    mask[0, 1] = 0
    pair = [TextPass(tiny.gpt, ids, mask) for ids in (CLEAN, CORRUPTED)]
    for site in ("z", "v"):
        found = patch_site(
            *pair, answer=ANSWER, wrong=WRONG, site=site, positions="all", estimate=True, progress=fractions.append
        )
        plain = torch.tensor(found.corrupted)
        assert found.exact is not None and max_difference(found.raw["exact"][0, 1], plain) < 5e-6  # the head is removed
        assert found.estimate is not None and max_difference(found.raw["estimate"][0, 1], plain) < 1e-6
        assert fractions == sorted(fractions) and fractions[-1] == 1
        fractions.clear()


def test_each_position_is_the_deprecated_spelling_of_positions(tiny: LoadedModel) -> None:
    for each_position, positions in ((True, "each"), (False, "all")):
        with pytest.deprecated_call(match="positions='each' or 'all'"):
            old = tiny.patch_site(CLEAN, CORRUPTED, "z", each_position=each_position)
        new = tiny.patch_site(CLEAN, CORRUPTED, "z", positions=positions)  # type: ignore[arg-type]
        assert old.axes == new.axes and old.exact is not None and new.exact is not None
        assert torch.equal(old.exact, new.exact)
