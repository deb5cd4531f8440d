"""Tokens of a text that arrives in pieces: those of the whole text, as soon as they cannot change any more."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helpers.models import ALPHABET, PROSE, tiny_bpe
from helpers.texts import Texts
from model import UnknownCharacters
from model.checkpoint.vocabulary import spec_of_pair
from model.tokenizer import END_OF_TEXT, BPETokenizer, CharTokenizer
from model.tokenizer.streaming import MAX_HELD, TokenStream

BPE = tiny_bpe(1200)
# What GPT-2's pre-tokenizer is particular about: spaces, apostrophes, digits, marks, the end of a text.
TRICKY = [
    "'",
    "'l",
    "ll",
    "re",
    "s",
    " ",
    "  ",
    "\n",
    "\n\n",
    "1",
    "23",
    "a",
    "the ",
    "é",
    "日本",
    "\u0301",
    "_",
    "!?",
    "🙂",
]
TRICKY += [END_OF_TEXT, *(END_OF_TEXT[:n] for n in (1, 2, 9, 12)), END_OF_TEXT[3:]]


def streamed(pieces: list[str]) -> list[int]:
    stream = TokenStream(BPE)
    return [token for piece in pieces for token in stream.push(piece)] + stream.flush()


@pytest.mark.slow
@settings(max_examples=600, deadline=None, derandomize=True)
@given(pieces=st.lists(st.sampled_from(TRICKY) | st.text(max_size=4), max_size=20))
@example(["we'", "l", "l ", "go"])
@example(["a  ", "<", "|endoftext|>"])
@example(["a  ", "<", "|endoftex"])
def test_streamed_ids_equal_those_of_the_whole_text(pieces: list[str]) -> None:
    assert streamed(pieces) == BPE.encode("".join(pieces))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_prose_in_pieces_of_any_size(size: int) -> None:
    cuts = [*range(0, len(PROSE), size), len(PROSE)]
    assert streamed([PROSE[a:b] for a, b in pairwise(cuts)]) == BPE.encode(PROSE)


def test_a_word_appears_when_the_next_one_begins() -> None:
    stream = TokenStream(BPE)

    shown = [BPE.decode(stream.push(piece)) for piece in ["It", "'", "s", " a fi", "ne", " day,"]]
    assert shown == ["", "It", "", "'s a", "", " fine day"]
    assert BPE.decode(stream.flush()) == ","


def test_what_never_ends_is_split_in_the_end() -> None:
    stream, text = TokenStream(BPE), "a" * (3 * MAX_HELD)
    ids = [token for character in text for token in stream.push(character)]
    assert len(BPE.decode(ids)) >= 2 * MAX_HELD and BPE.decode(ids + stream.flush()) == text


def test_characters_are_there_at_once() -> None:
    stream = TokenStream(CharTokenizer.train(ALPHABET))
    assert stream.push("ab") == stream.tokenizer.encode("ab") and stream.push("") == [] == stream.flush()
    with pytest.raises(UnknownCharacters):
        stream.push("é")


def test_gpt2_vocabulary_in_pieces(texts: Texts) -> None:
    tokenizer = BPETokenizer(spec_of_pair(texts.encoder, texts.merges, 10**7))
    text = texts.verdict
    stream = TokenStream(tokenizer)
    ids = [token for start in range(0, len(text), 5) for token in stream.push(text[start : start + 5])]
    assert ids + stream.flush() == tokenizer.encode(text)
