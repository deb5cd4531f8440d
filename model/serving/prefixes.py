"""Beginnings that texts have in common, such as a system prompt: their keys and values are computed once."""

from collections.abc import Hashable
from typing import NamedTuple

from ..lens.alignment import n_common
from .reader import Reader
from .sequence import TextSequence

MIN_SHARED = 32  # tokens; reading fewer takes no longer than waiting for another text to read them


class Kept(NamedTuple):
    """A text of ``client`` whose keys and values ``reader`` holds in a slot; ``stamp`` grows with each use."""

    reader: Reader | None
    ids: list[int]
    client: Hashable = None
    stamp: int = 0


NOTHING = Kept(None, [])


def kept_of(sequence: TextSequence, *, planned: bool = False) -> Kept:
    """What others may take over from a text in the batch; with ``planned``, after its prompt has been read.

    Under a head mask, keys and values differ.
    """
    if sequence.request.head_mask is not None:
        return NOTHING
    return Kept(sequence.reader, sequence.ids if planned else sequence.ids[: sequence.n_read], sequence.client)


def may_share(sequence: TextSequence) -> bool:
    """Whether a text has not begun to read, and no results for the tokens of its prompt are wanted."""
    request = sequence.request
    return not (sequence.n_read or request.record or request.prompt_logprobs or request.head_mask is not None)


def n_shared(sequence: TextSequence, kept: Kept) -> int:
    """How many tokens a text can take over; 0 if too few. Its last token is always read, for the logits after it.

    Clients share whole blocks, so that the time to the first token does not tell one whether it guessed another's
    next token.
    """
    n = n_common(sequence.ids[:-1], kept.ids) if kept.reader is sequence.reader else 0
    if kept.client != sequence.client:
        n -= n % MIN_SHARED
    return n if n >= MIN_SHARED else 0
