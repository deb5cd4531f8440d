"""Every point of a pass with hooks, in each family, compared with hooks in transformers on the same folder."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import model
from helpers.models import max_difference, prompt_ids
from helpers.oracles.families import KINDS, ONE_OF_EACH, one_of_each_kind, reference, write
from helpers.oracles.hooks import names_of
from model.points import points

EXACT, N_TOKENS = 1e-5, 9
EMBEDDINGS = ("transformer.wte", "gpt_neox.embed_in", "model.embed_tokens", "model.decoder.embed_tokens")
POSITIONS = ("transformer.wpe", "model.decoder.embed_positions")


def expected_points(gpt: Any, ids: list[int]) -> dict[str, Tensor]:
    """The activations of a model of transformers at the points, without the batch."""
    inputs, outputs, modules = dict[str, Tensor](), dict[str, Tensor](), dict(gpt.named_modules())
    parts = names_of(gpt)

    def keep(name: str) -> Any:
        def hook(_module: Any, args: Any, kwargs: Any, output: Any) -> None:
            given = args[0] if args else kwargs.get("hidden_states")
            whole = output[0] if isinstance(output, tuple) else output
            inputs[name], outputs[name] = given.flatten(0, -2), whole.flatten(0, -2)

        return hook

    names = [name for name, module in modules.items() if name and not isinstance(module, torch.nn.ModuleList)]
    skipped = ("rotary_emb", "act", "dropout", "drop", "attn.attention")
    handles = [
        modules[name].register_forward_hook(keep(name), with_kwargs=True)
        for name in names
        if not name.endswith(skipped) and name != parts.body
    ]
    with torch.no_grad():
        attentions = gpt(torch.tensor([ids]), output_attentions=True).attentions
    for handle in handles:
        handle.remove()
    kind, config = gpt.config.model_type, gpt.config
    n_head, final = config.num_attention_heads, f"{parts.body}.{parts.final}"
    found: dict[str, Tensor] = {}

    def add_norm(at: str, name: str) -> None:
        if name not in inputs:
            return
        x, norm = inputs[name], modules[name]
        x = x - x.mean(-1, keepdim=True) if isinstance(norm, torch.nn.LayerNorm) else x
        eps = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
        found[f"{at}.hook_scale"] = (x.square().mean(-1, keepdim=True) + eps).sqrt()
        found[f"{at}.hook_normalized"] = x / found[f"{at}.hook_scale"]

    found["hook_embed"] = next(outputs[name] for name in EMBEDDINGS if name in outputs)
    if positions := [outputs[name] for name in POSITIONS if name in outputs]:
        found["hook_pos_embed"] = positions[0]
    for layer in range(config.num_hidden_layers):
        at, block = f"blocks.{layer}.", f"{parts.body}.{parts.layers}.{layer}"
        ln1, ln2, output, mlp, first, last = (
            f"{block}.{part}" for part in (parts.norm_1, parts.norm_2, parts.output, parts.mlp, parts.first, parts.last)
        )
        projected = [outputs[f"{block}.{name}"] for name in parts.projections]
        found[at + "hook_resid_pre"] = inputs[block]
        add_norm(at + "ln1", ln1)
        if kind == "gpt2":
            by_part = [part.unflatten(-1, (n_head, -1)) for part in projected[0].chunk(3, -1)]
        elif len(projected) == 1:
            by_part = list(projected[0].unflatten(-1, (n_head, 3, -1)).unbind(-2))
        else:
            by_part = [part.unflatten(-1, (-1, inputs[output].shape[-1] // n_head)) for part in projected]
        found |= {f"{at}attn.hook_{each}": part for each, part in zip("qkv", by_part, strict=True)}
        found[at + "attn.hook_pattern"] = attentions[layer][0]
        z = inputs[output].unflatten(-1, (n_head, -1))
        found[at + "attn.hook_z"] = z
        weight = modules[output].weight.detach()
        by_head = (weight if kind == "gpt2" else weight.T).unflatten(0, (n_head, -1))
        found[at + "attn.hook_result"] = torch.einsum("thd,hdc->thc", z, by_head)
        found[at + "hook_attn_out"] = outputs.get(f"{block}.{parts.post_1}", outputs[output])
        post = "_post" if parts.norm_1 else ""  # TransformerLens calls the only norms of a layer ln1 and ln2
        add_norm(f"{at}ln1{post}", f"{block}.{parts.post_1}")
        if not (kind == "gpt_neox" and config.use_parallel_residual):
            found[at + "hook_resid_mid"] = inputs[ln2 if ln2 in inputs else first]
        add_norm(at + "ln2", ln2)
        found[at + "mlp.hook_pre"] = outputs[first]
        if f"{mlp}.up_proj" in outputs:
            found[at + "mlp.hook_pre_linear"] = outputs[f"{mlp}.up_proj"]
        found[at + "mlp.hook_post"] = inputs[last]
        found[at + "hook_mlp_out"] = outputs.get(f"{block}.{parts.post_2}", outputs[last])
        add_norm(f"{at}ln2{post}", f"{block}.{parts.post_2}")
        found[at + "hook_resid_post"] = outputs[block]
    last_block = f"blocks.{config.num_hidden_layers - 1}.hook_resid_post"
    found[last_block] = inputs[final]
    add_norm("ln_final", final)
    return found


@pytest.mark.parametrize("name", one_of_each_kind([*ONE_OF_EACH, KINDS[0]]))
def test_every_point_equals_hooks_in_transformers(name: str, tmp_path: Path) -> None:
    gpt = reference(name)
    loaded = model.load(write(gpt, tmp_path), device="cpu", dtype="float32")
    ids = prompt_ids(N_TOKENS, loaded.config.vocab_size)
    run, expected = loaded.run(ids, names="*"), expected_points(gpt, ids)
    assert list(run.cache) == points(loaded.config)
    of_scores = {
        f"blocks.{i}.attn.hook_{each}"
        for i in range(loaded.config.n_layer)
        for each in ("attn_scores", "rot_q", "rot_k")
    }
    assert expected.keys() == run.cache.keys() - of_scores
    for point, x in expected.items():
        bound = EXACT * max(1.0, float(x.abs().max()))  # float32 counts in parts of a number
        assert run.cache[point][0].shape == x.shape and max_difference(run.cache[point][0], x) < bound, point
    for layer in range(loaded.config.n_layer):
        at = f"blocks.{layer}.attn.hook_"
        scores, pattern = run.cache[at + "attn_scores"][0], run.cache[at + "pattern"][0]
        assert max_difference(scores.softmax(-1), pattern) < EXACT
        assert (scores[:, 2, 3:] == torch.finfo(torch.float32).min).all()
        if loaded.config.rotary:
            query, key = run.cache[at + "rot_q"][0], run.cache[at + "rot_k"][0]
            key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
            product = torch.einsum("qhd,khd->hqk", query, key) * loaded.config.attention_scale(layer)
            seen = pattern > 0
            assert max_difference(product[seen], scores[seen]) < EXACT
