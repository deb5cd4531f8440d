"""Rungs 1 to 3 of the ladder: from a text to token ids, from ids to batches, and the smallest language model.

The names are offered by :mod:`model.ladder` too, where the whole ladder is listed.
"""

import re
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import MAX_CONTEXT_LENGTH, MAX_VOCAB_SIZE, check_int
from .bpe import END_OF_TEXT, look_up

# ---- Rung 1: text to tokens (byte-pair encoding: ladder_bpe.py) ------------------------------------------------------

UNKNOWN = "<|unk|>"
PUNCTUATION = re.compile(r"""(--|[,.:;?!_"'()]|\s)""")
SPACE_BEFORE_PUNCTUATION = re.compile(r"""\s+(?=[,.?!"'()])""")


def split_words(text: str) -> list[str]:
    """Words and punctuation marks, without the space between them."""
    return [piece for piece in PUNCTUATION.split(text) if piece.strip()]


class WordTokenizer:
    """One id per word of a text, in sorted order, then ``<|endoftext|>`` and ``<|unk|>`` (Raschka 2024, chapter 2).

    Simple and lossy: a word it has not seen becomes ``<|unk|>``, and the spaces of a text are guessed when decoding.
    """

    def __init__(self, text: str) -> None:
        self.words = [*sorted(set(split_words(text)) - {END_OF_TEXT, UNKNOWN}), END_OF_TEXT, UNKNOWN]
        self.ids = {word: token_id for token_id, word in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(word, self.ids[UNKNOWN]) for word in split_words(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The words, a space between them but none before punctuation. ``ValueError`` for an id outside."""
        return SPACE_BEFORE_PUNCTUATION.sub("", " ".join(look_up(self.words, ids)))


class CharacterTokenizer:
    """One id per character of a text, in sorted order: a tiny vocabulary, long sequences, nothing lost."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        self.ids = {character: token_id for token_id, character in enumerate(self.characters)}

    def encode(self, text: str) -> list[int]:
        """Raises ``ValueError`` that names the characters which are not in the vocabulary."""
        if unknown := sorted(set(text) - self.ids.keys()):
            raise ValueError(
                f"the vocabulary of {len(self.characters)} characters lacks {', '.join(map(repr, unknown))}"
            )
        return [self.ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """Raises ``ValueError`` for an id outside the vocabulary."""
        return "".join(look_up(self.characters, ids))


# ---- Rung 2: sliding windows and embeddings --------------------------------------------------------------------------


def sliding_windows(ids: Tensor, context_length: int, stride: int) -> tuple[Tensor, Tensor]:
    """Cut ``ids`` ``(N,)`` into inputs and targets, ``(n_windows, context_length)`` each, one every ``stride`` ids.

    The target of a position is the id that follows it, so the targets are the inputs shifted by one. With a stride of
    ``context_length`` no id is an input twice; ids that do not fill a last window are left out.
    Raises ``ValueError`` when not even one window fits.
    """
    check_ids(ids, at_least=2)
    check_int("context_length", context_length, len(ids) - 1)
    check_int("stride", stride, MAX_CONTEXT_LENGTH)
    windows = ids.unfold(0, context_length + 1, stride)
    return windows[:, :-1], windows[:, 1:]


def random_batch(
    ids: Tensor, batch_size: int, context_length: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Inputs and targets ``(batch_size, context_length)`` from random places of ``ids`` ``(N,)``, targets one later."""
    check_ids(ids, at_least=2)
    check_int("context_length", context_length, len(ids) - 1)
    check_int("batch_size", batch_size, len(ids))
    starts = torch.randint(len(ids) - context_length, (batch_size,), generator=generator)
    inputs = starts[:, None] + torch.arange(context_length)
    return ids[inputs], ids[inputs + 1]


class TokenAndPositionEmbedding(nn.Module):
    """What the token is plus where it stands: ``(B, T) -> (B, T, n_embd)``.

    Attention alone would treat a sentence as a bag of tokens; one learned vector per absolute position, added to the
    token's own, tells it the order (Radford et al. 2018, section 3.1).
    """

    def __init__(self, vocab_size: int, context_length: int, n_embd: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab_size, n_embd)
        self.position = nn.Embedding(context_length, n_embd)

    def forward(self, ids: Tensor) -> Tensor:
        """Raises ``ValueError`` for an id outside the vocabulary or more tokens than positions."""
        check_range(ids, self.token.num_embeddings)
        T = ids.shape[-1]
        if T > self.position.num_embeddings:
            raise ValueError(f"context_length is {self.position.num_embeddings} tokens, found {T}")
        return self.token(ids) + self.position(torch.arange(T, device=ids.device))


# ---- Rung 3: the bigram model ----------------------------------------------------------------------------------------


class BigramModel(nn.Module):
    """The next token guessed from the last one alone: row ``a`` of the table holds the logits of what follows ``a``.

    Untrained it is worse than a uniform guess, ``ln(vocab_size)`` nats, because random logits already prefer some
    tokens for no reason. Trained it can reach :func:`counted_bigram_loss` and no less: it never looks further back.
    """

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of the token after each: ``(B, T) -> (B, T, vocab_size)``."""
        check_range(ids, self.table.num_embeddings)
        return self.table(ids)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of ``targets`` ``(B, T)`` after ``inputs`` ``(B, T)``."""
        return F.cross_entropy(self(inputs).flatten(0, -2), targets.flatten())

    @torch.inference_mode()
    def generate(self, ids: Tensor, max_new_tokens: int, generator: torch.Generator | None = None) -> Tensor:
        """Append sampled tokens one at a time: ``(B, T) -> (B, T + max_new_tokens)``."""
        for _ in range(max_new_tokens):
            probabilities = torch.softmax(self(ids[:, -1]), dim=-1)
            ids = torch.cat([ids, torch.multinomial(probabilities, 1, generator=generator)], dim=1)
        return ids


def train_bigram(
    model: BigramModel,
    ids: Tensor,
    *,
    steps: int,
    batch_size: int = 32,
    context_length: int = 8,
    learning_rate: float = 1e-3,
    generator: torch.Generator | None = None,
) -> Iterator[float]:
    """Train on random batches of ``ids`` ``(N,)`` with AdamW and yield each step's loss in nats, before its update."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    for _ in range(steps):
        loss = model.loss(*random_batch(ids, batch_size, context_length, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def counted_bigram_loss(ids: Tensor, vocab_size: int) -> float:
    """The least loss in nats that any bigram model can have on ``ids`` ``(N,)``.

    Cross-entropy is least when the predicted probabilities are the observed ones, so no training is needed: count the
    pairs. It is the conditional entropy H(next | this) (Shannon 1948, section 6).
    """
    check_ids(ids, at_least=2)
    check_range(ids, vocab_size)
    pairs = ids[:-1] * vocab_size + ids[1:]
    counts = torch.bincount(pairs, minlength=vocab_size**2).view(vocab_size, vocab_size).double()
    firsts = counts.sum(dim=1)
    entropy = torch.special.entr(counts / firsts.clamp(min=1)[:, None]).sum(dim=1)  # -p ln p, with 0 ln 0 = 0
    return (firsts @ entropy / firsts.sum()).item()


def check_ids(ids: Tensor, at_least: int) -> None:
    """Raise ``ValueError`` unless ``ids`` is one row of enough token ids."""
    if ids.ndim != 1 or len(ids) < at_least:
        raise ValueError(f"token ids must be one row of at least {at_least}, found shape {tuple(ids.shape)}")


def check_range(ids: Tensor, vocab_size: int) -> None:
    """Raise ``ValueError`` when an id lies outside the vocabulary."""
    check_int("vocab_size", vocab_size, MAX_VOCAB_SIZE)
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise ValueError(f"token ids go from 0 to {vocab_size - 1}, found {int(ids.min())} to {int(ids.max())}")
