"""Rung 9 as data: the rest of a block around attention, on three numbers for each word."""

import json
from functools import cache
from pathlib import Path

import torch
from pydantic import Field

from model import GPTConfig
from model.gpt import Block
from model.ladder.averages import mask_future
from model.ladder.block import block_by_ladder, block_layers, gelu, layer_norm, linear
from model.ladder.terms import largest_difference, seeded

from ..serving.served_models import ServedModels
from .arithmetic import dot_terms, softmax
from .lesson_request import LessonRequest
from .sentence import SIZE, parse_sentence

CURVE = [i / 10 for i in range(-40, 41, 2)]  # where GELU is drawn


class BlockRequest(LessonRequest):
    scale: float = Field(1.0, ge=0.1, le=100)  # of the numbers that go into the block


def rest_of_a_block(served: ServedModels, request: BlockRequest) -> dict[str, object]:
    """A block of three heads with one number each on the words, step by step, and without each of its parts."""
    sentence = parse_sentence(served, request)
    x = sentence.x * request.scale
    block = seeded(123, make_block).eval().requires_grad_(False)
    stages, layers = block_by_ladder(block, x), block_layers(block)
    with torch.inference_mode():
        theirs = block(x[None], lambda block, y: block.attn(y)[0])[0]
        unlearned = layer_norm(x, torch.ones(SIZE), torch.zeros(SIZE))
        # Without an activation between them, two linear layers equal one.
        first, second = layers.hidden, layers.mlp_output
        straight = linear(second, linear(first, stages.mlp_input))
        joined = stages.mlp_input @ (second.weight @ first.weight).T + second.weight @ first.bias + second.bias
    curve = torch.tensor(CURVE)
    return sentence.data | {
        "x": sentence.x.tolist(),
        "scale": request.scale,
        "scaled": x.tolist(),
        "mean": x.mean(dim=-1).tolist(),
        "variance": x.var(dim=-1, correction=0).tolist(),
        "eps": layers.normed.eps,
        "normed": stages.normed.tolist(),
        "norm_error": largest_difference(stages.normed, unlearned),
        "weights": stages.weights.tolist(),
        "queries": stages.query[0].tolist(),  # head 0 with one number each, so the scale is 1
        "keys": stages.key[0].tolist(),
        "weight_terms": softmax(mask_future(stages.scores[0] * block.attn.scale)),
        "attended": stages.attended.tolist(),
        "attended_terms": dot_terms(stages.heads, layers.attended.weight),
        "attended_bias": layers.attended.bias.tolist(),
        "resid_mid": stages.resid_mid.tolist(),
        "resid_mid_mean": stages.resid_mid.mean(dim=-1).tolist(),
        "resid_mid_variance": stages.resid_mid.var(dim=-1, correction=0).tolist(),
        "mlp_input": stages.mlp_input.tolist(),
        "hidden": stages.hidden.tolist(),
        "hidden_terms": dot_terms(stages.mlp_input, first.weight),
        "hidden_bias": first.bias.tolist(),
        "activated": stages.activated.tolist(),
        "mlp_output": stages.mlp_output.tolist(),
        "mlp_output_terms": dot_terms(stages.activated, second.weight),
        "mlp_output_bias": second.bias.tolist(),
        "after": stages.after.tolist(),
        "error": largest_difference(stages.after, theirs),
        "joined_error": largest_difference(straight, joined),
        "ladder": loss_ladder(),
        "curve": {"x": CURVE, "gelu": gelu(curve).tolist(), "relu": curve.clamp(min=0).tolist()},
    }


@cache
def loss_ladder() -> dict[str, object]:
    """The losses of models that grow from a bigram model, and of a block without the mask; see ``bench/lecture.py``."""
    losses: dict[str, object] = json.loads(Path(__file__).with_name("loss_ladder.json").read_text(encoding="utf-8"))
    return losses


def make_block() -> Block:
    """A new block with the default initialisation of its layers, whose numbers are large enough to follow."""
    return Block(GPTConfig(vocab_size=2, context_length=2, n_layer=1, n_head=SIZE, n_embd=SIZE), 0)
