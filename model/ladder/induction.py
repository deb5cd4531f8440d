"""Rung 11 of the ladder: a phrase read twice, the head that finds its repetition, and the heads that feed that head."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from ..gpt import GPT, Block
from .block import block_by_ladder, final_norm, linear, normalise, position_embeddings


class TwiceRead(NamedTuple):
    """A phrase of ``n`` tokens and its repetition, read by a model."""

    n: int
    weights: Tensor  # (n_layer, n_head, 2n, 2n)
    losses: Tensor  # (2n - 1,), of every token but the first, in nats

    @property
    def induction(self) -> Tensor:
        """The mean weight from the repetition to the token that followed the same token before, ``(n_layer, n_head)``.

        Only a head that has found the first occurrence can look there (Olsson et al. 2022).
        """
        return self.mean_weight(self.n - 1)

    @property
    def previous_token(self) -> Tensor:
        """The mean weight from the repetition to the token before, ``(n_layer, n_head)``."""
        return self.mean_weight(1)

    def mean_weight(self, back: int) -> Tensor:
        """The mean weight from a token of the repetition to the one ``back`` places before it."""
        queries = torch.arange(self.n, 2 * self.n)
        return self.weights[..., queries, queries - back].mean(dim=-1)

    @property
    def first_loss(self) -> float:
        """The mean loss of the phrase, in nats per token, without its first token."""
        return self.losses[: self.n - 1].mean().item()

    @property
    def second_loss(self) -> float:
        """The mean loss of the repetition. Its first token is left out: nothing tells that the phrase begins again."""
        return self.losses[self.n :].mean().item()


@torch.no_grad()
def read_twice(gpt: GPT, phrase: Sequence[int], muted: Sequence[tuple[int, int]] = ()) -> TwiceRead:
    """Read the ids of ``phrase``, at least two, twice in a row, without the heads ``muted``, each a layer and a head.

    A muted head still looks, but what it has gathered is replaced with zeros.
    """
    ids = torch.tensor([*phrase, *phrase], device=gpt.wte.weight.device)
    x = gpt.wte(ids) + position_embeddings(gpt, 0, len(ids))
    weights = []
    for layer, block in enumerate(gpt.h):
        stages = block_by_ladder(cast("Block", block), x, [head for of, head in muted if of == layer])
        weights.append(stages.weights.float().cpu())
        x = stages.after
    logits = linear(gpt.lm_head, normalise(final_norm(gpt), x)).float()
    losses = -logits[:-1].log_softmax(dim=-1).gather(1, ids[1:, None])[:, 0]
    return TwiceRead(len(phrase), torch.stack(weights), losses.cpu())


def scores_without(gpt: GPT, phrase: Sequence[int], layer: int, head: int) -> Tensor:
    """The induction score of a head with each head of the layers before it muted in turn, ``(layer, n_head)``."""
    n_head = gpt.config.n_head
    scores = [
        [read_twice(gpt, phrase, [(earlier, muted)]).induction[layer, head] for muted in range(n_head)]
        for earlier in range(layer)
    ]
    return torch.tensor(scores).view(layer, n_head)
