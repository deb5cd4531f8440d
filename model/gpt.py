"""The GPT: embeddings, blocks of attention and MLP, and the projection back to the vocabulary."""

from collections.abc import Callable, Collection
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from .attention import MultiHeadAttention
from .config import GPTConfig
from .modules.cache import KVCache
from .modules.embedding import TokenEmbedding
from .modules.hooks import NO_HOOKS, Hooks
from .modules.layer_norms import LayerNorms, norms_around
from .modules.mlp import MLP
from .modules.norm import make_norm, make_qk_norm, normalise
from .modules.rotary import Rotary, rotaries_of

# Runs a block's attention: on one batch of texts, or on many texts that each have their own cache.
Attend = Callable[["Block", Tensor], Tensor]


class Forward(NamedTuple):
    """The result of a forward pass: ``logits`` ``(B, T, vocab_size)`` and the attention weights it recorded."""

    logits: Tensor
    attention: dict[int, Tensor]  # layer -> (B, n_head, T, S)


class Block(LayerNorms):
    """One layer: attention, then the MLP. What each reads of the residual stream, adds to it, or both are normalised.

    In a ``parallel`` block the MLP reads the stream as it was before attention.
    """

    def __init__(self, config: GPTConfig, layer: int, rotary: Rotary | None = None) -> None:
        super().__init__()
        self.layer, self.parallel = layer, config.parallel
        self.ln_1, self.ln_1_post = norms_around(config)
        self.attn = MultiHeadAttention(
            config.n_embd,
            config.n_embd,
            config.n_head,
            n_kv_head=config.n_kv_head,
            head_dim=config.head_dim,
            qkv_bias=config.qkv_bias,
            proj_bias=config.attn_proj_bias,
            qk_norm=make_qk_norm(config),
            rotary=rotary,
            dropout=config.attn_pdrop,
            scale=config.attention_scale(layer),
            window=config.window(layer),
        )
        self.ln_2, self.ln_2_post = norms_around(config)
        self.mlp = MLP(config)
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x: Tensor, attend: Attend, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The residual stream ``(..., C)`` after this layer. ``attend`` runs this block's attention on its input."""
        # Calling idle dropout modules would slow down small models by 5%.
        drop: Callable[[Tensor], Tensor] = self.dropout if self.training else lambda y: y
        x = hooks.at("hook_resid_pre", x)
        added = self.attention_output(attend(self, self.attention_input(x, hooks)), hooks)
        after = x + hooks.at("hook_attn_out", drop(added))
        if not self.parallel:
            after = x = hooks.at("hook_resid_mid", after)
        added = self.mlp(normalise(self.ln_2, x, hooks.within("ln2.")), hooks.within("mlp."))
        added = drop(self.mlp_output(added, hooks))
        return hooks.at("hook_resid_post", after + hooks.at("hook_mlp_out", added))

    def neurons(self, x: Tensor) -> Tensor:
        """The MLP's neurons ``(..., inner_dim)`` from the residual stream that it reads."""
        return self.mlp.neurons(self.ln_2(x))


class GPT(nn.Module):
    """A decoder-only transformer whose modules are named as in a GPT-2 checkpoint (Radford et al. 2019)."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.wte = TokenEmbedding(config)
        self.wpe = None if config.rotary else nn.Embedding(config.context_length, config.n_embd)  # of positions
        self.dropout = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(Block(config, layer, rotary) for layer, rotary in enumerate(rotaries_of(config)))
        self.ln_f = make_norm(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.tie_weights()

    @property
    def device(self) -> torch.device:
        return self.wte.weight.device

    @property
    def blocks(self) -> list[Block]:
        return cast(list[Block], list(self.h))

    def tie_weights(self) -> None:
        """Share the token embedding with the output head if the config ties them."""
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.wte.weight

    def embed(self, ids: Tensor, start: int = 0, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The residual stream before all layers, ``(B, T) -> (B, T, C)``; positions are counted from ``start``."""
        if (end := start + ids.shape[1]) > self.config.context_length:
            raise ValueError(f"{end} tokens do not fit into a context_length of {self.config.context_length}")
        return self.dropout(self.embeddings(ids, slice(start, end), hooks))

    def embeddings(self, ids: Tensor, positions: slice | Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """Token embeddings ``(..., C)``, plus those of the ``positions`` unless these are rotary."""
        tokens = hooks.at("hook_embed", self.wte(ids))
        if self.wpe is None:
            return tokens
        places = self.wpe.weight[positions]
        if hooks.have("hook_pos_embed"):  # a copy for each text, which the functions may change
            places = hooks.at("hook_pos_embed", places.repeat(len(ids), 1, 1))
        return tokens + places

    def forward(
        self,
        ids: Tensor,
        *,
        cache: KVCache | None = None,
        head_mask: Tensor | None = None,
        record: Collection[int] = (),
        last_only: bool = False,
        hooks: Hooks = NO_HOOKS,
    ) -> Forward:
        """Compute the logits of the token that follows each of the token ``ids`` ``(B, T)``.

        With a ``cache``, the tokens continue those already in it, and it grows by ``T``. ``head_mask``
        ``(n_layer, n_head)`` or ``(n_layer, B, n_head)`` scales each head's context vectors. ``record`` lists the
        layers whose attention weights are returned. ``last_only`` computes the logits of the last position alone,
        ``(B, 1, vocab_size)``. ``hooks`` see and change activations. Raises ``ValueError`` if the tokens do not fit in
        the context.
        """
        attention = {}

        def attend(block: Block, x: Tensor) -> Tensor:
            layer, mask = block.layer, None if head_mask is None else head_mask[block.layer]
            of_layer, keep = hooks.within(f"blocks.{layer}.attn."), layer in record
            output, weights = block.attn(x, cache=cache, layer=layer, head_mask=mask, need_weights=keep, hooks=of_layer)
            if weights is not None:
                attention[layer] = weights
            return output

        x = self.run_blocks(self.embed(ids, 0 if cache is None else cache.length, hooks), attend, hooks=hooks)
        if cache is not None:
            cache.advance(ids.shape[1])
        return Forward(self.logits(x[:, -1:] if last_only else x, hooks), attention)

    def run_blocks(
        self, x: Tensor, attend: Attend, *, start: int = 0, stop: int | None = None, hooks: Hooks = NO_HOOKS
    ) -> Tensor:
        """From layer ``start``'s input ``x`` ``(..., C)`` to ``stop``'s, or to the end."""
        for block in self.blocks[start:stop]:
            x = block(x, attend, hooks.within(f"blocks.{block.layer}."))
        return x

    def head_input(self, x: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The input of the output head: the normalised residual stream ``(..., C)`` after all layers."""
        return normalise(self.ln_f, x, hooks.within("ln_final."))

    def logits(self, x: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The logits ``(..., vocab_size)`` for the residual stream ``(..., C)`` after all layers."""
        return self.lm_head(self.head_input(x, hooks))

    def fold_norm(self, rows: Tensor) -> Tensor:
        """Convert ``rows`` ``(..., C)`` of the output head into rows that act on the residual stream."""
        return self.ln_f.fold(rows)

    def logit_direction(self, row: Tensor, x: Tensor) -> tuple[Tensor, float]:
        """``row`` ``(C,)`` of the output head as a direction in the residual stream, given the norm's divisor at ``x``.

        Returns ``direction`` ``(C,)`` and ``constant``: ``head_input(x) @ row`` is ``x @ direction + constant``, so
        every vector that was added to ``x`` ``(C,)`` contributes its own term (Elhage et al. 2021, "direct path").
        """
        return self.fold_norm(row) / self.ln_f.divisor(x), self.ln_f.constant(row)
