"""Edges: what happens to a prediction when one query no longer gets anything from one key."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ...gpt import Block
from .query import QueryAttention, attention_at, logits_at
from .text_pass import TextPass

EDGES_AT_A_TIME = 64  # each needs a row of logits, and of attention scores in every later layer


@torch.inference_mode()
def edge_losses(text: TextPass, layer: int, head: int, position: int, token: int) -> Iterator[Tensor]:
    """How much the loss of ``token``, predicted after ``position``, changes when one key is cut off from this query.

    Yields ``-log p(token)`` without the edge minus that with it, in nats, for a few keys at a time and in their order,
    ``position + 1`` in all. Cutting an edge sets its attention weight to 0 and leaves the other weights of the row as
    they are, so that exactly ``weight * value`` is missing from the context vector: the term that the other measures
    of an edge are about. (Masking the key before the softmax would also hand its weight to the other keys.) Everything
    after that is computed again, at this position; earlier positions do not see it.
    """
    here = attention_at(text, layer, position)
    before, attended = text.stream[layer][0, position], text.block(layer).attn.output(here.context)
    later = [attention_at(text, i, position) for i in range(layer + 1, text.config.n_layer)]
    plain = logits_at(text, position).log_softmax(-1)[token]
    for terms in here.terms(head).split(EDGES_AT_A_TIME):
        after = text.block(layer)(before, lambda *_, terms=terms: attended - terms)
        logits = finish(text, after, later)
        yield (plain - logits.log_softmax(-1)[:, token]).cpu()


def finish(text: TextPass, x: Tensor, later: list[QueryAttention]) -> Tensor:
    """The logits ``(B, vocab_size)`` from ``B`` versions ``x`` ``(B, C)`` of one position of the residual stream.

    ``later`` is the attention of all layers still to come at that position; the keys and values of earlier positions
    stay as they are, since no position sees a later one.
    """

    def attend(block: Block, x: Tensor) -> Tensor:
        here = later[block.layer - first]
        position = here.keys.shape[1] - 1
        parts = block.attn.queries_keys_values(x[:, None], start=position)
        query, own_key, own_value = (each[:, :, 0].transpose(0, 1) for each in parts)  # (n_head, B, head_dim) each
        past = query @ here.keys[:, :-1].mT  # (n_head, B, S - 1)
        own = (query * own_key).sum(-1, keepdim=True)
        attn_weights = (torch.cat([past, own], -1) * block.attn.scale).softmax(-1)
        context = attn_weights[..., :-1] @ here.values[:, :-1] + attn_weights[..., -1:] * own_value
        return block.attn.output((context * here.mask[:, None, None]).transpose(0, 1))

    first = text.config.n_layer - len(later)
    return text.logits(text.gpt.run_blocks(x, attend, start=first))
