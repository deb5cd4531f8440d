"""Vocabularies of Llama, Gemma, Qwen, SmolLM and Pythia: ids and text as in transformers, which runs the same file."""

import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from transformers import LlamaTokenizer, PreTrainedTokenizerFast

from helpers.models import PROSE, tiny_bpe, tiny_gpt
from helpers.oracles.pipelines import PIPELINES
from model import LoadedModel, load
from model.checkpoint.vocabulary import read_tokenizer
from model.errors import Mismatch
from model.tokenizer import PipelineTokenizer, TextStream, from_spec
from model.tokenizer.streaming import TokenStream

TEXTS = [
    "",
    " ",
    "Hello, world!  Two spaces,\n\nlines   \t and 12345 digits; I'M we'll 'S",
    "naïve café e\u0301 日本語のテスト 🙂👩‍👩‍👧 \u00a0\u2028x²",
    "  def f(x):\r\n        return x\r\n\r\n",
    "<s>a</s><|endoftext|> b<|im_start|>user<|begin_of_text|><|eot_id|><",
    PROSE,
]


@cache
def both(name: str) -> tuple[PipelineTokenizer, Library]:
    spec = PIPELINES[name]()
    ours = from_spec(json.loads(json.dumps(spec)))
    assert isinstance(ours, PipelineTokenizer)
    return ours, Library.from_str(json.dumps(spec))


@pytest.mark.parametrize("name", PIPELINES)
def test_ids_and_text_equal_tokenizers(name: str, tmp_path: Path) -> None:
    ours, library = both(name)
    (tmp_path / "tokenizer.json").write_text(json.dumps(ours.spec))
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        check(ours, library, text)
        assert ours.encode_prompt(text) == theirs(text)["input_ids"] or text.startswith(("<s>", "<|begin"))
    assert ours.vocab_size == library.get_vocab_size()


def check(ours: PipelineTokenizer, library: Library, text: str) -> None:
    ids = ours.encode(text)
    assert ids == library.encode(text, add_special_tokens=False).ids
    if ours.begins_with and tuple(ids[:1]) == ours.begins_with:
        return  # the token that every prompt begins with is not part of a text
    if ours.begins_with:
        assert ours.encode_prompt(text) == library.encode(text).ids
        assert ours.decode(ours.encode_prompt(text)) == ours.decode(ids)
    known = unicodedata.normalize("NFC", text) if ours.normalization else text
    if ours.drops_first_space:
        assert ours.decode(ids) == library.decode(ids, skip_special_tokens=False)
    else:
        assert ours.decode(ids) == known
    stream = TextStream(ours)
    streamed = "".join([*map(stream.push, ids), stream.flush()])
    assert (streamed.removeprefix(" ") if ours.drops_first_space else streamed) == ours.decode(ids)


@pytest.mark.parametrize("name", PIPELINES)
def test_random_texts_equal_tokenizers(name: str) -> None:
    ours, library = both(name)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(
        text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.text(" \n\t'sltde1.aé🙂", max_size=40)
    )
    def run(text: str) -> None:
        check(ours, library, text)

    run()


@pytest.mark.parametrize("name", PIPELINES)
def test_decoding_in_pieces_equals_the_whole(name: str) -> None:
    ours, _ = both(name)
    for text in TEXTS:
        for size in (1, 3, 7):
            stream = TokenStream(ours)
            ids = [i for at in range(0, len(text), size) for i in stream.push(text[at : at + size])]
            assert ids + stream.flush() == ours.encode(text), text


def test_special_tokens_are_named() -> None:
    assert both("llama 3")[0].special_tokens == {"<|begin_of_text|>": 0, "<|eot_id|>": 1}
    assert both("llama 3")[0].begins_with == (0,)
    assert set(both("pythia")[0].special_tokens) == {"<|endoftext|>", "<|padding|>"}
    assert both("qwen 2")[0].begins_with == ()


def test_lone_surrogates_are_encoded() -> None:
    for name in PIPELINES:
        assert both(name)[0].decode(both(name)[0].encode("a\ud800b")) == "a\ufffdb"


def test_a_prompt_begins_with_its_token_once(tmp_path: Path) -> None:
    ours, _ = both("llama 3")
    loaded = LoadedModel("llama", tiny_gpt(vocab_size=ours.vocab_size), ours, eos_token_id=1, other_end_ids=(5, 7))
    assert loaded.parse_prompt("Hi") == [0, *ours.encode("Hi")] == loaded.parse_prompt("<|begin_of_text|>Hi")
    loaded.save(tmp_path)
    again = load(tmp_path, device="cpu")
    assert again.end_token_ids == (1, 5, 7)
    assert again.tokenizer.encode_prompt("Hi") == [0, *ours.encode("Hi")]


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
START, TEXT = {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}


@pytest.mark.parametrize("options", [{}, {"legacy": True}, {"add_prefix_space": False}, {"add_bos_token": False}])
def test_llama_vocabularies_that_transformers_saves(options: dict[str, bool], tmp_path: Path) -> None:
    spec = PIPELINES["mistral"]()["model"]
    theirs = LlamaTokenizer(vocab=spec["vocab"], merges=[tuple(merge) for merge in spec["merges"]], **options)
    theirs.save_pretrained(tmp_path)
    ours = read_tokenizer(tmp_path)
    for text in TEXTS:
        assert ours.encode_prompt(text) == theirs(text).input_ids or text.startswith("<s>")
        ids = ours.encode(text)
        assert ours.decode(ids) == theirs.decode(ids) or "<s>" in text


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("qwen 2", {"normalizer": {"type": "NFKC"}}, "a normalizer of type 'NFKC', expected 'NFC', or none"),
        ("smollm", {"pre_tokenizer": {"type": "Whitespace"}}, "the pre-tokenizer .*Whitespace.*, expected GPT-2's"),
        ("qwen 2", {"post_processor": {"type": "BertProcessing"}}, "type 'BertProcessing', expected one that adds"),
        ("llama 2", {"decoder": {"type": "Fuse"}}, "the decoder 'Fuse', expected 'ByteLevel', or that of Llama 2"),
        ("llama 2", {"normalizer": {"type": "NFC"}}, "the pre-tokenizer null, expected"),
        ("llama 2", {"decoder": {"type": "Sequence", "decoders": [REPLACE]}}, "the decoder 'Replace', expected"),
        ("mistral", {"pre_tokenizer": METASPACE | {"prepend_scheme": "last"}}, "the prepend_scheme 'last', expected"),
        ("mistral", {"pre_tokenizer": METASPACE | {"split": True}}, "the pre-tokenizer .*'split': true}, expected"),
        (
            "llama 2",
            {"post_processor": {"type": "TemplateProcessing", "single": [START, TEXT, {"SpecialToken": "</s>"}]}},
            "the template .*{'SpecialToken': '</s>'}], expected one that ends with the text",
        ),
    ],
)
def test_unsupported_pipelines_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Mismatch, match=message):
        from_spec(PIPELINES[name]() | changes)


def test_unknown_patterns_are_never_run() -> None:
    spec = PIPELINES["llama 3"]()
    spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a+)+$"
    with pytest.raises(Mismatch, match=r"the pre-tokenizer .*\(a\+\)\+\$"):
        from_spec(spec)


def test_tokens_with_a_common_prefix() -> None:
    """tiktoken could confuse them."""
    spec = json.loads(json.dumps(tiny_bpe(300).spec))
    pad = {"id": 300, "content": "<|pad|>", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    spec["added_tokens"] += [pad | flags, pad | flags | {"id": 301, "content": "<|pad|>s"}]
    assert from_spec(spec).encode("<|pad|>s<|pad|>") == Library.from_str(json.dumps(spec)).encode("<|pad|>s<|pad|>").ids
