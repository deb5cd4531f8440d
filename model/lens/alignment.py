"""Which tokens of two texts correspond to each other."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from ..errors import InputError
from ..tokenizer import Tokenizer, token_text

RELATED = 0.5  # of the longer text: texts that share less are not versions of one text
MAX_CELLS = 4_500_000  # of the table of subsequences: two stretches of over 2,048 tokens each count as different
IdsOrBytes = TypeVar("IdsOrBytes", list[int], bytes)


class Piece(NamedTuple):
    """Tokens ``a_start`` to ``a_stop - 1`` of one text that belong to tokens ``b_start`` to ``b_stop - 1`` of another.

    With one tokenizer, each piece is one token, and tokens between two pieces have no counterpart. With two, it is the
    shortest text at whose end both have a token boundary. ``same`` says whether both texts are equal there, so that the
    weights on it can be compared.
    """

    a_start: int
    a_stop: int
    b_start: int
    b_stop: int
    same: bool


class Alignment(NamedTuple):
    """Pieces in order; ``divergence`` is the index of the first one after the texts diverge, or None if they do not."""

    pieces: list[Piece]
    divergence: int | None


class TokenizedText(NamedTuple):
    """A text as the token ids of a vocabulary."""

    ids: Sequence[int]
    tokenizer: Tokenizer


class Stretch(NamedTuple):
    """A stretch of ``one`` tokens in one text and ``other`` tokens in another, equal or different."""

    same: bool
    one: int
    other: int


def align(a: Sequence[int], b: Sequence[int], *, is_given: bool = True, n_prompt: int = 0) -> Alignment:
    """Align two texts of token ids from the same tokenizer.

    Texts of equal length are aligned position by position. Otherwise the tokens of a longest common subsequence are
    aligned, and between them tokens that are replaced with the same number of others. In texts with little in common,
    an equal stretch that is shorter than the differences on both sides counts as a coincidence. If nothing after the
    texts diverge is aligned, the first tokens that differ are: they have read the same beginning.

    ``is_given`` says that one of the texts was given as a whole. In two texts that a model wrote, equal tokens after
    the texts diverge may be a coincidence: unless the texts have much in common, they are aligned by ``align_growing``.
    """
    a, b = list(a), list(b)
    start = n_common(a, b)
    if start == min(len(a), len(b)):
        return align_growing(a, b)
    longest = max(len(a), len(b)) - start
    if len(a) == len(b):
        stretches = [Stretch(one == other, 1, 1) for one, other in zip(a[start:], b[start:], strict=True)]
    else:
        stretches = common_stretches(a[start:], b[start:])
    is_related = sum(stretch.one for stretch in stretches if stretch.same) > RELATED * longest
    if not is_related and not is_given:
        return align_growing(a, b, n_prompt=n_prompt)
    if not is_related and len(a) != len(b):
        stretches = without_coincidences(stretches)
    pieces, i, j = [token_piece(i, i, same=True) for i in range(start)], start, start
    for same, one, other in stretches:
        if one == other:
            pieces += [token_piece(i + k, j + k, same=same) for k in range(one)]
        i, j = i + one, j + other
    if len(pieces) == start > 0:
        pieces.append(token_piece(start, start, same=False))
    return Alignment(pieces, start)


def align_growing(a: Sequence[int], b: Sequence[int], *, n_prompt: int = 0) -> Alignment:
    """Align two texts that are still growing: position by position, counted as equal until they diverge.

    In the first ``n_prompt`` tokens, which were given in both, equal tokens count as equal even after a difference.
    """
    start, n = n_common(list(a), list(b)), min(len(a), len(b))
    pieces = [token_piece(i, i, same=i < start or (i < n_prompt and a[i] == b[i])) for i in range(n)]
    return Alignment(pieces, start if start < n else None)


def align_tokenized(one: TokenizedText, other: TokenizedText, *, is_given: bool = True) -> Alignment:
    """Align two texts by their ids, or by their bytes if the ids stand for other tokens in the other vocabulary."""
    if first_other_token(one.tokenizer, other.tokenizer, (*one.ids, *other.ids)) is None:
        return align(one.ids, other.ids, is_given=is_given)
    return align_texts(one.tokenizer.text_bytes(one.ids), other.tokenizer.text_bytes(other.ids))


def first_other_token(one: Tokenizer, other: Tokenizer, ids: Iterable[int]) -> int | None:
    """The first of ``ids`` that is another token in another vocabulary; None if all are the same tokens."""
    seen = () if one is other else dict.fromkeys(ids)
    return next((each for each in seen if one.token_bytes(each) != other.token_bytes(each)), None)


def check_same_tokens(one: Tokenizer, other: Tokenizer, ids: Iterable[int], field: str) -> None:
    """Raise ``InputError`` about ``field`` if a model is given ``ids`` that are other tokens in its own vocabulary."""
    if (found := first_other_token(one, other, ids)) is not None:
        names = " and ".join(repr(token_text(each, found)) for each in (one, other))
        message = f"{field}: the id {found} is two tokens in the vocabularies of the two models, {names}: give text."
        raise InputError(field, message)


def align_texts(a: Sequence[bytes], b: Sequence[bytes]) -> Alignment:
    """Align two texts from different vocabularies, each as the bytes that its tokens add (``Tokenizer.text_bytes``).

    Each piece is the shortest text at whose end both have a token boundary. Tokens before the texts, which add nothing,
    have no counterpart. A single space at the beginning does not count: some vocabularies put one there unless there is
    one. Where the texts differ, they are aligned token by token.
    """
    a, b = without_first_space(a), without_first_space(b)
    n = n_common(b"".join(a), b"".join(b))
    ends_a, ends_b = token_ends(a), token_ends(b)
    pieces, (i, j) = list[Piece](), [next((i for i, added in enumerate(text) if added), 0) for text in (a, b)]
    for end in sorted(ends_a.keys() & ends_b.keys()):
        if 0 < end <= n:
            pieces.append(Piece(i, ends_a[end], j, ends_b[end], same=True))
            i, j = ends_a[end], ends_b[end]
    # The rest is only for texts that differ: a piece that is still incomplete in one of them is left out.
    if n == min(sum(map(len, a)), sum(map(len, b))) or i == len(a) or j == len(b):
        return Alignment(pieces, None)
    divergence = len(pieces)
    pieces += [token_piece(i + k, j + k, same=False) for k in range(min(len(a) - i, len(b) - j))]
    return Alignment(pieces, divergence)


def without_first_space(text: Sequence[bytes]) -> list[bytes]:
    first = next((i for i, added in enumerate(text) if added), 0)
    return [added.removeprefix(b" ") if i == first else added for i, added in enumerate(text)]


def token_piece(i: int, j: int, *, same: bool) -> Piece:
    return Piece(i, i + 1, j, j + 1, same)


def token_ends(texts: Sequence[bytes]) -> dict[int, int]:
    """The number of tokens up to the first token that ends at each offset."""
    ends: dict[int, int] = {}
    for n_tokens, end in enumerate(accumulate(map(len, texts)), 1):
        ends.setdefault(end, n_tokens)
    return ends


def common_stretches(one: list[int], other: list[int]) -> list[Stretch]:
    """Split two texts into equal and different stretches, by a longest common subsequence.

    Takes O(n m) time and, in int16, at most ``2 * MAX_CELLS`` bytes.
    """
    tail = n_common(one[::-1], other[::-1])
    n, m = len(one) - tail, len(other) - tail
    stretches: list[Stretch] = []

    def add(same: bool, in_one: int, in_other: int) -> None:
        if stretches and stretches[-1].same == same:
            last = stretches.pop()
            in_one, in_other = in_one + last.one, in_other + last.other
        if in_one or in_other:
            stretches.append(Stretch(same, in_one, in_other))

    i = j = 0
    if (n + 1) * (m + 1) <= MAX_CELLS:
        lengths = subsequence_lengths(one[:n], other[:m])
        here, below = lengths[:2].tolist() if n else ([], [])
        while i < n and j < m:
            if one[i] == other[j]:
                add(True, 1, 1)
                i, j = i + 1, j + 1
            elif below[j] >= here[j + 1]:
                add(False, 1, 0)
                i += 1
            else:
                add(False, 0, 1)
                j += 1
                continue
            here, below = below, lengths[min(i + 1, n)].tolist()
    add(False, n - i, m - j)
    add(True, tail, tail)
    return stretches


def subsequence_lengths(one: Sequence[int], other: Sequence[int]) -> Tensor:
    """The length of the longest common subsequence of ``one[i:]`` and ``other[j:]``, for every ``i`` and ``j``."""
    right = torch.tensor(other, dtype=torch.long)
    lengths = torch.zeros(len(one) + 1, len(other) + 1, dtype=torch.int16)
    for i in range(len(one) - 1, -1, -1):
        below = lengths[i + 1]
        best = torch.maximum(below[:-1], (below[1:] + 1) * (right == one[i]))
        lengths[i, :-1] = best.flip(0).cummax(0).values.flip(0) if other else best
    return lengths


def without_coincidences(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Drop what is shorter than the differences on both of its sides: words that any two texts have in common."""
    kept: list[Stretch] = []
    for stretch in stretches:
        kept.append(stretch)
        while len(kept) > 2 and not kept[-1].same:
            before, common, after = kept[-3:]
            if common.one >= max(before[1:]) or common.one >= max(after[1:]):
                break
            merged = Stretch(False, before.one + common.one + after.one, before.other + common.other + after.other)
            kept[-3:] = [merged]
    return kept


def n_common(one: IdsOrBytes, other: IdsOrBytes) -> int:
    """The length of the longest common beginning, found by bisection, because lists and bytes are compared quickly."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
