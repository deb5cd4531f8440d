"""A forward pass that keeps the residual stream, from which attention and logits are computed on demand."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from ..gpt import GPT, Block
from ..sampling import token_logprobs

ROWS = 64  # positions whose logits are in memory at a time: with a large vocabulary they take many megabytes


class Residuals:
    """One pass over ``ids``, from which the attention of any layer and the logits of any position can be computed.

    ``head_mask`` ``(n_layer, n_head)`` scales each head's context vectors. ``stream[layer]`` ``(1, T, C)`` is the
    residual stream before that layer; the last entry is the one after all layers. As no token looks ahead, the first
    ``n`` positions are the same as in a pass over the first ``n`` tokens alone.
    """

    @torch.inference_mode()
    def __init__(self, gpt: GPT, ids: Sequence[int], head_mask: Tensor | None = None) -> None:
        self.gpt, self.ids = gpt, list(ids)

        def attend(block: Block, x: Tensor) -> Tensor:
            output, _ = block.attn(x, head_mask=None if head_mask is None else head_mask[block.layer])
            return output

        embedded = gpt.embed(torch.tensor([self.ids], device=gpt.wte.weight.device))
        self.stream: list[Tensor] = []
        self.stream.append(gpt.run_blocks(embedded, attend, self.stream))

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in self.stream)

    @torch.inference_mode()
    def attention(self, layer: int, n: int | None = None) -> Tensor:
        """The attention weights of a layer over the first ``n`` tokens: ``(n_head, n, n)`` float32 on the CPU."""
        block = cast(Block, self.gpt.h[layer])
        query, key, _ = block.attn.queries_keys_values(block.attention_input(self.stream[layer][:, :n]))
        return block.attn.attention_weights(query, key)[0].float().cpu()

    @torch.inference_mode()
    def logits(self, start: int, stop: int) -> Tensor:
        """The raw logits at positions ``start`` to ``stop - 1``: ``(stop - start, vocab_size)`` float32 on the CPU."""
        return self.gpt.logits(self.stream[-1][0, start:stop]).float().cpu()

    def logprobs(self, unread: Sequence[int] = ()) -> list[float]:
        """The log-probability of each token except the first, given those before it.

        ``unread`` has at most one token, which follows the others and for which the context has no room.
        """
        found: list[float] = []
        targets = [*self.ids[1:], *unread]
        for start in range(0, len(targets), ROWS):
            stop = min(start + ROWS, len(targets))
            found += token_logprobs(self.logits(start, stop), targets[start:stop])
        return found
