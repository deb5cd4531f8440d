"""Questions about one prediction, answered from a folder, compared with hooks in transformers on the same folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2LMHeadModel

import model
from helpers.models import max_difference, prompt_ids
from helpers.oracles.gpt2_shapes import reference, transformers_keys, write
from model.lens import one_head
from model.lens.attribution import attribution
from model.lens.ledger import ledger
from model.lens.logit_lens import logit_lens
from model.lens.one_head import EDGES_AT_A_TIME
from model.lens.text_pass import TextPass

TOLERANCE = 1e-4
# Random biases everywhere, heads of odd size, scores scaled by layer, an output head of its own.
NAMES = ["plain", "odd head_dim, narrow MLP", "scaled by layer", "untied head", "exact GELU"]
TOKEN = 7

Both = tuple[GPT2LMHeadModel, TextPass]


@pytest.fixture(params=NAMES)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Both:
    """One folder opened by both: transformers' model, and the residual stream of twelve tokens in ours."""
    return opened(request.param, 12, tmp_path)


def opened(name: str, n_tokens: int, folder: Path) -> Both:
    gpt = reference(**transformers_keys(name))
    loaded = model.load(write(gpt, folder), device="cpu", dtype="float32")
    return gpt, TextPass(loaded.gpt, prompt_ids(n_tokens, loaded.config.vocab_size))


@contextmanager
def captured(gpt: GPT2LMHeadModel) -> Iterator[dict[str, Tensor]]:
    """The outputs of all modules by name, and their inputs under ``name.in``."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(_module: object, inputs: tuple[Any, ...], output: Any) -> None:
            if inputs:
                found[f"{name}.in"] = inputs[0]
            found[name] = output[0] if isinstance(output, tuple) else output

        return hook

    handles = [module.register_forward_hook(keep(name)) for name, module in gpt.named_modules()]
    yield found
    for handle in handles:
        handle.remove()


@torch.inference_mode()
def run(gpt: GPT2LMHeadModel, ids: list[int]) -> tuple[Any, dict[str, Tensor]]:
    with captured(gpt) as found:
        return gpt(torch.tensor([ids]), output_attentions=True, output_hidden_states=True), found


def part_of_logit(gpt: GPT2LMHeadModel, stream: Tensor, added: Tensor, token: int) -> float:
    """The part of a vector in the logit: the final norm with the mean and deviation of the whole stream."""
    norm = gpt.transformer.ln_f
    normal = (added - added.mean()) / (stream.var(correction=0) + norm.eps).sqrt() * norm.weight
    return float(gpt.lm_head(normal)[token])


@torch.inference_mode()
def test_attribution_equals_transformers(both: Both) -> None:
    gpt, text = both
    answer, found = run(gpt, text.ids)
    for position in (0, 5, 11):
        ours = attribution(text, position=position, token=TOKEN)
        stream = found["transformer.ln_f.in"][0, position]
        biases = float(gpt.lm_head(gpt.transformer.ln_f.bias)[TOKEN])
        for layer, block in enumerate(gpt.transformer.h):
            project, context = block.attn.c_proj, found[f"transformer.h.{layer}.attn.c_proj.in"][0, position]
            n_head, size = gpt.config.n_head, gpt.config.n_embd // gpt.config.n_head
            for head in range(n_head):
                alone = torch.zeros_like(context)
                alone[head * size : (head + 1) * size] = context[head * size : (head + 1) * size]
                added = project(alone) - project.bias
                assert float(ours.heads[layer, head]) == pytest.approx(
                    part_of_logit(gpt, stream, added, TOKEN), abs=TOLERANCE
                )
            added = found[f"transformer.h.{layer}.mlp"][0, position]
            assert float(ours.mlps[layer]) == pytest.approx(part_of_logit(gpt, stream, added, TOKEN), abs=TOLERANCE)
            biases += part_of_logit(gpt, stream, project.bias, TOKEN)
        added = found["transformer.drop"][0, position]
        assert ours.embedding == pytest.approx(part_of_logit(gpt, stream, added, TOKEN), abs=TOLERANCE)
        assert ours.biases == pytest.approx(biases, abs=TOLERANCE)
        assert ours.logit == pytest.approx(float(answer.logits[0, position, TOKEN]), abs=TOLERANCE)
        assert ours.difference <= 1e-4


@torch.inference_mode()
def loss_without_edge(gpt: GPT2LMHeadModel, ids: list[int], layer: int, head: int, query: int, key: int) -> float:
    """The loss of ``TOKEN`` after the query, with one attention weight set to 0 in the whole text's attention."""
    size = gpt.config.n_embd // gpt.config.n_head
    span = slice(head * size, (head + 1) * size)
    answer, found = run(gpt, ids)
    value = found[f"transformer.h.{layer}.attn.c_attn"][0, key, 2 * gpt.config.n_embd :][span]

    def cut(_module: object, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        context = inputs[0].clone()
        context[0, query, span] -= answer.attentions[layer][0, head, query, key] * value
        return (context,)

    handle = gpt.transformer.h[layer].attn.c_proj.register_forward_pre_hook(cut)
    loss = -float(gpt(torch.tensor([ids])).logits[0, query].log_softmax(-1)[TOKEN])
    handle.remove()
    return loss


@torch.inference_mode()
def test_head_measures_equal_transformers(both: Both) -> None:
    gpt, text = both
    answer, found = run(gpt, text.ids)
    size, position = gpt.config.n_embd // gpt.config.n_head, 8
    stream = found["transformer.ln_f.in"][0, position]
    plain = -float(answer.logits[0, position].log_softmax(-1)[TOKEN])
    for layer, head in [(0, 0), (gpt.config.n_layer - 1, gpt.config.n_head - 1)]:
        span = slice(head * size, (head + 1) * size)
        ours = one_head.head(text, layer=layer, head=head, position=position, token=TOKEN)
        weights = answer.attentions[layer][0, head, position, : position + 1]
        assert max_difference(ours.weight, weights) <= TOLERANCE
        values = found[f"transformer.h.{layer}.attn.c_attn"][0, :, 2 * gpt.config.n_embd :][: position + 1, span]
        project = gpt.transformer.h[layer].attn.c_proj.weight[span]  # a Conv1D: (in, out)
        for key in range(position + 1):
            added = weights[key] * (values[key] @ project)
            assert float(ours.norm[key]) == pytest.approx(float(added.norm()), abs=TOLERANCE)
            part = part_of_logit(gpt, stream, added, TOKEN)
            assert float(ours.attribution[key]) == pytest.approx(part, abs=TOLERANCE)
            without = loss_without_edge(gpt, text.ids, layer, head, position, key)
            assert float(ours.loss_change[key]) == pytest.approx(without - plain, abs=TOLERANCE)
        whole = attribution(text, position=position, token=TOKEN).heads[layer, head]
        assert float(ours.attribution.sum()) == pytest.approx(float(whole), abs=TOLERANCE)


def test_edges_are_cut_in_batches(tmp_path: Path) -> None:
    gpt, text = opened("wide vocabulary, long context", EDGES_AT_A_TIME + 6, tmp_path)
    position, done = EDGES_AT_A_TIME + 5, []
    ours = one_head.head(text, layer=0, head=2, position=position, token=TOKEN, progress=done.append)
    assert done == [EDGES_AT_A_TIME / (position + 1) / 2, 0.5, 1]
    plain = -float(run(gpt, text.ids)[0].logits[0, position].log_softmax(-1)[TOKEN])
    for key in (0, EDGES_AT_A_TIME - 1, EDGES_AT_A_TIME, position):
        without = loss_without_edge(gpt, text.ids, 0, 2, position, key)
        assert float(ours.loss_change[key]) == pytest.approx(without - plain, abs=TOLERANCE)


@torch.inference_mode()
def test_logit_lens_equals_transformers(both: Both) -> None:
    gpt, text = both
    answer, _ = run(gpt, text.ids)
    ours = logit_lens(text, top=3)
    final = answer.logits[0].log_softmax(-1)
    streams = answer.hidden_states[:-1]  # the last one went through the final norm already
    readings = [gpt.lm_head(gpt.transformer.ln_f(x))[0].log_softmax(-1) for x in streams] + [final]
    assert len(readings) == len(ours.ids) == gpt.config.n_layer + 1
    for i, logprobs in enumerate(readings):
        assert max_difference(ours.probabilities[i], logprobs.topk(3).values.exp()) <= TOLERANCE
        chosen = logprobs.exp().gather(-1, ours.ids[i])
        assert max_difference(chosen, ours.probabilities[i]) <= TOLERANCE
        kl = torch.nn.functional.kl_div(logprobs, final, reduction="none", log_target=True).sum(-1)
        assert max_difference(ours.kl[i], kl) <= TOLERANCE
        best = final.argmax(-1, keepdim=True)
        assert max_difference(ours.answer[i], logprobs.exp().gather(-1, best)[:, 0]) <= TOLERANCE
    assert not ours.kl[-1].any()


@torch.inference_mode()
def test_ledger_equals_transformers(both: Both) -> None:
    gpt, text = both
    answer, found = run(gpt, text.ids)
    config, size = gpt.config, gpt.config.n_embd // gpt.config.n_head
    layer, head, query, key = config.n_layer - 1, config.n_head - 1, 6, 4
    ours = ledger(text, layer=layer, head=head, query=query, key=key, token=TOKEN)
    qkv = found[f"transformer.h.{layer}.attn.c_attn"][0].view(12, 3, config.n_head, size)[:, :, head]
    for name, expected in [("query", qkv[query, 0]), ("key", qkv[key, 1]), ("value", qkv[key, 2])]:
        assert max_difference(getattr(ours, name), expected) <= TOLERANCE
    weights = answer.attentions[layer][0, head, query, : query + 1]
    assert max_difference(ours.weights, weights) <= TOLERANCE
    context = found[f"transformer.h.{layer}.attn.c_proj.in"][0, query, head * size : (head + 1) * size]
    assert max_difference(ours.context, context) <= TOLERANCE
    assert max(ours.errors.values()) <= 1e-5
    assert ours.score == pytest.approx(float(qkv[query, 0] @ qkv[key, 1]), abs=TOLERANCE)
    assert float(ours.scaled[key]) == pytest.approx(ours.score * ours.scale, abs=TOLERANCE)
    assert ours.n_masked == 5
    measures = one_head.head(text, layer=layer, head=head, position=query, token=TOKEN)
    assert max_difference(ours.parts, measures.attribution) <= TOLERANCE
    assert ours.part == pytest.approx(float(ours.parts[key]), abs=1e-6)
    assert ours.head_part == pytest.approx(
        float(attribution(text, position=query, token=TOKEN).heads[layer, head]), abs=1e-4
    )
    assert ours.logit == pytest.approx(float(answer.logits[0, query, TOKEN]), abs=TOLERANCE)
    assert ours.head_part + ours.rest == pytest.approx(ours.logit, abs=TOLERANCE)
    for wrong in (7, -1):
        with pytest.raises(model.InputError, match="key must be an integer from 0 to 6, the position of the query"):
            ledger(text, layer=layer, head=head, query=query, key=wrong, token=TOKEN)
