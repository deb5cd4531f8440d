"""One text read once in float32, and variants of that pass that start at any layer."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F

from ..attention import QueriesKeysValues
from ..config import GPTConfig
from ..errors import InvalidValue
from ..gpt import GPT, Block
from ..sampling import token_logprobs

LOGITS_AT_ONCE = 4_000_000  # numbers: with a large vocabulary the logits of a batch would take gigabytes
TOKENS_AT_ONCE = 4_096  # positions in one batch of variants

# What an intervention makes of a layer's context vectors: (layer, (B, T, n_head, head_dim)) -> the same shape.
Edit = Callable[[int, Tensor], Tensor]


def heads_by_layer(config: GPTConfig, heads: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """``heads`` as ``(layer, head)``, by layer. Raises ``InputError`` for one that there is not."""
    found: dict[int, list[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < config.n_layer and 0 <= head < config.n_head):
            allowed = f"a layer below {config.n_layer} and a head below {config.n_head}"
            raise InvalidValue("heads", f"layer {layer}, head {head}", allowed)
        found.setdefault(layer, []).append(head)
    return found


class TextPass:
    """A pass over ``ids`` with a float32 ``gpt`` (see ``in_float32``), and what every question starts from.

    - ``stream[layer]`` ``(1, T, C)`` is the residual stream before that layer; the last entry is the one after all.
    - ``contexts[layer]`` ``(1, T, n_head, head_dim)`` are the context vectors before the output projection, scaled by
      ``head_mask``.

    ``head_mask`` ``(n_layer, n_head)`` scales each head's context vectors here and in every variant. Variants are run
    in batches, ``(B, T, ...)``, where ``B`` is the number of interventions tried at once, at most ``batch_size``.
    Nothing here changes after it was made, so several threads may use it.
    """

    @torch.inference_mode()
    def __init__(self, gpt: GPT, ids: Sequence[int], head_mask: Tensor | None = None) -> None:
        self.gpt, self.config, self.ids, self.head_mask = gpt, gpt.config, list(ids), head_mask
        self.contexts: list[Tensor] = []
        self.stream: list[Tensor] = []

        def keep(_layer: int, context: Tensor) -> Tensor:
            self.contexts.append(context)
            return context

        embedded = gpt.embed(torch.tensor([self.ids], device=self.device))
        self.stream.append(gpt.run_blocks(embedded, self.attend(keep), self.stream))

    @property
    def device(self) -> torch.device:
        return self.gpt.wte.weight.device

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in (*self.stream, *self.contexts))

    @property
    def batch_size(self) -> int:
        """How many variants of this text to run at once."""
        return max(1, TOKENS_AT_ONCE // len(self.ids))

    def block(self, layer: int) -> Block:
        return cast(Block, self.gpt.h[layer])

    def attend(self, edit: Edit | None = None) -> Callable[[Block, Tensor], Tensor]:
        """Attention as ``GPT.run_blocks`` takes it, with ``edit`` applied to the context vectors of every layer."""

        def run(block: Block, x: Tensor) -> Tensor:
            mask = None if self.head_mask is None else self.head_mask[block.layer]
            context, _ = block.attn.context(x, head_mask=mask)
            return block.attn.output(context if edit is None else edit(block.layer, context))

        return run

    @torch.inference_mode()
    def run_from(self, layer: int, x: Tensor, edit: Edit | None = None) -> Tensor:
        """The final residual stream ``(B, T, C)`` if ``x`` ``(B, T, C)`` were the one before ``layer``."""
        return self.gpt.run_blocks(x, self.attend(edit), start=layer)

    @torch.inference_mode()
    def run_with_context(self, layer: int, context: Tensor, edit: Edit | None = None) -> Tensor:
        """The final residual stream ``(B, T, C)`` if ``layer`` had the context vectors ``(B, T, n_head, head_dim)``.

        Its attention is not computed again; ``edit`` applies to the layers after it.
        """
        output = self.block(layer).attn.output(context)
        after = self.attend(edit)

        def attend(block: Block, x: Tensor) -> Tensor:
            return output if block.layer == layer else after(block, x)

        return self.gpt.run_blocks(self.stream[layer].expand(len(context), -1, -1), attend, start=layer)

    @torch.inference_mode()
    def queries_keys_values(self, layer: int) -> QueriesKeysValues:
        """What a layer's heads make of the residual stream before it, ``(1, n_head, T, head_dim)`` each."""
        block = self.block(layer)
        return block.attn.queries_keys_values(block.attention_input(self.stream[layer]))

    @torch.inference_mode()
    def attention(self, layer: int) -> Tensor:
        """The attention weights of a layer, ``(n_head, T, T)``."""
        query, key, _ = self.queries_keys_values(layer)
        return self.block(layer).attn.attention_weights(query, key)[0]

    @torch.inference_mode()
    def logits(self, final: Tensor) -> Tensor:
        """``(..., C) -> (..., vocab_size)``: those of a final residual stream. For whole texts see ``losses``."""
        return self.gpt.logits(final)

    @torch.inference_mode()
    def losses(self, final: Tensor) -> Tensor:
        """The loss of every token but the first, from the final residual stream ``(B, T, C)``: ``(B, T - 1)`` nats.

        Column ``t`` is the loss of token ``t + 1``, given those before it. The logits are made in pieces, which bounds
        the memory.
        """
        B, T, C = final.shape
        rows = final[:, :-1].reshape(-1, C)
        targets = torch.tensor(self.ids[1:], dtype=torch.long, device=final.device).repeat(B)
        at_once = max(1, LOGITS_AT_ONCE // self.config.vocab_size)
        pieces = zip(rows.split(at_once), targets.split(at_once), strict=True)
        found = [F.cross_entropy(self.logits(piece), ids, reduction="none") for piece, ids in pieces]
        return torch.cat(found).view(B, T - 1)


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
