"""``tokenizer.json`` read by the ``tokenizers`` library and by ``model.tokenizer``: the same ids, the same text."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from transformers import GPT2TokenizerFast

from helpers import also_slow
from helpers.models import ALPHABET, PROSE, tiny_bpe
from helpers.texts import Texts
from model.errors import Mismatch, UnknownCharacters
from model.tokenizer import BPETokenizer, CharTokenizer, from_spec, token_text
from model.tokenizer.byte_pair import byte_to_character
from model.tokenizer.streaming import TokenStream

FAMILY = "👩‍👩‍👧"
HARD_TEXTS = [
    "",
    " ",
    "\n",
    "   \n\n\t  x   ",
    "I'm you're he'd we've they'll it's I'M YOU'RE ' 's'S'll'LL",
    "3 + 4 = 7; 1,024.50 ٣٤٥ ½ ² Ⅷ 12345678901234567890",
    f"🙂{FAMILY}🇩🇪 e\u0301 é \u200b\u200d\ufeff",
    "日本語のテスト。中文 한국어 العربية עברית हिन्दी ไทย",
    "\u00a0\u1680\u2000\u2028\u2029\u202f\u205f\u3000\u0085\u180e x\u00a0y",
    "".join(map(chr, range(128))),
    "a<|endoftext|>b<|endoftext|><|endoftext|> c <|endoftext",
    "  def f(x):\r\n\t\treturn x  # done\r\n",
    "\ufffd\ufffe\uffff\U0010ffff",
    "_snake__case_ __init__ --- ... !!! ?! €100 £5",
]


def library(spec: dict[str, Any]) -> Library:
    return Library.from_str(json.dumps(spec))


@pytest.fixture(scope="module")
def bpe() -> BPETokenizer:
    return tiny_bpe(420)


@pytest.mark.parametrize("text", HARD_TEXTS)
def test_bpe_on_hard_texts(text: str, bpe: BPETokenizer) -> None:
    theirs = library(bpe.spec)
    ids = bpe.encode(text)
    assert ids == theirs.encode(text).ids
    assert bpe.decode(ids) == text == theirs.decode(ids, skip_special_tokens=False)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(text=st.text(max_size=60) | st.text(alphabet=" \n\t'sltde1.aé🙂", max_size=60))
def test_bpe_on_random_texts(text: str, bpe: BPETokenizer) -> None:
    ids = bpe.encode(text)
    assert ids == library_of(bpe).encode(text).ids
    assert bpe.decode(ids) == text


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ids=st.lists(st.integers(0, 419), max_size=40))
def test_decoding_any_ids(ids: list[int], bpe: BPETokenizer) -> None:
    """Bytes that are not UTF-8 become as many U+FFFD in both."""
    assert bpe.decode(ids) == library_of(bpe).decode(ids, skip_special_tokens=False)


def library_of(bpe: BPETokenizer, cache: dict[int, Library] | None = None) -> Library:
    cache = LIBRARIES if cache is None else cache
    return cache.setdefault(id(bpe), library(bpe.spec))


LIBRARIES: dict[int, Library] = {}


@pytest.mark.parametrize("are_all", [False, *also_slow(True)])
def test_pre_tokenization_equals_tokenizers_for_code_points(are_all: bool) -> None:
    """The beginning of each block of 256, where scripts begin and end, and all of the first blocks; or every one.

    Whether it is a letter, a number, a space or none of them: merges that join each byte to what follows it show where
    the text was cut.
    """
    stand_in = byte_to_character()
    vocabulary = {character: byte for byte, character in stand_in.items()}
    merges = []
    for byte in range(256):
        for follower in "a1! ":
            merges.append([stand_in[byte], stand_in[ord(follower)]])
            vocabulary["".join(merges[-1])] = len(vocabulary)
    spec = tiny_bpe(257).spec | {"added_tokens": []}
    ours = from_spec(spec | {"model": spec["model"] | {"vocab": vocabulary, "merges": merges}})
    theirs = Library.from_str(json.dumps(ours.spec))
    points = [point for point in range(0x110000) if are_all or point < 0x800 or point % 256 < 2]
    characters = [point for point in points if not 0xD800 <= point <= 0xDFFF]
    for start in range(0, len(characters), 256):
        text = "|".join(f"{c}a{c}1{c}!{c} a" for c in map(chr, characters[start : start + 256]))
        assert ours.encode(text) == theirs.encode(text).ids, f"from U+{characters[start]:04X}"


@pytest.mark.parametrize("seed", range(6))
def test_vocabularies_of_dense_merges(seed: int) -> None:
    """Few letters and many merges, where one token could be made in several ways."""
    rng = random.Random(seed)
    letters = "ab" if seed % 2 else "abc "

    def text() -> str:
        return "".join(rng.choice(letters) * rng.randint(1, 7) for _ in range(150))

    ours = BPETokenizer.train([text()], 380)
    theirs = library(ours.spec)
    for _ in range(60):
        sample = text()
        assert ours.encode(sample) == theirs.encode(sample).ids


def test_merges_that_earlier_ones_pre_empt_are_refused() -> None:
    """tokenizers reads "abc" as a, bc with these merges; tiktoken, which knows only ranks, would read abc."""
    spec = tiny_bpe(257).spec
    vocabulary = dict(spec["model"]["vocab"]) | {"bc": 257, "ab": 258, "abc": 259}
    model = spec["model"] | {"vocab": vocabulary, "merges": [["b", "c"], ["a", "b"], ["ab", "c"]]}
    assert len(library(spec | {"model": model}).encode("abc").ids) == 2
    with pytest.raises(ValueError, match="the merge .* earlier merges preempt, expected"):
        from_spec(spec | {"model": model})


def test_character_vocabulary_equals_tokenizers() -> None:
    text = ALPHABET + PROSE
    ours = CharTokenizer.train(text)
    theirs = library(ours.spec)
    ids = ours.encode(text)
    assert ids == theirs.encode(text).ids
    assert ours.decode(ids) == text == theirs.decode(ids)
    assert [ours.decode([i]) for i in ids] == list(text)


def test_the_characters_of_a_token_are_those_that_tokenizers_names(bpe: BPETokenizer) -> None:
    for ours in (bpe, CharTokenizer.train(ALPHABET + PROSE)):
        theirs = library(ours.spec | {"post_processor": None})  # GPT-2's would leave out spaces
        assert ours.offsets(PROSE) == theirs.encode(PROSE).offsets
        assert ours.offsets("") == []


def test_a_tokenizer_folder_of_transformers(tmp_path: Path, bpe: BPETokenizer) -> None:
    """What ``GPT2TokenizerFast.save_pretrained`` writes is read as it is."""
    model = bpe.spec["model"]
    write_merges = "#version: 0.2\n" + "\n".join(" ".join(merge) for merge in model["merges"]) + "\n"
    (tmp_path / "merges.txt").write_text(write_merges, encoding="utf-8")
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
    theirs = GPT2TokenizerFast(vocab=str(tmp_path / "vocab.json"), merges=str(tmp_path / "merges.txt"))
    theirs.save_pretrained(tmp_path / "saved")
    ours = from_spec(json.loads((tmp_path / "saved" / "tokenizer.json").read_text(encoding="utf-8")))
    for text in HARD_TEXTS:
        assert ours.encode(text) == theirs.encode(text)


def test_long_text_equals_tokenizers(texts: Texts) -> None:
    text = texts.shakespeare[:300_000]
    bpe = BPETokenizer.train([text], 1024)
    assert bpe.vocab_size == 1024
    ids = bpe.encode(text)
    assert ids == library(bpe.spec).encode(text).ids
    assert bpe.decode(ids) == text
    characters = CharTokenizer.train(text)
    assert characters.encode(text) == library(characters.spec).encode(text).ids


def test_gpt2s_published_vocabulary(texts: Texts) -> None:
    spec = texts.gpt2_spec()
    ours, theirs = from_spec(spec), library(spec)
    assert ours.vocab_size == 50257
    ids, expected = ours.encode(texts.verdict), theirs.encode(texts.verdict).ids
    assert ids == expected
    assert (len(ids), ids[:4]) == texts.expect((5145, [40, 367, 2885, 1464]), (len(expected), expected[:4]))
    assert ours.decode(ids) == texts.verdict
    for text in [*HARD_TEXTS, PROSE, texts.read("tinystories-valid")]:
        assert ours.encode(text) == theirs.encode(text).ids


@pytest.mark.parametrize(
    ("pattern", "behavior"),
    [
        ({"String": ""}, "Isolated"),
        ({"Regex": ""}, "Removed"),
        ({"Regex": "(?m)."}, "Isolated"),
        ({"Regex": "."}, "Isolated"),
    ],
)
def test_a_word_level_vocabulary_of_characters(pattern: dict[str, str], behavior: str) -> None:
    vocabulary = {token: i for i, token in enumerate(["[UNK]", "[END]", "\n", " ", *"abc\u00e9\u4e16"])}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    spec = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 1, "content": "[END]", **flags}],
        "normalizer": None,
        "pre_tokenizer": {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False},
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    ours, theirs = from_spec(spec), Library.from_str(json.dumps(spec))
    assert isinstance(ours, CharTokenizer) and ours.vocab_size == 9 and ours.spec == spec
    for text in ("", "abc", "a\nb c\u00e9\u4e16", "ab[END]c[END]"):
        ids = theirs.encode(text).ids
        assert ours.encode(text) == ids and ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)
    assert token_text(ours, 0) == "[UNK]"
    with pytest.raises(UnknownCharacters):
        ours.encode("[UNK]")
    spec["pre_tokenizer"] = {"type": "Whitespace"}
    with pytest.raises(Mismatch, match="Whitespace"):
        from_spec(spec)
    stream = TokenStream(ours)
    assert [*stream.push("ab[E"), *stream.push("ND]c"), *stream.flush()] == ours.encode("ab[END]c")
