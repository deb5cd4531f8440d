"""What a head does with a token that it looks at: whether it raises that token's own logit."""

from typing import cast

import torch
from torch import Tensor

from ..gpt import GPT, Block

CHANCE = 0.5  # the score of random weights

# A head is said to copy from this score on. Heads with random weights stay below 0.75, also in small models.
CLEAR_COPYING = 0.9


@torch.inference_mode()
def copying_scores(gpt: GPT, ids: Tensor) -> Tensor:
    """How reliably each head copies, ``(n_layer, n_head)``, from 0 to 1, judged by its weights and ``ids`` ``(N,)``.

    For a token that a head looks at with all of its attention, its output through ``W_V`` and ``W_O`` adds something
    to the logit of every token (the OV circuit of Elhage et al. 2021). The score is the part of the other tokens of
    ``ids`` whose logits it raises less than that token's own, averaged over ``ids``: 1 for a head that copies, 0.5 by
    chance, 0 for one that speaks against what it sees. Name movers score high (Wang et al. 2023, who count how often
    the token comes out among the first).

    As there, what the heads after the first layer see of a token is its embedding and what the first MLP makes of it.
    Positions, what other heads add, and the biases of values, which are the same for all tokens, are left out. ``gpt``
    is in float32. Of fewer than two tokens nothing can be said, so that every score is 0.5.
    """
    n_layer, n_head, N = gpt.config.n_layer, gpt.config.n_head, len(ids)
    if N < 2:
        return torch.full((n_layer, n_head), CHANCE)
    ids = ids.to(gpt.wte.weight.device)
    first = cast(Block, gpt.h[0])
    embedding = gpt.wte.weight[ids]  # (N, C)
    seen = first(embedding, lambda _, x: torch.zeros_like(x))
    reading = gpt.fold_norm(gpt.lm_head.weight[ids])  # the division in the final norm changes no order
    scores = []
    for block in (cast(Block, block) for block in gpt.h):
        matrices = block.attn.matrices()
        x = block.attention_input(embedding if block is first else seen)
        # (n_head, N, N): of each token seen, for each logit
        raised = (x @ matrices.W_V) @ (reading @ matrices.W_O.mT).mT
        own = raised.diagonal(dim1=1, dim2=2)[..., None]
        below = (raised < own).float().sum(-1) + ((raised == own).float().sum(-1) - 1) / 2
        scores.append((below / (N - 1)).mean(-1).cpu())
    return torch.stack(scores)
