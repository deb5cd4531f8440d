"""Which tokens of two texts correspond to each other."""

import json
import random
from itertools import combinations

import pytest

from helpers.files import ROOT
from helpers.oracles.pipelines import PIPELINES
from model.lens.alignment import (
    Alignment,
    align,
    align_growing,
    align_texts,
    common_stretches,
    n_common,
)
from model.tokenizer import from_spec

CASES = ROOT / "tests" / "fixtures" / "alignments.json"


def ids(text: str) -> list[int]:
    """A token for each character."""
    return list(map(ord, text))


def in_bytes(text: str) -> list[bytes]:
    return [character.encode() for character in text]


def same(alignment: Alignment) -> str:
    return "".join(str(int(piece.same)) for piece in alignment.pieces)


@pytest.mark.parametrize(
    ("one", "other", "pairs"), json.loads((ROOT / "tests" / "fixtures" / "alignments.json").read_text())
)
def test_alignment_of_edited_texts(one: str, other: str, pairs: list[list[int]]) -> None:
    pieces = align(list(map(ord, one)), list(map(ord, other))).pieces
    assert [[piece.a_start, piece.b_start] for piece in pieces] == pairs
    assert all(piece.same == (one[piece.a_start] == other[piece.b_start]) for piece in pieces)


def test_the_common_subsequence_is_a_longest_one() -> None:
    draw = random.Random(0)
    for _ in range(100):
        one, other = ([draw.randrange(4) for _ in range(draw.randrange(9))] for _ in range(2))
        stretches = common_stretches(one, other)
        assert (sum(s.one for s in stretches), sum(s.other for s in stretches)) == (len(one), len(other))
        i = j = n = 0
        for same, in_one, in_other in stretches:
            assert not same or one[i : i + in_one] == other[j : j + in_other]
            i, j, n = i + in_one, j + in_other, n + same * in_one
        subsets = [{part for k in range(len(ids) + 1) for part in combinations(ids, k)} for ids in (one, other)]
        assert n == max(map(len, subsets[0] & subsets[1]))


def test_of_very_long_texts_only_the_ends_are_compared() -> None:
    """The table of all pairs of their tokens would fill the memory."""
    one, other = [7] * 3000 + [1, 2], [8] * 3000 + [9, 1, 2]
    assert common_stretches(one, other) == [(False, 3000, 3001), (True, 2, 2)]


def test_alignment_of_a_growing_text() -> None:
    """Texts that are equal until they diverge are aligned position by position, whatever follows."""
    alignment = align_growing(ids("abcde"), ids("abxd"))
    assert (same(alignment), alignment.divergence) == ("1100", 2)
    assert align_growing(ids("abc"), ids("ab")) == Alignment([(0, 1, 0, 1, True), (1, 2, 1, 2, True)], None)
    assert same(align_growing(ids("aXcYe"), ids("aZcYe"), n_prompt=4)) == "10110"  # the prompts were given


def test_what_two_written_texts_have_in_common_by_chance_is_not_compared() -> None:
    one, other = ids("The dog ran to the sea."), ids("The cat has a red hat.")
    for first in (one, one[:22]):
        alignment = align(first, other, is_given=False)
        assert alignment == align_growing(first, other) and same(alignment).find("1", 4) == -1


def test_several_words_replaced_in_a_text_of_the_same_length() -> None:
    one, other = "Lily has a dog. Lily is glad. Lily sings.", "Anna has a dog. Anna is glad. Anna sings."
    expected = "".join(str(int(a == b)) for a, b in zip(one, other, strict=True))
    for is_given in (True, False):  # so long a match is no coincidence
        alignment = align(ids(one), ids(other), is_given=is_given)
        assert (same(alignment), alignment.divergence) == (expected, 0)
    assert same(align_growing(ids(one), ids(other))) == "0" * len(one)


def test_alignment_across_tokenizers() -> None:
    """The smallest pieces that end at a token boundary of both texts."""
    alignment = align_texts(in_bytes("the cat"), [b"the", b" c", b"at"])
    assert alignment == Alignment([(0, 3, 0, 1, True), (3, 5, 1, 2, True), (5, 7, 2, 3, True)], None)
    # A piece whose end one text has not reached yet is left out, and is no difference.
    assert align_texts(in_bytes("the c"), [b"the", b" cat"]) == Alignment([(0, 3, 0, 1, True)], None)
    parted = align_texts(in_bytes("theys"), [b"the", b"m", b"s"])
    assert parted == Alignment([(0, 3, 0, 1, True), (3, 4, 1, 2, False), (4, 5, 2, 3, False)], 1)
    assert align_texts([b"a", b"", b"b"], [b"ab"]) == Alignment([(0, 3, 0, 1, True)], None)
    assert align_texts([], [b"a"]) == Alignment([], None)
    # Tokens that come before a text have no counterpart, and a character may be cut into its bytes.
    cut = align_texts([b"", b"", b"\xc3", b"\xa9", b"t"], ["ét".encode()[:2], b"t"])
    assert cut == Alignment([(2, 4, 0, 1, True), (4, 5, 1, 2, True)], None)


@pytest.mark.parametrize("text", ["Tom ran. Hi! said a big dog.", " two  spaces", "日本 — 🙂 é", "x"])
def test_a_text_is_the_same_in_every_vocabulary(text: str) -> None:
    """Without the tokens and the space that some put before it."""
    read = [(tokenizer := from_spec(make()), tokenizer.encode_prompt(text)) for make in PIPELINES.values()]
    for (one, a), (other, b) in combinations(read, 2):
        pieces, divergence = align_texts(one.text_bytes(a), other.text_bytes(b))
        assert divergence is None and pieces and all(piece.same for piece in pieces)
        assert (pieces[-1].a_stop, pieces[-1].b_stop) == (len(a), len(b))
        for piece in pieces:
            parts = one.text_bytes(a)[piece.a_start : piece.a_stop], other.text_bytes(b)[piece.b_start : piece.b_stop]
            assert b"".join(parts[0]) == b"".join(parts[1])


def test_with_one_tokenizer_both_ways_align_alike() -> None:
    texts = [b"a", b"bc", b"d", b"e"], [b"a", b"bc", b"x", b"f"]
    assert align_texts(*texts) == align(ids("abde"), ids("abxf"), is_given=False)


def test_common_beginnings_are_found() -> None:
    rng = random.Random(0)
    for _ in range(300):
        one, other = ([rng.randrange(2) for _ in range(rng.randrange(9))] for _ in range(2))
        expected = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        assert n_common(one, other) == (min(len(one), len(other)) if expected is None else expected)
