"""Direct logit attribution: how much each head, each MLP, the embedding and the biases add to the logit of a token."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from ..config import check_int
from ..drawing.heat_map import in_digits
from ..gpt import Block
from .answer import Answer, NotSent, PerHead, PerLayer, ProbableToken, TokenId, sent
from .question import LIKELIEST, NextToken, Position, Reads
from .text_pass import TextPass

N_ALTERNATIVES = 6  # the number of most probable tokens in an answer, which one may ask about next


class QueryAttention(NamedTuple):
    """The attention of one layer for the query at ``position``, over ``S = position + 1`` keys."""

    query: Tensor  # (n_head, head_dim)
    keys: Tensor  # (n_head, S, head_dim)
    values: Tensor  # (n_head, S, head_dim)
    weights: Tensor  # (n_head, S), each row adding up to 1
    mask: Tensor  # (n_head,), the factor of each head's context vector: 1 unless the text was read with a head mask
    W_O: Tensor  # (n_head, head_dim, C): each head's rows of the output projection
    block: Block

    @property
    def context(self) -> Tensor:
        """The context vectors, ``(n_head, head_dim)``."""
        return (self.weights[:, None] @ self.values)[:, 0] * self.mask[:, None]

    @property
    def output(self) -> Tensor:
        """The output of attention, ``(C,)``, before any norm that comes after it."""
        return self.block.attn.output(self.context)

    @property
    def added(self) -> Tensor:
        """What each head adds to the residual stream, ``(n_head, C)``; see ``Block.attention_adds``."""
        return self.block.attention_adds((self.context[:, None] @ self.W_O)[:, 0], self.output)

    @property
    def added_by_bias(self) -> Tensor:
        """What the bias of the output projection adds, ``(C,)``."""
        return self.block.attention_adds(self.block.attn.matrices().b_O, self.output)

    def terms(self, head: int) -> Tensor:
        """Each key's part of the output of attention through one head, ``(S, C)``: weight * value @ W_O."""
        weighted = (self.weights[head] * self.mask[head])[:, None] * self.values[head]
        return weighted @ self.W_O[head]

    def added_by_keys(self, head: int) -> Tensor:
        """What each key adds to the residual stream through one head, ``(S, C)``."""
        return self.block.attention_adds(self.terms(head), self.output)


def attention_at(text: TextPass, layer: int, position: int) -> QueryAttention:
    """The attention of ``layer`` for the query at ``position``, with the model's own weights and functions."""
    block = text.block(layer)
    seen = block.attention_input(text.stream[layer][:, : position + 1])  # (1, S, C)
    query, key, value = block.attn.queries_keys_values(seen)
    attn_weights = block.attn.attention_weights(query[:, :, -1:], key)[0, :, 0]
    mask = attn_weights.new_ones(len(attn_weights)) if text.head_mask is None else text.head_mask[layer]
    return QueryAttention(query[0, :, -1], key[0], value[0], attn_weights, mask, block.attn.matrices().W_O, block)


def read_logit(text: TextPass, position: int, token: int, against: int | None = None) -> tuple[Tensor, float]:
    """The direction ``(C,)`` and constant that give the logit of ``token`` as the next one after ``position``.

    See ``GPT.logit_direction``. With another token ``against``, they give the difference of the two logits.
    """
    head = text.gpt.lm_head.weight
    row = head[token] if against is None else head[token] - head[against]
    return text.gpt.logit_direction(row, text.stream[-1][0, position])


def logits_at(text: TextPass, position: int) -> Tensor:
    """The model's own logits of the token after ``position``, ``(vocab_size,)``."""
    return text.gpt.logits(text.stream[-1][0, position])


@dataclass(frozen=True)
class Attribution(Answer):
    """The logit and the parts that add up to it.

    With another token, ``against``, all numbers but the probability are about the difference of the two logits.
    """

    position: int
    token: Annotated[TokenId, "The next token whose logit is explained."]
    against: TokenId | None
    logit: Annotated[float, "The token's logit, as the model computes it."]
    probability: Annotated[float, "The token's probability, as the model computes it."]
    heads: Annotated[PerHead, "`[layer][head]`, including the value biases."]
    mlps: Annotated[PerLayer, "`[layer]`, including the output biases."]
    embedding: Annotated[
        float, "The part of the token's embedding and, unless positions are rotary, of the position's."
    ]
    biases: Annotated[float, "The part of the biases of attention's output projections and the final norm."]
    likeliest: Annotated[dict[int, float], NotSent()]  # the probabilities of the most probable next tokens

    @property
    def summary(self) -> str:
        tokens = [self.token_texts(each) for each in (self.token, self.against) if each is not None]
        logit = f"The logit of {' minus that of '.join(tokens)} is {in_digits(self.logit)}"
        return f"{logit}. Of the heads, the largest part is that of {self.peak(self.heads)}."

    @property
    @sent
    def sum(self) -> float:
        """The sum of all parts; equals ``logit`` up to rounding."""
        return float(self.heads.double().sum() + self.mlps.double().sum()) + self.embedding + self.biases

    @property
    @sent
    def difference(self) -> float:
        """The absolute difference between ``sum`` and ``logit``."""
        return abs(self.sum - self.logit)

    @sent
    def alternatives(self) -> list[ProbableToken]:
        """The most probable next tokens at this position."""
        named = zip(self.named(self.likeliest), self.likeliest.values(), strict=True)
        return [{**token, "probability": probability} for token, probability in named]


def prediction(text: TextPass, position: int | None, token: str | int | None) -> tuple[int, int]:
    """A position and the next token there, by default the last position and the most probable token.

    Raises ``InputError`` for those that the text or the model does not have.
    """
    position, token = len(text.ids) - 1 if position is None else position, text.token_id(token)
    check_int("position", position, len(text.ids) - 1, least=0)
    token = int(logits_at(text, position).argmax()) if token is None else token
    check_int("token", token, text.config.vocab_size - 1, least=0)
    return position, token


def other_token(text: TextPass, position: int, token: int) -> int | None:
    """The most probable next token other than ``token``; None if the model has no other."""
    likeliest = logits_at(text, position).topk(min(2, text.config.vocab_size)).indices.tolist()
    return next((each for each in likeliest if each != token), None)


@torch.no_grad()
def attribution(
    text: TextPass,
    *,
    position: Position = None,
    token: NextToken = None,
    against: Annotated[
        str | int | None,
        Reads.OTHER_TOKEN,
        "Another token, as text or as an id, or `likeliest` for the most probable other token: the parts are then "
        "those of the difference between the two logits.",
    ] = None,
) -> Attribution:
    """What each head and MLP, the embedding and the biases of a model add to the logit of a next token, with the
    scales of the norms that they pass held fixed.

    The direct contributions to the logit of ``token`` as the next one after ``position`` (see ``prediction``).

    Every vector that is added to the residual stream at ``position`` is multiplied by the token's row of the output
    head, after the final norm with its scale at that position (Elhage et al. 2021). Where a norm comes after attention,
    a head adds its part of that norm's input, divided by the scale of the whole input. The value bias of a head
    belongs to the head and the output bias of an MLP to the MLP; the biases of attention's output projections and the
    bias of the final norm are ``biases``. Effects through later layers are not counted.

    Only differences of logits matter to the probabilities. With another token ``against``, or "likeliest" for the most
    probable other one, the parts are those of the difference of the two logits (Wang et al. 2023), and anything that
    raises both equally cancels.
    """
    position, token = prediction(text, position, token)
    is_likeliest = against == LIKELIEST
    against = other_token(text, position, token) if is_likeliest else text.token_id(against, "against")
    if against is not None:
        check_int("against", against, text.config.vocab_size - 1, least=0)
    stream = [x[0, position] for x in text.stream]
    direction, constant = read_logit(text, position, token, against)
    heads, mlps, biases = [], [], constant
    for layer in range(text.config.n_layer):
        block = text.block(layer)
        here = attention_at(text, layer, position)
        added, bias = here.added, here.added_by_bias
        read_by_mlp = stream[layer] if block.parallel else stream[layer] + added.sum(0) + bias
        heads.append(added @ direction)
        biases += float(bias @ direction)
        output = block.mlp.output(block.neurons(read_by_mlp))
        mlps.append(block.mlp_adds(output, output) @ direction)
    logits = logits_at(text, position)
    probabilities = logits.softmax(-1)
    likeliest = probabilities.topk(min(N_ALTERNATIVES, text.config.vocab_size))
    return Attribution(
        position,
        token,
        against,
        logit=float(logits[token] if against is None else logits[token] - logits[against]),
        probability=float(probabilities[token]),
        heads=torch.stack(heads).cpu(),
        mlps=torch.stack(mlps).cpu(),
        embedding=float(stream[0] @ direction),
        biases=biases,
        likeliest=dict(zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)),
    )
