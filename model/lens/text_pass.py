"""One forward pass over a text: its residual stream, and everything computed from it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from ..config import GPTConfig, check_int
from ..drawing.trace import Trace
from ..errors import InvalidValue
from ..generate import Prompt
from ..gpt import GPT, Attend, Block
from ..modules.head_tensors import Head
from ..modules.hooks import NO_HOOKS, Hooks
from ..tokenizer import Tokenizer

LOGITS_AT_ONCE = 4_000_000  # numbers: with a large vocabulary the logits of a batch would take gigabytes
TOKENS_AT_ONCE = 4_096  # positions in one batch of variants


class TokenizedModel(Protocol):
    """A GPT and its tokenizer, which a ``LoadedModel`` has."""

    @property
    def gpt(self) -> GPT: ...
    @property
    def tokenizer(self) -> Tokenizer: ...


Text = Prompt | Trace  # a trace also brings its head mask


class PassSource(TokenizedModel, Protocol):
    """What a ``Lens`` is: it knows tokens by their texts, and makes the passes over other texts."""

    def parse(self, text: Text) -> list[int]: ...
    def token_id(self, token: str | int | None, name: str = ...) -> int | None: ...
    def pass_over(self, ids: Sequence[int], head_mask: Tensor | None) -> "TextPass": ...
    def mean_contexts(self, texts: Sequence[Sequence[int]], head_mask: Tensor | None) -> Tensor: ...


# An intervention on a layer's context vectors: (layer, (B, T, n_head, head_dim)) -> the same shape.
Edit = Callable[[int, Tensor], Tensor]


def heads_by_layer(config: GPTConfig, heads: Iterable[Head]) -> dict[int, list[int]]:
    """Group ``heads`` by layer. Raises ``InputError`` for a head that does not exist."""
    found: dict[int, list[int]] = {}
    for layer, head in heads:
        if not (0 <= layer < config.n_layer and 0 <= head < config.n_head):
            allowed = f"a layer below {config.n_layer} and a head below {config.n_head}"
            raise InvalidValue("heads", f"layer {layer}, head {head}", allowed)
        found.setdefault(layer, []).append(head)
    return found


def replacing(config: GPTConfig, heads: Iterable[Head], instead: Callable[[int], Tensor]) -> Edit:
    """An edit that gives ``heads`` the context vectors ``instead(layer)``, ``(1, T or 1, n_head, head_dim)``.

    Raises ``InputError`` for a head that does not exist.
    """
    replaced = heads_by_layer(config, heads)

    def replace(layer: int, context: Tensor) -> Tensor:
        if layer not in replaced:
            return context
        changed, columns = context.clone(), replaced[layer]
        changed[:, :, columns] = instead(layer)[:, :, columns]
        return changed

    return replace


class TextPass:
    """One pass over ``ids`` that keeps the residual stream; everything else is computed from it on demand.

    ``stream[layer]`` ``(1, T, C)`` is the residual stream before that layer; the last entry is the stream after all
    layers. As no token looks ahead, the first ``n`` positions are the same as in a pass over the first ``n`` tokens.

    ``head_mask`` ``(n_layer, n_head)`` scales each head's context vectors, here and in every variant. Variants are run
    in batches, ``(B, T, ...)``, where ``B`` is the number of interventions tried at once, at most ``batch_size``. A
    pass is immutable, so several threads may use it. Analyses take a pass of a float32 ``gpt`` (see ``in_float32``).
    ``source`` made the pass; without it, tokens have no texts, and no other text is read.
    """

    @torch.no_grad()
    def __init__(
        self, gpt: GPT, ids: Sequence[int], head_mask: Tensor | None = None, source: PassSource | None = None
    ) -> None:
        self.gpt, self.config, self.ids, self.head_mask = gpt, gpt.config, list(ids), head_mask
        self.made_by = source
        embedded = gpt.embed(torch.tensor([self.ids], device=self.device))
        self.stream = self.streams(embedded)

    @property
    def device(self) -> torch.device:
        return self.gpt.device

    @property
    def source(self) -> PassSource:
        """Raises ``ValueError`` for a pass that was made without one."""
        if self.made_by is None:
            raise ValueError("tokens given as text, and other texts, need a pass made by Lens.read")
        return self.made_by

    def token_id(self, token: str | int | None, name: str = "token") -> int | None:
        """The id of a token that may be given as text. Raises ``InputError`` about ``name``."""
        return self.source.token_id(token, name) if isinstance(token, str) else token

    def read(self, text: Text) -> "TextPass":
        """Another text, read with the same model and head mask."""
        return self.source.pass_over(self.source.parse(text), self.head_mask)

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in self.stream)

    @property
    def batch_size(self) -> int:
        """How many variants of this text to run at once."""
        return max(1, TOKENS_AT_ONCE // len(self.ids))

    def block(self, layer: int) -> Block:
        return self.gpt.blocks[layer]

    @torch.no_grad()
    def attention(
        self, layer: int, n: int | None = None, *, first: int = 0, heads: Sequence[int] | slice = slice(None)
    ) -> Tensor:
        """A layer's attention weights over the first ``n`` tokens: ``(heads, n - first, n)`` float32 on the CPU.

        They are those of the queries from ``first`` on; by default of all queries, in all heads.
        """
        query, key = self.queries_keys(layer, n)
        return self.block(layer).attn.attention_weights(query[:, heads, first:], key[:, heads])[0].float().cpu()

    @torch.no_grad()
    def mean_attention(self, layer: int, n: int) -> Tensor:
        """The mean over a layer's heads of the weights over the first ``n`` tokens, ``(n, n)`` float32 on the CPU.

        They are computed head by head, since all heads of a long text would take gigabytes.
        """
        query, key = self.queries_keys(layer, n)
        total, weights = torch.zeros(()), self.block(layer).attn.attention_weights
        for one_query, one_key in zip(query.split(1, 1), key.split(1, 1), strict=True):
            total = total + weights(one_query, one_key)[0, 0].float().cpu()
        return total / self.config.n_head

    def queries_keys(self, layer: int, n: int | None) -> tuple[Tensor, Tensor]:
        """The queries and keys of a layer over the first ``n`` tokens, ``(1, n_head, n, head_dim)`` each."""
        block = self.block(layer)
        query, key, _ = block.attn.queries_keys_values(block.attention_input(self.stream[layer][:, :n]))
        return query, key

    @torch.no_grad()
    def context(self, layer: int) -> Tensor:
        """A layer's context vectors before the output projection, ``(1, T, n_head, head_dim)``."""
        block = self.block(layer)
        return block.attn.context(block.attention_input(self.stream[layer]), head_mask=self.mask_of(layer))[0]

    @torch.no_grad()
    def logits(self, start: int, stop: int) -> Tensor:
        """The raw logits at positions ``start`` to ``stop - 1``: ``(stop - start, vocab_size)`` float32 on the CPU."""
        return self.gpt.logits(self.stream[-1][0, start:stop]).float().cpu()

    def logprobs(self, unread: Sequence[int] = ()) -> list[float]:
        """The log-probability of each token except the first, given those before it.

        ``unread`` has at most one token, which follows the others but no longer fits into the context.
        """
        targets = [*self.ids[1:], *unread]
        return (-self.losses_of(targets, self.stream[-1][:, : len(targets)]))[0].tolist()

    def losses(self, final: Tensor) -> Tensor:
        """The loss of every token except the first, from the final residual stream ``(B, T, C)``: ``(B, T - 1)`` nats.

        Column ``t`` is the loss of token ``t + 1``, given those before it.
        """
        return self.losses_of(self.ids[1:], final[:, :-1])

    @torch.no_grad()
    def losses_of(self, tokens: Sequence[int], final: Tensor) -> Tensor:
        """The losses ``(B, n)`` in nats of ``n`` tokens, each predicted from its place in ``final`` ``(B, n, C)``.

        The logits are computed in chunks, which bounds the memory.
        """
        rows = final.flatten(0, 1)
        targets = torch.tensor(tokens, dtype=torch.long, device=final.device).repeat(len(final))
        at_once = max(1, LOGITS_AT_ONCE // self.config.vocab_size)
        pieces = zip(rows.split(at_once), targets.split(at_once), strict=True)
        found = [F.cross_entropy(self.gpt.logits(piece).float(), ids, reduction="none") for piece, ids in pieces]
        return torch.cat(found).view(len(final), len(tokens))

    def check_head(self, layer: int, head: int) -> None:
        """Raise ``InputError`` unless the model has this head."""
        check_int("layer", layer, self.config.n_layer - 1, least=0)
        check_int("head", head, self.config.n_head - 1, least=0)

    def mask_of(self, layer: int) -> Tensor | None:
        """The factors of the heads' context vectors in a layer, ``(n_head,)``; None if all are 1."""
        return None if self.head_mask is None else self.head_mask[layer]

    def attend(self, edit: Edit | None = None, hooks: Hooks = NO_HOOKS) -> Attend:
        """Attention as ``GPT.run_blocks`` takes it, with ``edit`` applied to the context vectors of every layer."""

        def run(block: Block, x: Tensor) -> Tensor:
            of_layer = hooks.within(f"blocks.{block.layer}.attn.")
            context, _ = block.attn.context(x, head_mask=self.mask_of(block.layer), hooks=of_layer)
            return block.attn.output((context if edit is None else edit(block.layer, context)).to(x.dtype), of_layer)

        return run

    def run_layers(self, x: Tensor, *, edit: Edit | None = None, hooks: Hooks = NO_HOOKS, **layers: Any) -> Tensor:
        """``GPT.run_blocks`` with this text's head mask."""
        return self.gpt.run_blocks(x, self.attend(edit, hooks), hooks=hooks, **layers)

    def streams(self, x: Tensor, edit: Edit | None = None) -> list[Tensor]:
        """The residual streams before every layer, of which ``x`` is the first, and after all."""
        found: list[Tensor] = []
        points = [f"blocks.{layer}.hook_resid_pre" for layer in range(self.config.n_layer)]
        hooks = Hooks().with_hook(points, lambda x, _: found.append(x))
        final = self.run_layers(x, edit=edit, hooks=hooks)
        return [*found, final]

    @torch.no_grad()
    def run_from(self, layer: int, x: Tensor, edit: Edit | None = None) -> Tensor:
        """The final residual stream ``(B, T, C)`` if ``x`` ``(B, T, C)`` were the stream before ``layer``."""
        return self.run_layers(x, edit=edit, start=layer)

    @torch.no_grad()
    def run_with_context(self, layer: int, context: Tensor, edit: Edit | None = None) -> Tensor:
        """The final residual stream ``(B, T, C)`` if ``layer`` had the context vectors ``(B, T, n_head, head_dim)``.

        The attention of ``layer`` is not recomputed; ``edit`` applies to the layers after it.
        """
        return self.run_with_output(layer, self.block(layer).attn.output(context), edit)

    @torch.no_grad()
    def run_with_output(self, layer: int, output: Tensor, edit: Edit | None = None, stop: int | None = None) -> Tensor:
        """The residual stream ``(B, T, C)`` before layer ``stop``, by default the final one, if the attention of
        ``layer`` had added ``output`` ``(B, T, C)``; ``edit`` applies to the layers after it.
        """
        after = self.attend(edit)

        def attend(block: Block, x: Tensor) -> Tensor:
            return output if block.layer == layer else after(block, x)

        x = self.stream[layer].expand(len(output), -1, -1)
        return self.gpt.run_blocks(x, attend, start=layer, stop=stop)
