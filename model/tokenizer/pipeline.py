"""The vocabularies of Llama, Mistral, Gemma, OLMo, Qwen, SmolLM and Pythia, run by the ``tokenizers`` library."""

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import MAX_FOUND, Mismatch, shorten
from .base import BPEVocabulary, Spec, added_tokens, check_distinct, check_id, part_type
from .byte_pair import GPT2_PATTERN, byte_to_character, is_gpt2_byte_level

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
# The pieces into which Llama 3 and Qwen 2 split a text before any merge: numbers have up to three digits, or one.
LLAMA3_PATTERN, QWEN2_PATTERN = (
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    for digits in (r"\p{N}{1,3}", r"\p{N}")
)
# Into these pieces, or by removing what is in none of them, as OLMo 2 does: nothing, since they cover any text.
SPLITS = (("Isolated", False), ("Removed", True))
DIGITS_PATTERN = rf"\p{{N}}|{GPT2_PATTERN}"  # of SmolLM: each digit alone, then as GPT-2
SURROGATE = re.compile("[\ud800-\udfff]")
PREPEND_SCHEMES = ("first", "always", "never")  # where "▁" is put: before a text, also after special tokens, or nowhere
SPACE = "▁"  # stands for a space in the vocabularies of SentencePiece (Kudo & Richardson 2018)
PRE_TOKENIZERS = (
    "GPT-2's ByteLevel without a prefix space, or the pre-tokenizer of Llama, Gemma 3, OLMo 2, Qwen 2, SmolLM or Pythia"
)


class PipelineTokenizer(BPEVocabulary):
    """A BPE vocabulary with one of the pipelines that these families use. Raises ``Mismatch`` for any other."""

    def __init__(self, spec: Spec) -> None:
        """``spec`` is the content of a ``tokenizer.json`` with a BPE model."""
        from tokenizers import Tokenizer as Library

        vocabulary: dict[str, int] = spec["model"]["vocab"]
        added = added_tokens(spec)
        contents = {token["content"]: token["id"] for token in added}
        for token, token_id in (vocabulary | contents).items():
            check_id(token, token_id)
        check_distinct(vocabulary | contents)
        is_byte_level = part_type(spec.get("decoder")) == "ByteLevel"
        pattern = check_byte_level(spec) if is_byte_level else check_sentencepiece(spec)
        # Other added tokens, such as Pythia's runs of spaces, end where no pattern shows.
        self.pattern = pattern if all(token.get("special") for token in added) else ""
        self.begins_with = tokens_before(spec, len(vocabulary) + len(added))
        self.normalization = "NFC" if spec.get("normalizer") is not None and is_byte_level else ""
        self.drops_first_space = part_type(parts(spec["decoder"], "decoders")[-1]) == "Strip"
        self.spec = spec
        self.special_tokens = {token["content"]: token["id"] for token in added if token.get("special")}
        if is_byte_level:
            self.bytes_of = dict(byte_level(vocabulary)) | {i: content.encode() for content, i in contents.items()}
        else:  # where added tokens, such as Gemma 3's runs of spaces, are written like others
            self.bytes_of = dict(sentencepiece(vocabulary | contents))
        try:
            # What comes before every prompt is added here; the library's post-processor would move offsets, too.
            self.library = Library.from_str(json.dumps(spec | {"post_processor": None}))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # the library panics on some inconsistent files
            raise Mismatch(
                f"a vocabulary that cannot be used ({shorten(str(error), MAX_FOUND)})", "a consistent one"
            ) from None
        self.library.no_truncation()
        self.library.no_padding()

    def encode(self, text: str) -> list[int]:
        return self.checked(list(self.library.encode(whole_characters(text), add_special_tokens=False).ids))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return list(self.library.encode(text, add_special_tokens=False).offsets)  # the normalizer may change a text

    def encode_within(self, text: str) -> list[int]:
        if part_type(self.spec["decoder"]) == "ByteLevel":
            return self.encode(text)
        # The vocabulary's merges alone: the normalizer and the pre-tokenizer only put spaces.
        return [token.id for token in self.library.model.tokenize(whole_characters(text).replace(" ", SPACE))]

    def text_bytes(self, ids: Sequence[int]) -> list[bytes]:
        n = len(self.begins_with) if tuple(ids[: len(self.begins_with)]) == self.begins_with else 0
        texts = [b""] * n + super().text_bytes(ids[n:])
        if self.drops_first_space and len(texts) > n:
            texts[n] = texts[n].removeprefix(b" ")
        return texts


def whole_characters(text: str) -> str:
    """``text`` with the halves of characters joined, or replaced with U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if SURROGATE.search(text) else text


def is_plain(spec: Spec) -> bool:
    """Whether ``BPETokenizer`` honours all that this ``tokenizer.json`` asks for, as far as its parts show."""
    contents = sorted(token["content"] for token in added_tokens(spec))
    overlap = any(other.startswith(one) for one, other in itertools.pairwise(contents))
    adds = part_type(spec.get("post_processor")) == "Sequence" or bool(tokens_before(spec, None))
    changes = spec.get("normalizer") is not None or spec["model"].get("ignore_merges")
    return is_gpt2_byte_level(spec.get("pre_tokenizer")) and not (overlap or adds or changes) and has_ranks(spec)


def has_ranks(spec: Spec) -> bool:
    """Whether ids are in merge order, and every token is a byte, a merge or added; OPT's are not."""
    vocabulary, merges = spec["model"]["vocab"], spec["model"].get("merges") or []
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    made = ["".join(map(str, pair)) for pair in pairs if isinstance(pair, list) and len(pair) == 2]
    ids = [vocabulary.get(token) for token in made]
    if len(made) < len(pairs) or not all(type(token_id) is int for token_id in ids):
        return True  # ``BPETokenizer`` says what is wrong with the merges
    known = {*made, *byte_to_character().values(), *(token["content"] for token in added_tokens(spec))}
    return ids == sorted(set(ids)) and vocabulary.keys() <= known


def parts(part: object, name: str) -> list[Any]:
    """The parts of a Sequence, or the part itself; none if there is none."""
    if isinstance(part, dict) and part.get("type") == "Sequence" and isinstance(part.get(name), list):
        return list(part[name])
    return [] if part is None else [part]


def check_byte_level(spec: Spec) -> str:
    """The pattern by which a byte-level pipeline splits a text. Raises ``Mismatch`` for an unknown pipeline."""
    normalizer = spec.get("normalizer")
    if normalizer is not None and normalizer != {"type": "NFC"}:
        raise Mismatch(f"a normalizer of type {part_type(normalizer)!r}", "'NFC', or none")
    if spec["model"].get("byte_fallback"):
        raise Mismatch("byte_fallback true", "false with a ByteLevel decoder")
    pre = spec.get("pre_tokenizer")
    match parts(pre, "pretokenizers"):
        case [byte_level] if is_gpt2_byte_level(byte_level) and byte_level is pre:
            return GPT2_PATTERN
        case [{"type": "Digits", "individual_digits": True}, byte_level] if is_gpt2_byte_level(byte_level):
            return DIGITS_PATTERN
        case [
            {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": str(behavior), "invert": bool(invert)},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ] if pattern in (LLAMA3_PATTERN, QWEN2_PATTERN) and (behavior, invert) in SPLITS:
            return str(pattern)
    raise Mismatch(f"the pre-tokenizer {shorten(pre, MAX_FOUND)}", PRE_TOKENIZERS)


def check_sentencepiece(spec: Spec) -> str:
    """Raise ``Mismatch`` unless this is Llama 2's pipeline, in either form. Returns ``""``: it does not split texts."""
    decoders = [part_type(part) for part in parts(spec.get("decoder"), "decoders")]
    if decoders not in (["Replace", "ByteFallback", "Fuse", "Strip"], ["Replace", "ByteFallback", "Fuse"]):
        found = ", ".join(map(shorten, decoders)) or "null"
        raise Mismatch(f"the decoder {found}", "'ByteLevel', or that of Llama 2")
    replace = spec["decoder"]["decoders"][0]
    if (replace.get("pattern"), replace.get("content")) != ({"String": SPACE}, " "):
        raise Mismatch(f"the decoder {shorten(replace, MAX_FOUND)}", f"one that replaces {SPACE} with a space")
    strip = spec["decoder"]["decoders"][-1]
    if decoders[-1] == "Strip" and (strip.get("content"), strip.get("start"), strip.get("stop")) != (" ", 1, 0):
        raise Mismatch(f"the decoder {shorten(strip, MAX_FOUND)}", "one that strips the first space")
    normalizers, pre = parts(spec.get("normalizer"), "normalizers"), spec.get("pre_tokenizer")
    to_spaces = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    at_spaces = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    if normalizers == [to_spaces] and pre == at_spaces:  # Gemma's: by then, no space is left at which to split
        pre = None
    match normalizers, pre:
        case (([replacing] | [{"type": "Prepend", "prepend": "▁"}, replacing]), None) if replacing == to_spaces:
            return ""
        case [], {"type": "Metaspace", "replacement": "▁", "prepend_scheme": str(scheme), "split": False}:
            if scheme in PREPEND_SCHEMES:
                return ""
            raise Mismatch(f"the prepend_scheme {shorten(scheme)}", f"one of {', '.join(map(repr, PREPEND_SCHEMES))}")
    raise Mismatch(f"the pre-tokenizer {shorten(pre, MAX_FOUND)}", PRE_TOKENIZERS)


def tokens_before(spec: Spec, n_tokens: int | None) -> tuple[int, ...]:
    """The ids that the post-processor puts before every text. Raises ``Mismatch`` if it does anything else."""
    found: list[int] = []
    for part in parts(spec.get("post_processor"), "processors"):
        if part_type(part) == "ByteLevel":
            continue
        if part_type(part) != "TemplateProcessing":
            raise Mismatch(f"a post-processor of type {part_type(part)!r}", "one that adds tokens before a text")
        match part.get("single"):
            case [*before, {"Sequence": {"id": "A"}}]:
                named = part.get("special_tokens") or {}
                for token in before:
                    found += named.get(token.get("SpecialToken", {}).get("id"), {}).get("ids", [-1])
            case other:
                raise Mismatch(
                    f"a post-processor with the template {shorten(other, MAX_FOUND)}", "one that ends with the text"
                )
    if not all(type(i) is int and 0 <= i and (n_tokens is None or i < n_tokens) for i in found):
        raise Mismatch("a post-processor that adds unknown tokens", "one that adds special tokens before a text")
    return tuple(found)


def byte_level(vocabulary: dict[str, int]) -> Iterable[tuple[int, bytes]]:
    byte_of = {character: byte for byte, character in byte_to_character().items()}
    for token, token_id in vocabulary.items():
        whole = all(character in byte_of for character in token)
        yield token_id, bytes(byte_of[character] for character in token) if whole else token.encode()


def sentencepiece(vocabulary: dict[str, int]) -> Iterable[tuple[int, bytes]]:
    single = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
    for token, token_id in vocabulary.items():
        yield token_id, single.get(token) or token.replace(SPACE, " ").encode("utf-8", "replace")
