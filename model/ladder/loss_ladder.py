"""What each part of a GPT is worth: models that grow from a bigram model to four blocks, trained in the same way.

The order is that of Karpathy's lecture on tiny Shakespeare, with the parts of this ladder. The last model, four blocks
without residual sums and layer norms, shows what these are for.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .bigram import SPLIT, BigramModel, NextTokenModel, train_bigram
from .terms import seeded
from .text import CharacterTokenizer, TokenAndPositionEmbedding, sliding_windows
from .trainable_attention import SelfAttentionV2, StackedHeads

CONTEXT_LENGTH, N_EMBD, BATCH_SIZE = 8, 32, 32
STEPS, LEARNING_RATE = 5_000, 1e-3


class GrowingBlock(nn.Module):
    """Attention with ``n_head`` causal heads, and, if requested, an MLP, residual sums and layer norms."""

    def __init__(
        self, n_head: int, *, has_mlp: bool = False, has_residual: bool = False, has_mask: bool = True
    ) -> None:
        super().__init__()
        self.attention = StackedHeads(N_EMBD, N_EMBD // n_head, n_head)
        if not has_mask:  # the same matrices, but each token sees the later ones, too
            self.attention.heads = nn.ModuleList(SelfAttentionV2(N_EMBD, N_EMBD // n_head) for _ in range(n_head))
        self.mlp = nn.Sequential(nn.Linear(N_EMBD, 4 * N_EMBD), nn.GELU(), nn.Linear(4 * N_EMBD, N_EMBD))
        self.norms = nn.ModuleList(nn.LayerNorm(N_EMBD) for _ in range(2))
        self.has_mlp, self.has_residual = has_mlp, has_residual

    def forward(self, x: Tensor) -> Tensor:
        """``(B, T, N_EMBD) -> (B, T, N_EMBD)``"""
        if self.has_residual:
            x = x + self.attention(self.norms[0](x))
            return x + self.mlp(self.norms[1](x))
        x = self.attention(x)
        return self.mlp(x) if self.has_mlp else x


class GrowingModel(NextTokenModel):
    """Embeddings, ``n_layer`` blocks with ``parts``, and logits, before which residual models normalise once more."""

    def __init__(self, vocab_size: int, n_head: int, n_layer: int = 1, **parts: bool) -> None:
        super().__init__()
        self.embedding = TokenAndPositionEmbedding(vocab_size, CONTEXT_LENGTH, N_EMBD)
        self.blocks = nn.Sequential(*(GrowingBlock(n_head, **parts) for _ in range(n_layer)))
        self.norm = nn.LayerNorm(N_EMBD) if parts.get("has_residual") else nn.Identity()
        self.logits = nn.Linear(N_EMBD, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of the token that follows each: ``(B, T) -> (B, T, vocab_size)``."""
        return self.logits(self.norm(self.blocks(self.embedding(ids))))


MODELS: dict[str, Callable[[int], NextTokenModel]] = {
    "bigram": BigramModel,
    "one head": lambda vocab_size: GrowingModel(vocab_size, 1),
    "four heads": lambda vocab_size: GrowingModel(vocab_size, 4),
    "MLP": lambda vocab_size: GrowingModel(vocab_size, 4, has_mlp=True),
    "residual and norm": lambda vocab_size: GrowingModel(vocab_size, 4, has_mlp=True, has_residual=True),
    "four blocks": lambda vocab_size: GrowingModel(vocab_size, 4, 4, has_mlp=True, has_residual=True),
    "four bare blocks": lambda vocab_size: GrowingModel(vocab_size, 4, 4, has_mlp=True),
}


class Trained(NamedTuple):
    """A trained model: its losses in nats, on all of both parts of the text."""

    name: str
    train_loss: float
    held_out_loss: float


def train_one(name: str, text: str, steps: int = STEPS, seed: int = 1) -> Trained:
    """Train a model of ``MODELS`` on the first nine tenths of ``text``; the same ``seed`` gives the same losses."""
    model, train, held_out = trained(MODELS[name], text, steps, seed)
    return Trained(name, whole_loss(model, train), whole_loss(model, held_out))


def trained(
    make: Callable[[int], NextTokenModel], text: str, steps: int, seed: int
) -> tuple[NextTokenModel, Tensor, Tensor]:
    """A model that ``make`` makes for a number of characters, and the ids that it is trained on and not trained on."""
    tokenizer = CharacterTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))
    train, held_out = ids[: int(SPLIT * len(ids))], ids[int(SPLIT * len(ids)) :]
    model = seeded(seed, lambda: make(len(tokenizer.characters)))
    batches = {"batch_size": BATCH_SIZE, "context_length": CONTEXT_LENGTH}
    generator = torch.Generator().manual_seed(seed)
    for _ in train_bigram(model, train, steps=steps, learning_rate=LEARNING_RATE, generator=generator, **batches):
        pass
    return model, train, held_out


class Peeking(NamedTuple):
    """The losses of a block with or without the mask, in nats, on held-out text."""

    has_mask: bool
    in_training: float  # a whole window is in sight, as in training
    writing: float  # only the tokens so far are there, as when it writes


def train_peeking(has_mask: bool, text: str, steps: int = STEPS, seed: int = 1) -> Peeking:
    """Train the block of ``MODELS`` with residual stream and layer norm, with the causal mask or without it."""
    parts = {"has_mlp": True, "has_residual": True, "has_mask": has_mask}
    model, _, held_out = trained(lambda vocab_size: GrowingModel(vocab_size, 4, **parts), text, steps, seed)
    return Peeking(has_mask, whole_loss(model, held_out), writing_loss(model, held_out))


@torch.no_grad()
def writing_loss(model: NextTokenModel, ids: Tensor) -> float:
    """The loss on all of ``ids`` ``(N,)`` if no later token of a window has been written yet."""
    inputs, targets = sliding_windows(ids, CONTEXT_LENGTH, CONTEXT_LENGTH)
    losses = [
        nn.functional.cross_entropy(model(inputs[:, : place + 1])[:, -1], targets[:, place]).item()
        for place in range(CONTEXT_LENGTH)
    ]
    return sum(losses) / len(losses)


@torch.no_grad()
def whole_loss(model: NextTokenModel, ids: Tensor) -> float:
    """The loss on all of ``ids`` ``(N,)``, in windows that do not overlap."""
    inputs, targets = sliding_windows(ids, CONTEXT_LENGTH, CONTEXT_LENGTH)
    return model.loss(inputs, targets).item()
