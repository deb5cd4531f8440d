"""Rung 1 of the ladder, byte-pair encoding: learn merges from a text, then apply them one step at a time.

Start from the bytes of a text, merge the most frequent pair of adjacent tokens into a new token, and repeat. The list
of merges is the whole tokenizer: to encode a text, replay them in the order in which they were learned (Sennrich et al.
2016, section 3.2; on bytes instead of characters: Radford et al. 2019, section 2.2).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import regex

from ..config import MAX_VOCAB_SIZE, check_int
from ..tokenizer import END_OF_TEXT, GPT2_PATTERN

# GPT-2 first splits a text into words and never merges across them, so "dog" and "dog!" share a token. A word includes
# the space before it; of several spaces, all but the last form a word of their own. ``re`` has no ``\p{L}``.
GPT2_WORD = regex.compile(GPT2_PATTERN)

Pair = tuple[bytes, bytes]
Word = tuple[bytes, ...]  # a word as its current tokens
Entry = TypeVar("Entry")


def gpt2_byte_alphabet() -> dict[int, str]:
    """A printable character for each of the 256 bytes, in the order of GPT-2's first 256 ids.

    Printable bytes represent themselves. The others (space, newline, control characters, parts of longer UTF-8
    sequences) are represented by the characters from U+0100 on, which is why a space is "Ġ" in GPT-2's files. Spelled
    out here as well as in ``model.tokenizer``, because the rung teaches it; a test compares the two.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(0x100 + n) for n, byte in enumerate(others)}


BYTE_TO_CHARACTER = gpt2_byte_alphabet()


def visible(token: bytes) -> str:
    """The token as text: ``b" the"`` is "Ġthe", and a byte that is only a part of a character is ``<0xC3>``."""
    text = token.decode("utf-8", "surrogateescape")  # in which such a byte is U+DC00 + byte
    shown = (
        BYTE_TO_CHARACTER[ord(c)] if c.isascii() else f"<0x{ord(c) - 0xDC00:02X}>" if 0xDC80 <= ord(c) <= 0xDCFF else c
        for c in text
    )
    return "".join(shown)


def split_into_bytes(text: str) -> list[Word]:
    """The words of ``text`` as single bytes, from which every encoding starts."""
    return [tuple(bytes([byte]) for byte in word.encode()) for word in GPT2_WORD.findall(text)]


def merge_pair(word: Word, pair: Pair) -> Word:
    """``word`` with each occurrence of ``pair``, from left to right, merged into one token."""
    merged, i = [], 0
    while i < len(word):
        width = 2 if word[i : i + 2] == pair else 1
        merged.append(b"".join(word[i : i + width]))
        i += width
    return tuple(merged)


class LearnedMerge(NamedTuple):
    """One step of learning: the most frequent ``pair``, and how often it occurred."""

    pair: Pair
    occurrences: int


def learn_merges(text: str, n_merges: int) -> Iterator[LearnedMerge]:
    """Yield up to ``n_merges`` merges learned from ``text``, each of the most frequent pair; ties go to the first.

    Stops early if no pair occurs twice, because a merge used only once is not worth a token. All pairs are recounted at
    each step, which is easy to follow but slow on megabytes. Raises ``ValueError`` for an invalid ``n_merges``.
    """
    check_int("n_merges", n_merges, MAX_VOCAB_SIZE, least=0)
    words = Counter(split_into_bytes(text))
    for _ in range(n_merges):
        counts: Counter[Pair] = Counter()
        for word, occurrences in words.items():
            for pair in pairwise(word):
                counts[pair] += occurrences
        best = max(counts, key=counts.__getitem__, default=None)
        if best is None or counts[best] < 2:
            return
        yield LearnedMerge(best, counts[best])
        words = Counter({merge_pair(word, best): occurrences for word, occurrences in words.items()})


class MergeStep(NamedTuple):
    """One step of encoding: merge number ``rank`` was applied to every ``pair``, and the text became ``words``."""

    rank: int
    pair: Pair
    words: list[Word]


class BytePairEncoding:
    """Encodes any text with a list of merges; earlier merges take precedence.

    Ids are assigned as in GPT-2's files: the 256 bytes in the order of ``gpt2_byte_alphabet``, one token per merge
    in the order of the list, then ``<|endoftext|>``. ``tokens[token_id]`` is the token as bytes.
    """

    def __init__(self, merges: Iterable[Pair]) -> None:
        self.merges = list(merges)
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        # A dict, because two pairs may form the same token, which then has only the id of the first pair.
        spelled = [bytes([byte]) for byte in BYTE_TO_CHARACTER] + [left + right for left, right in self.merges]
        self.tokens = [*dict.fromkeys(spelled), END_OF_TEXT.encode()]
        self.ids = {token: token_id for token_id, token in enumerate(self.tokens[:-1])}
        self.end_of_text_id = len(self.tokens) - 1

    @classmethod
    def learn(cls, text: str, n_merges: int) -> "BytePairEncoding":
        """A tokenizer with the first ``n_merges`` merges learned from ``text``."""
        return cls(merge.pair for merge in learn_merges(text, n_merges))

    def steps(self, text: str) -> Iterator[MergeStep]:
        """Yield each merge that applies to ``text``, in order of rank, with the text after it."""
        return self.merge_words(split_into_bytes(text))

    def merge_words(self, words: list[Word]) -> Iterator[MergeStep]:
        """Apply the merges to ``words``, lowest rank first, and yield each step."""
        while ranks := [self.ranks[pair] for word in words for pair in pairwise(word) if pair in self.ranks]:
            rank = min(ranks)
            pair = self.merges[rank]
            words = [merge_pair(word, pair) for word in words]
            yield MergeStep(rank, pair, words)

    def encode(self, text: str, *, allow_end_of_text: bool = False) -> list[int]:
        """The ids of ``text``. Any text can be encoded: at worst, each character becomes its bytes.

        ``<|endoftext|>`` counts as plain text, as it must in user input, unless ``allow_end_of_text`` is set.
        """
        if allow_end_of_text and END_OF_TEXT in text:
            first, *others = (self.encode(part) for part in text.split(END_OF_TEXT))
            return first + [token_id for part in others for token_id in (self.end_of_text_id, *part)]
        words = split_into_bytes(text)
        # Each distinct word once: merges never cross words.
        merged = {word: self.merge_word(word) for word in set(words)}
        return [self.ids[token] for word in words for token in merged[word]]

    def merge_word(self, word: Word) -> Word:
        """The tokens of one word after all merges."""
        for step in self.merge_words([word]):
            [word] = step.words
        return word

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; an incomplete character becomes "\N{REPLACEMENT CHARACTER}".

        Raises ``ValueError`` for an id outside the vocabulary.
        """
        return b"".join(look_up(self.tokens, ids)).decode(errors="replace")


def look_up(entries: Sequence[Entry], ids: Iterable[int]) -> list[Entry]:
    """``entries[id]`` for each id. Raises ``ValueError`` for ids out of range, including negative ones."""
    ids = list(ids)
    for token_id in ids:
        if not 0 <= token_id < len(entries):
            raise ValueError(f"token ids must be from 0 to {len(entries) - 1}, found {token_id}")
    return [entries[token_id] for token_id in ids]
