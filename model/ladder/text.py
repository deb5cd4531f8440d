"""Rungs 1 and 2 of the ladder: from a text to token ids, and from ids to batches and vectors."""

import re
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ..config import MAX_CONTEXT_LENGTH, MAX_VOCAB_SIZE, check_int
from ..tokenizer import END_OF_TEXT
from .bpe import look_up

# ---- Rung 1: text to tokens (byte-pair encoding: bpe.py) -------------------------------------------------------------

UNKNOWN = "<|unk|>"
PUNCTUATION = re.compile(r"""(--|[,.:;?!_"'()]|\s)""")
SPACE_BEFORE_PUNCTUATION = re.compile(r"""\s+(?=[,.?!"'()])""")


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of ``text``, without the spaces between them."""
    return [piece for piece in PUNCTUATION.split(text) if piece.strip()]


class WordTokenizer:
    """One id per word of a text, in sorted order, then ``<|endoftext|>`` and ``<|unk|>`` (Raschka 2024, chapter 2).

    Simple but lossy: unseen words become ``<|unk|>``, and decoding has to guess where the spaces were.
    """

    def __init__(self, text: str) -> None:
        self.words = [*sorted(set(split_words(text)) - {END_OF_TEXT, UNKNOWN}), END_OF_TEXT, UNKNOWN]
        self.ids = {word: token_id for token_id, word in enumerate(self.words)}

    def encode(self, text: str) -> list[int]:
        return [self.ids.get(word, self.ids[UNKNOWN]) for word in split_words(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The words, separated by spaces except before punctuation. Raises ``ValueError`` for an unknown id."""
        return SPACE_BEFORE_PUNCTUATION.sub("", " ".join(look_up(self.words, ids)))


class CharacterTokenizer:
    """One id per character of a text, in sorted order: a tiny vocabulary and long sequences, but lossless."""

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        self.ids = {character: token_id for token_id, character in enumerate(self.characters)}

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``. Raises ``ValueError`` naming any characters that are not in the vocabulary."""
        if unknown := sorted(set(text) - self.ids.keys()):
            raise ValueError(
                f"the vocabulary of {len(self.characters)} characters lacks {', '.join(map(repr, unknown))}"
            )
        return [self.ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``. Raises ``ValueError`` for an id outside the vocabulary."""
        return "".join(look_up(self.characters, ids))


# ---- Rung 2: sliding windows and embeddings --------------------------------------------------------------------------


def sliding_windows(ids: Tensor, context_length: int, stride: int) -> tuple[Tensor, Tensor]:
    """Cut ``ids`` ``(N,)`` into inputs and targets, ``(n_windows, context_length)`` each, one every ``stride`` ids.

    The target at each position is the id that follows, so the targets are the inputs shifted by one. With a stride of
    ``context_length``, no id is an input twice. Ids that do not fill a last window are left out. Raises ``ValueError``
    if not even one window fits.
    """
    check_ids(ids, at_least=2)
    check_int("context_length", context_length, len(ids) - 1)
    check_int("stride", stride, MAX_CONTEXT_LENGTH)
    windows = ids.unfold(0, context_length + 1, stride)
    return windows[:, :-1], windows[:, 1:]


def random_batch(
    ids: Tensor, batch_size: int, context_length: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Inputs and targets ``(batch_size, context_length)`` at random positions in ``ids`` ``(N,)``."""
    check_ids(ids, at_least=2)
    check_int("context_length", context_length, len(ids) - 1)
    check_int("batch_size", batch_size, len(ids))
    starts = torch.randint(len(ids) - context_length, (batch_size,), generator=generator)
    inputs = starts[:, None] + torch.arange(context_length)
    return ids[inputs], ids[inputs + 1]


class TokenAndPositionEmbedding(nn.Module):
    """One vector for the token plus one for its position: ``(B, T) -> (B, T, n_embd)``.

    Attention compares vectors, and that of a token alone is the same at every position. A learned vector per absolute
    position, added to it, encodes the order (Radford et al. 2018, section 3.1).
    """

    def __init__(self, vocab_size: int, context_length: int, n_embd: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab_size, n_embd)
        self.position = nn.Embedding(context_length, n_embd)

    def forward(self, ids: Tensor) -> Tensor:
        """Raises ``ValueError`` for an id outside the vocabulary, or for more tokens than positions."""
        check_range(ids, self.token.num_embeddings)
        T = ids.shape[-1]
        if T > self.position.num_embeddings:
            raise ValueError(f"the context_length is {self.position.num_embeddings} tokens, found {T}")
        return self.token(ids) + self.position(torch.arange(T, device=ids.device))


def check_ids(ids: Tensor, at_least: int) -> None:
    """Raise ``ValueError`` unless ``ids`` is one row of at least ``at_least`` token ids."""
    if ids.ndim != 1 or len(ids) < at_least:
        raise ValueError(f"token ids must be one row of at least {at_least}, found shape {tuple(ids.shape)}")


def check_range(ids: Tensor, vocab_size: int) -> None:
    """Raise ``ValueError`` if an id is outside the vocabulary."""
    check_int("vocab_size", vocab_size, MAX_VOCAB_SIZE)
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise ValueError(f"token ids must be from 0 to {vocab_size - 1}, found {int(ids.min())} to {int(ids.max())}")
