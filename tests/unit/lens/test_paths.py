"""Cut paths compared with full passes with hooks, and the evidence that a head feeds an induction head."""

from typing import Any

import pytest
import torch
from torch import Tensor

import model
from helpers.files import ROOT
from helpers.models import max_difference, prompt_ids
from model import InputError, LoadedModel
from model.lens import text_pass
from model.lens.head_roles import repeated_tokens
from model.lens.interventions.paths import cut_paths, patch_paths
from model.lens.interventions.reference import Method
from model.lens.interventions.role_paths import role_cuts
from model.lens.text_pass import TextPass

IDS = prompt_ids(9)
LAYER, HEAD = 2, 1


def projections(loaded: LoadedModel, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values ``(T, 6)`` of the head, from the stream ``(T, C)`` before its layer."""
    block = loaded.gpt.h[LAYER]
    query, key, value = block.attn.c_attn(block.ln_1(x)).split(24, -1)
    part = slice(6 * HEAD, 6 * HEAD + 6)
    return query[:, part], key[:, part], value[:, part]


def softmax_rows(query: Tensor, key: Tensor) -> Tensor:
    scores = query @ key.T / 6**0.5
    return scores.masked_fill(torch.ones(len(query), len(key)).triu(1).bool(), -torch.inf).softmax(-1)


@torch.inference_mode()
def stream_without(loaded: LoadedModel, earlier: int, head: int, route: str, instead: Tensor | None) -> Tensor:
    """The stream before the layer: by a forward hook that replaces a head with its mean, or by subtraction.

    ``instead`` is what replaces its context vectors, by default their mean over this text.
    """
    kept: list[Tensor] = []
    gpt, part = loaded.gpt, slice(6 * head, 6 * head + 6)
    contexts: list[Tensor] = []

    def replace(_module: object, inputs: tuple[Tensor]) -> tuple[Tensor]:
        context = inputs[0].clone()
        mean = context[0, :, part].mean(0) if instead is None else instead
        contexts.append(context[0, :, part] - mean)
        context[..., part] = mean
        return inputs if route == "direct" else (context,)

    between = [gpt.h[layer].attn.c_proj for layer in range(earlier + 1, LAYER)] if route == "mlps" else []
    own: list[tuple[Tensor, ...]] = []
    for output in between:  # each pass adds the context vectors of one layer
        handle = output.register_forward_pre_hook(lambda _module, inputs: own.append(inputs))
        gpt(torch.tensor([IDS]))
        handle.remove()
    hooks = [
        *(
            output.register_forward_pre_hook(lambda *_, plain=plain: plain)
            for output, plain in zip(between, own, strict=True)
        ),
        gpt.h[earlier].attn.c_proj.register_forward_pre_hook(replace),
        gpt.h[LAYER].register_forward_pre_hook(lambda _module, inputs: kept.append(inputs[0][0])),
    ]
    gpt(torch.tensor([IDS]))
    for hook in hooks:
        hook.remove()
    if route != "direct":
        return kept[0]
    return kept[0] - contexts[0] @ gpt.h[earlier].attn.c_proj.weight[:, part].T


@pytest.mark.parametrize("method", ["text_mean", "mean"])
@pytest.mark.parametrize("at_once", [4096, 3 * len(IDS)])
def test_paths_equal_whole_passes_with_hooks(
    tiny: LoadedModel, at_once: int, method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_pass, "TOKENS_AT_ONCE", at_once)
    text, fractions = TextPass(tiny.gpt, IDS), list[float]()
    reference = torch.randn(3, 1, 4, 6, generator=torch.Generator().manual_seed(0)) if method == "mean" else None
    options: Any = {"method": method, "reference": reference, "progress": fractions.append}
    found = cut_paths(text, layer=LAYER, head=HEAD, **options).moved
    query, key, value = projections(tiny, text.stream[LAYER][0])
    plain = softmax_rows(query, key)
    output = tiny.gpt.h[LAYER].attn.c_proj.weight[:, 6 * HEAD : 6 * HEAD + 6]
    for route, ways in found.items():
        expected = {way: torch.zeros(LAYER, 4) for way in ways}
        for earlier in range(LAYER):
            for head in range(4):
                instead = None if reference is None else reference[earlier, 0, head]
                cut = projections(tiny, stream_without(tiny, earlier, head, route, instead))
                for way, rows in (("q", softmax_rows(cut[0], key)), ("k", softmax_rows(query, cut[1]))):
                    expected[way][earlier, head] = (rows - plain)[1:].abs().sum(-1).mean() / 2  # type: ignore[index]
                before, after = (plain @ values @ output.T for values in (value, cut[2]))
                expected["v"][earlier, head] = ((after - before).norm(dim=-1) / before.norm(dim=-1)).mean()
        for way in ways:
            assert max_difference(ways[way], expected[way]) < 1e-5
    assert fractions == sorted(fractions) and fractions[-1] == 1
    assert found["direct"]["k"].max() > 0.01
    last = {route: {way: of[way][LAYER - 1] for way in of} for route, of in found.items()}
    assert max_difference(last["direct"]["k"], last["every"]["k"]) > 1e-4  # an MLP stands between, even there


def test_first_layer_has_no_earlier_heads(tiny: LoadedModel) -> None:
    found = cut_paths(TextPass(tiny.gpt, IDS), layer=0, head=0, method="zero").moved
    assert all(effect.shape == (0, 4) for ways in found.values() for effect in ways.values())


def test_invalid_arguments_are_refused(tiny: LoadedModel) -> None:
    text = TextPass(tiny.gpt, IDS)
    for place, field in (({"layer": 3, "head": 0}, "layer"), ({"layer": 1, "head": -1}, "head")):
        with pytest.raises(InputError, match=f"{field} must be an integer from 0 to"):
            cut_paths(text, **place)
        with pytest.raises(InputError, match=f"{field} must be an integer from 0 to"):
            role_cuts([text], **place)
    other = TextPass(tiny.gpt, [*IDS[:-1], IDS[-1] ^ 1])
    for chosen in ({"layer": 1}, {"layer": 1, "head": 0, "receivers": [(2, 0)]}, {"receivers": [(3, 0)]}):
        with pytest.raises(InputError, match="both layer and head|in the place of|a layer below 3"):
            patch_paths(text, other, **chosen)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="way must be 'q' or 'k'"):
        role_cuts([text], layer=1, head=0, way="v")


def test_roles_are_those_of_the_attention_weights(tiny: LoadedModel) -> None:
    ids = prompt_ids(6) * 2
    found = role_cuts([TextPass(tiny.gpt, ids)], layer=LAYER, head=HEAD)
    attention = tiny.trace(ids).attention[LAYER, HEAD]
    for role, back in (("previous_token", 1), ("duplicate_token", 6), ("induction", 5)):
        expected = sum(float(attention[q, q - back]) for q in range(6, 12)) / 6
        assert found.plain[role] == pytest.approx(expected, abs=1e-6)  # type: ignore[index]
    assert found.uniform == pytest.approx(sum(1 / (q + 1) for q in range(6, 12)) / 6)


def test_the_previous_token_head_feeds_the_induction_head_of_the_shipped_model() -> None:
    """Cut L0 H2 out of the keys of L1 H2 and its induction score falls, at every step since it formed."""
    for step, fallen_to in (("000831", 0.10), ("003000", 0.20)):
        loaded = model.load(ROOT / "checkpoints" / f"two-layer-steps@{step}", device="cpu", dtype="float32")
        texts = [TextPass(loaded.gpt, ids) for ids in repeated_tokens(loaded, 4, 64, seed=0).tolist()]
        found = role_cuts(texts, layer=1, head=2)
        cut = found.cut["every"]["induction"][0]
        assert found.plain["induction"] > 0.7 and float(cut[2]) < fallen_to
        assert float(cut[[0, 3]].min()) > 0.9 * found.plain["induction"]  # these two do not matter
        assert int(found.cut["direct"]["induction"][0].argmin()) == 2
        assert float(found.cut["direct"]["induction"][0, 2]) > 0.5  # most of it goes through the MLP of layer 0
