"""Direct logit attribution: how much every head, MLP, the embedding and the biases add to the logit of a next token."""

from typing import NamedTuple

import torch
from torch import Tensor

from .query import attention_at, logits_at, read_logit
from .text_pass import TextPass


class Attribution(NamedTuple):
    """The parts of one logit, float32 on the CPU; they add up to it but for rounding (see ``error``)."""

    position: int
    token: int
    against: int | None  # where set, all numbers but the probability are about the difference of the two logits
    logit: float  # the model's own
    probability: float  # the model's own
    heads: Tensor  # (n_layer, n_head)
    mlps: Tensor  # (n_layer,)
    embedding: float  # of the token and its position
    biases: float  # of attention's output projections and of the final layer norm

    @property
    def total(self) -> float:
        return float(self.heads.double().sum() + self.mlps.double().sum()) + self.embedding + self.biases

    @property
    def error(self) -> float:
        """How far the sum of the parts is from the model's own logit."""
        return abs(self.total - self.logit)


@torch.inference_mode()
def attribution(text: TextPass, *, position: int, token: int, against: int | None = None) -> Attribution:
    """What adds to the logit of ``token`` as the one that follows ``position``, directly.

    Every vector that is added to the residual stream at ``position`` is multiplied by the token's row of the output
    head, after the final layer norm with its scale at that position (Elhage et al. 2021). The value bias of a head
    belongs to the head and the output bias of an MLP to the MLP; the biases of attention's output projections and the
    bias of the final layer norm are ``biases``. What a part does through later layers is not counted.

    Only differences of logits matter to the probabilities. With another token ``against``, the parts are those of the
    difference of the two logits (Wang et al. 2023), and what pushes both alike drops out.
    """
    stream = [x[0, position] for x in text.stream]
    direction, constant = read_logit(text, position, token, against)
    heads, mlps, biases = [], [], constant
    for layer in range(text.config.n_layer):
        block = text.block(layer)
        outputs, bias = attention_at(text, layer, position).outputs, block.attn.matrices().b_O
        attended = outputs.sum(0) + bias
        _, thought = block.sublayers(stream[layer], lambda *_, attended=attended: attended)
        heads.append(outputs @ direction)
        biases += float(bias @ direction)
        mlps.append(thought @ direction)
    logits = logits_at(text, position)
    return Attribution(
        position,
        token,
        against,
        logit=float(logits[token] if against is None else logits[token] - logits[against]),
        probability=float(logits.softmax(-1)[token]),
        heads=torch.stack(heads).cpu(),
        mlps=torch.stack(mlps).cpu(),
        embedding=float(stream[0] @ direction),
        biases=biases,
    )
