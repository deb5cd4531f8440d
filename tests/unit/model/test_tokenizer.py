"""Vocabularies: text survives the round trip, and unsupported settings are refused by name."""

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from helpers.models import ALPHABET, PROSE, char_spec, tiny_bpe
from helpers.oracles.pipelines import PIPELINES
from model import UnknownCharacters
from model.errors import Mismatch
from model.tokenizer import BPETokenizer, CharTokenizer, TextStream, from_spec, text_tokens, token_text
from model.tokenizer.base import MAX_TOKEN_BYTES, BPEVocabulary

BPE = tiny_bpe(300)
CHARACTERS = CharTokenizer.train(ALPHABET)
MERGED = {"id": 299, "content": "<|pad|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False}


def bpe_spec(**model: Any) -> dict[str, Any]:
    """A byte-level ``tokenizer.json`` with ``model`` keys changed."""
    spec = copy.deepcopy(BPE.spec)
    spec["model"] |= model
    return spec


@settings(max_examples=200, deadline=None, derandomize=True)
@given(text=st.text(max_size=80))
def test_bpe_round_trip(text: str) -> None:
    ids = BPE.encode(text)
    assert BPE.decode(ids) == text
    assert b"".join(map(BPE.token_bytes, ids)) == text.encode()
    assert all(0 <= token_id < BPE.vocab_size for token_id in ids)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(text=st.text(alphabet=ALPHABET, max_size=80))
def test_character_round_trip(text: str) -> None:
    ids = CHARACTERS.encode(text)
    assert len(ids) == len(text)
    assert CHARACTERS.decode(ids) == text


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ids=st.lists(st.integers(0, 299), max_size=40))
def test_a_stream_joins_to_the_decoded_text(ids: list[int]) -> None:
    stream = TextStream(BPE)
    pieces = [stream.push(token_id) for token_id in ids]
    whole_so_far = "".join(pieces)
    assert whole_so_far + stream.flush() == BPE.decode(ids)
    assert BPE.decode(ids).startswith(whole_so_far)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(alphabet=st.text(min_size=1, max_size=60))
def test_any_alphabet_round_trips(alphabet: str) -> None:
    tokenizer = CharTokenizer.train(alphabet)
    again = from_spec(json.loads(json.dumps(tokenizer.spec)))
    assert isinstance(again, CharTokenizer)
    assert again.encode(alphabet) == tokenizer.encode(alphabet)
    assert again.decode(again.encode(alphabet)) == alphabet
    assert tokenizer.vocab_size == len(set(alphabet))


@pytest.mark.parametrize("spec", [BPE.spec, CHARACTERS.spec])
def test_a_spec_survives_json(spec: dict[str, Any]) -> None:
    again = from_spec(json.loads(json.dumps(spec)))
    text = PROSE if again.kind == "bpe" else ALPHABET
    assert again.spec == spec
    assert again.decode(again.encode(text)) == text


def test_training_a_bpe_vocabulary() -> None:
    assert BPE.vocab_size == 300
    assert BPE.special_tokens == {"<|endoftext|>": 0}
    assert {BPE.token_bytes(token_id) for token_id in range(1, 257)} == {bytes([byte]) for byte in range(256)}
    assert BPE.encode("a<|endoftext|>b")[1] == 0
    assert tiny_bpe(257).vocab_size == 257
    assert len(BPE.encode(PROSE)) < len(tiny_bpe(257).encode(PROSE)) == len(PROSE.encode())
    assert BPETokenizer.train(["ab"], 1000).vocab_size == 258  # no more merges than the text has


@pytest.mark.parametrize("vocab_size", [256, 0, -1])
def test_too_small_a_vocabulary_to_train(vocab_size: int) -> None:
    with pytest.raises(ValueError, match=f"at least 257 tokens, found vocab_size={vocab_size}"):
        BPETokenizer.train(["a"], vocab_size)


def test_unknown_characters_are_named() -> None:
    with pytest.raises(UnknownCharacters) as caught:
        CHARACTERS.encode("Caf\u00e9 \u2013 \u00e9\u0007 \U0001f642 \ud800")
    assert caught.value.characters == ("\u00e9", "\u2013", "\u0007", "\U0001f642", "\ud800")
    message = str(caught.value)
    assert "'\u00e9', '\u2013', U+0007, '\U0001f642', U+D800" in message
    assert message.encode()  # printable anywhere
    assert "It knows spaces and: " in message
    with pytest.raises(UnknownCharacters, match="has never seen 'c'. It knows: ab$"):
        CharTokenizer.train("ab").encode("c")
    with pytest.raises(UnknownCharacters, match=" and 10 more"):
        CHARACTERS.encode("".join(map(chr, range(0x400, 0x414))))


def test_lone_surrogates_do_not_break_bpe() -> None:
    assert BPE.decode(BPE.encode("a\ud800b")) == "a\ufffdb"


def test_ids_without_a_token_have_no_text() -> None:
    assert BPE.decode([10_000]) == CHARACTERS.decode([10_000]) == ""
    assert CHARACTERS.token_bytes(-1) == b""


def test_text_of_single_tokens() -> None:
    assert token_text(CHARACTERS, CHARACTERS.encode("\n")[0]) == "\n"
    whole, *rest = BPE.encode("\U0001f600")
    assert token_text(BPE, whole).startswith("<0xF0>")
    assert all(token_text(BPE, token_id).startswith("<0x") for token_id in rest)
    assert token_text(BPE, 0) == "<|endoftext|>"


@pytest.mark.parametrize("text", ["Жи “a” 😀!", "日本 naïve", "👩‍👩‍👧", "a<0xD0><0x96>"])
def test_a_character_of_several_tokens_stands_on_the_last(text: str) -> None:
    ids = BPE.encode(text)
    tokens = text_tokens(BPE, ids)
    assert [token.id for token in tokens] == ids
    assert "".join(token.shown for token in tokens) == text
    for i, token in enumerate(tokens):
        raw = BPE.token_bytes(token.id)
        before = BPE.decode(ids[:i]).rstrip("\ufffd")
        assert token.shown == BPE.decode(ids[: i + 1]).rstrip("\ufffd").removeprefix(before)
        assert bool(token.byte_text) == (raw.decode("utf-8", "replace").encode() != raw)
        assert token.byte_text in ("", token_text(BPE, token.id))
    for start in range(len(ids) + 1):
        assert text_tokens(BPE, ids, start) == tokens[start:]
        begun = text_tokens(BPE, ids[:start])  # bytes at the end may still be completed
        assert "".join(token.shown for token in begun) == BPE.decode(ids[:start]).rstrip("\ufffd")


@pytest.mark.parametrize(
    ("tokens", "texts"),
    [
        ([b"\xd0", b"\x96"], [("<0xD0>", "<0xD0>", ""), ("Ж", "<0x96>", "Ж")]),
        ([b"\xd0", b"a"], [("<0xD0>", "", "<0xD0>"), ("a", "", "a")]),
        ([b"\xd0", b"\xd0", b"\x96"], [("<0xD0>", "", "<0xD0>"), ("<0xD0>", "<0xD0>", ""), ("Ж", "<0x96>", "Ж")]),
        ([b"e\xd0", b"\x96\xd0"], [("e<0xD0>", "e<0xD0>", "e"), ("Ж<0xD0>", "<0x96><0xD0>", "Ж")]),
        ([b"\xff", b"", b"\x96"], [("<0xFF>", "", "<0xFF>"), ("", "", ""), ("<0x96>", "", "<0x96>")]),
    ],
)
def test_bytes_that_make_no_character_stand_as_bytes(tokens: list[bytes], texts: list[tuple[str, str, str]]) -> None:
    found = text_tokens(StandIn(dict(enumerate(tokens))), range(len(tokens)))
    assert [(token.text, token.byte_text, token.shown) for token in found] == texts


class StandIn(BPEVocabulary):
    """A vocabulary that only reads."""

    encode = None

    def __init__(self, bytes_of: dict[int, bytes]) -> None:
        self.bytes_of = bytes_of


def test_where_words_begin_with_their_space() -> None:
    assert BPE.words_begin_with_space
    assert not BPETokenizer.train(["no merges"], 257).words_begin_with_space
    assert not BPETokenizer.train(["spaces      " * 3, "12 + 34 " * 3], 259).words_begin_with_space
    assert not CHARACTERS.words_begin_with_space
    # SentencePiece's, which does not split a text before it merges.
    for words, expected in ((["▁a", "▁", "a", "ab"], True), (["▁a", "a▁"], False), (["▁", "▁▁", "a"], False)):
        vocabulary = StandIn(dict(enumerate(word.replace("▁", " ").encode() for word in words)))
        assert vocabulary.words_begin_with_space is expected


def test_gaps_between_character_ids() -> None:
    spec = char_spec("ab")
    spec["model"]["vocab"] = {"a": 3, "b": 7}
    tokenizer = from_spec(spec)
    assert (tokenizer.vocab_size, tokenizer.encode("ab"), tokenizer.decode([3, 5, 7])) == (8, [3, 7], "ab")


def changed(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a dotted path set; ``...`` removes it."""
    spec = copy.deepcopy(spec)
    *parents, name = path.split(".")
    place = spec
    for parent in parents:
        place = place[parent]
    if value is ...:
        del place[name]
    else:
        place[name] = value
    return spec


def without_byte() -> dict[str, int]:
    return {token: i for token, i in BPE.spec["model"]["vocab"].items() if token != "!"}


VOCABULARY, MERGES = BPE.spec["model"]["vocab"], BPE.spec["model"]["merges"]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
TEMPLATE = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}]}
BAD_SPECS: list[tuple[str, dict[str, Any], str, Any, str]] = [
    ("bpe", BPE.spec, "model", ..., "expected an object with a 'model'"),
    ("bpe", BPE.spec, "model", [], "expected an object with a 'model'"),
    ("bpe", BPE.spec, "model.type", "WordPiece", "found a model of type 'WordPiece', expected 'BPE'"),
    ("bpe", BPE.spec, "model.type", "Unigram", "type 'Unigram', expected 'BPE'"),
    ("bpe", BPE.spec, "model.vocab", {}, "no vocabulary"),
    ("bpe", BPE.spec, "model.vocab", [["a", 0]], "no vocabulary"),
    ("bpe", BPE.spec, "model.vocab", ..., "no vocabulary"),
    ("bpe", BPE.spec, "model.vocab", without_byte(), "without the byte 0x21 .1 missing., expected all 256 bytes"),
    ("bpe", BPE.spec, "model.vocab", VOCABULARY | {"zz": 5}, "with the same id 5"),
    ("bpe", BPE.spec, "model.dropout", 0.1, "merge dropout 0.1"),
    ("bpe", BPE.spec, "model.byte_fallback", True, "byte_fallback true"),
    ("bpe", BPE.spec, "model.continuing_subword_prefix", "##", "continuing_subword_prefix '##'"),
    ("bpe", BPE.spec, "model.end_of_word_suffix", "</w>", "end_of_word_suffix '</w>'"),
    ("bpe", BPE.spec, "model.merges", [*MERGES, ["q", "q"]], "expected two earlier tokens"),
    ("bpe", BPE.spec, "model.merges", [*MERGES, ["a"]], "expected a pair of tokens"),
    ("bpe", BPE.spec, "model.merges", [*MERGES, "a b c"], "expected a pair of tokens"),
    ("bpe", BPE.spec, "model.merges", [*MERGES, [1, 2]], "expected a pair of tokens"),
    ("bpe", BPE.spec, "model.merges", [*MERGES, None], "expected a pair of tokens"),
    ("bpe", BPE.spec, "normalizer", {"type": "Lowercase"}, "normalizer of type 'Lowercase'"),
    ("bpe", BPE.spec, "pre_tokenizer", None, "expected GPT-2's ByteLevel"),
    ("bpe", BPE.spec, "pre_tokenizer", {"type": "Whitespace"}, "expected GPT-2's ByteLevel"),
    ("bpe", BPE.spec, "pre_tokenizer", BYTE_LEVEL | {"add_prefix_space": True}, "without a prefix space"),
    ("bpe", BPE.spec, "pre_tokenizer", BYTE_LEVEL | {"use_regex": False}, "expected GPT-2's ByteLevel"),
    (
        "bpe",
        BPE.spec,
        "pre_tokenizer",
        {"type": "Sequence", "pretokenizers": [BYTE_LEVEL]},
        "expected GPT-2's ByteLevel",
    ),
    ("bpe", BPE.spec, "post_processor", TEMPLATE, "a post-processor that adds unknown tokens"),
    ("bpe", BPE.spec, "post_processor", {"type": "BertProcessing"}, "post-processor of type 'BertProcessing'"),
    ("bpe", BPE.spec, "decoder", None, "decoder None, expected 'ByteLevel'"),
    ("bpe", BPE.spec, "decoder", {"type": "Metaspace"}, "decoder 'Metaspace'"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": 0}], "same id 0"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": -1}], "id -1, expected an integer"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": 2**40}], "id 1099511627776, expected an integer"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": True}], "id true, expected an integer"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"content": "<|endoftext|>"}], "an id other than in the vocabulary"),
    (
        "bpe",
        BPE.spec,
        "added_tokens",
        [MERGED | {"id": 300, "content": ""}],
        "expected one with a 'content' and an 'id'",
    ),
    ("bpe", BPE.spec, "added_tokens", ["<|pad|>"], "expected one with a 'content' and an 'id'"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": 300, "lstrip": True}], "'<|pad|>' with lstrip"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": 300, "rstrip": True}], "'<|pad|>' with rstrip"),
    ("bpe", BPE.spec, "added_tokens", [MERGED | {"id": 300, "single_word": True}], "with single_word"),
    ("char", CHARACTERS.spec, "model.vocab.ab", 65, "found the token 'ab', expected single characters"),
    ("char", CHARACTERS.spec, "model.vocab.é", 0, "with the same id 0"),
    ("char", CHARACTERS.spec, "model.vocab.é", -1, "'é' with the id -1"),
    ("char", CHARACTERS.spec, "model.vocab.é", 65.0, "'é' with the id 65.0"),
    ("char", CHARACTERS.spec, "model.vocab.é", math.nan, "'é' with the id nan"),
    ("char", CHARACTERS.spec, "model.vocab.é", "65", "'é' with the id '65'"),
    ("char", CHARACTERS.spec, "model.vocab.é", 10**30, "'é' with the id 1000"),
    ("char", CHARACTERS.spec, "model.vocab.\ud800", 65, "surrogate"),
    ("char", CHARACTERS.spec, "decoder", None, "decoder None, expected 'Fuse'"),
    ("char", CHARACTERS.spec, "post_processor", TEMPLATE, "expected one that adds no tokens"),
    ("char", CHARACTERS.spec, "model.end_of_word_suffix", "</w>", "end_of_word_suffix"),
    ("char", CHARACTERS.spec, "added_tokens", [MERGED], "decoder 'Fuse', expected 'ByteLevel'"),
]


@pytest.mark.parametrize(
    ("spec", "path", "value", "message"),
    [pytest.param(*case[1:], id=f"{case[0]}-{case[2]}-{case[4]}") for case in BAD_SPECS],
)
def test_unsupported_specs_are_refused(spec: dict[str, Any], path: str, value: Any, message: str) -> None:
    with pytest.raises(Mismatch, match=message.replace("|", r"\|")) as caught:
        from_spec(changed(spec, path, value))
    assert str(caught.value) == f"found {caught.value.found}, expected {caught.value.expected}"


@pytest.mark.parametrize(
    "model",
    [
        {"vocab": VOCABULARY | {"zz": 300}},
        {"merges": []},
        {"merges": MERGES[::-1]},
        {"merges": [*MERGES, MERGES[0]]},
        {"vocab": {token: 299 - i for token, i in VOCABULARY.items()}},
    ],
)
def test_ids_that_are_no_merge_ranks(model: dict[str, Any]) -> None:
    spec = bpe_spec(**model)
    spec["added_tokens"] = []
    ours, library = from_spec(spec), Library.from_str(json.dumps(spec))
    for text in (PROSE, "zz zzz the  cat\n"):
        assert ours.encode(text) == library.encode(text).ids
        assert ours.decode(ours.encode(text)) == text


@pytest.mark.parametrize("spec", [None, [], "x", 5, {}, {"model": None}])
def test_missing_tokenizer_is_refused(spec: Any) -> None:
    with pytest.raises(ValueError, match="expected an object with a 'model'"):
        from_spec(spec)


def test_harmless_differences_are_accepted() -> None:
    """Keys that change nothing: merges as strings, no type, empty affixes, an added token outside the vocabulary."""
    strings = bpe_spec(merges=[" ".join(merge) for merge in MERGES], continuing_subword_prefix="")
    del strings["model"]["type"]
    strings |= {"truncation": {"max_length": 3}, "padding": {"length": 9}, "post_processor": BYTE_LEVEL}
    strings["added_tokens"] = [*BPE.spec["added_tokens"], MERGED | {"id": 305}]
    tokenizer = from_spec(strings)
    assert tokenizer.encode(PROSE) == BPE.encode(PROSE)
    assert tokenizer.encode("a<|pad|>") == [*BPE.encode("a"), 305]
    assert tokenizer.vocab_size == 306
    assert tokenizer.decode([305, 303]) == "<|pad|>"


def with_added_token(spec: dict[str, Any], content: str) -> dict[str, Any]:
    token_id = from_spec(spec).vocab_size
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return spec | {"added_tokens": [*spec["added_tokens"], {"id": token_id, "content": content, **flags}]}


@pytest.mark.parametrize("name", ["bytes", *PIPELINES])
def test_tokens_of_too_many_bytes_are_refused_by_name(name: str) -> None:
    spec = BPE.spec if name == "bytes" else PIPELINES[name]()
    longest = "é" * (MAX_TOKEN_BYTES // 2)
    tokenizer = from_spec(with_added_token(spec, longest))
    assert len(tokenizer.token_bytes(tokenizer.longest_token)) == MAX_TOKEN_BYTES
    for content, n_bytes in ((longest + "!", "1,025"), ("Z" * 50_000, "50,000")):
        with pytest.raises(Mismatch, match=rf"'{content[:9]}.* and {n_bytes} bytes, expected at most 1,024 bytes"):
            from_spec(with_added_token(spec, content))


def test_long_tokens_of_a_vocabulary_are_refused_whatever_holds_them() -> None:
    llama2 = PIPELINES["llama 2"]()
    llama2["model"]["vocab"]["▁" * 1025] = len(llama2["model"]["vocab"])
    words = {"type": "WordLevel", "vocab": {"a": 0, "[UNK]" * 300: 1}, "unk_token": "[UNK]" * 300}
    split = {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False}
    for spec in (llama2, {"model": words, "pre_tokenizer": split}):
        with pytest.raises(Mismatch, match="bytes, expected at most 1,024 bytes"):
            from_spec(spec)


def test_training_makes_no_token_that_would_be_refused() -> None:
    tokenizer = BPETokenizer.train(["a" * 5000], 280)
    assert len(tokenizer.token_bytes(tokenizer.longest_token)) <= MAX_TOKEN_BYTES


@pytest.mark.parametrize("name", ["bytes", *PIPELINES])
def test_pieces_join_to_the_text(name: str) -> None:
    tokenizer = BPE if name == "bytes" else from_spec(PIPELINES[name]())
    ids = tokenizer.encode_prompt(" " + PROSE)
    for some in (ids, ids[1:], ids[3:-1], ids[:1], []):
        pieces = tokenizer.pieces(some)
        assert len(pieces) == len(some) and "".join(pieces) == tokenizer.decode(some)


@pytest.mark.parametrize("name", ["bytes", *PIPELINES])
def test_a_prompt_is_what_follows_the_text_before_it(name: str) -> None:
    tokenizer = BPE if name == "bytes" else from_spec(PIPELINES[name]())
    for text in (PROSE, " two spaces", "\u0416\u0436", "a"):
        ids = tokenizer.encode_prompt(text)
        shown, before = "".join(token.shown for token in text_tokens(tokenizer, ids)), tokenizer.text_before(ids)
        assert shown == before + tokenizer.decode(ids)
        assert tokenizer.encode_prompt(shown.removeprefix(before)) == ids
        assert (before == "") == (not name.startswith(("llama", "mistral", "gemma")))
    assert tokenizer.text_before([]) == ""
