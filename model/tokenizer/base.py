"""The interface of both kinds of tokenizer, and shared checks of the content of a ``tokenizer.json``."""

import codecs
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

from ..config import MAX_VOCAB_SIZE
from ..errors import Mismatch, NotOneToken, UnknownCharacters, UnknownTokens, shorten

END_OF_TEXT = "<|endoftext|>"
MAX_TOKEN_BYTES = 1_024  # limits on texts count tokens; Pythia's longest token has 512 bytes
MAX_CHARACTER_BYTES = 4  # in UTF-8
LAST_BYTES = re.compile(r"(<0x[0-9A-F]{2}>)+\Z")
Spec = dict[str, Any]  # parsed JSON from an untrusted file: its structure is checked wherever it is used


class Tokenizer(ABC):
    """Converts text to token ids, and ids to text through bytes."""

    kind: Literal["char", "bpe"]
    spec: Spec  # the content of tokenizer.json
    special_tokens: dict[str, int]
    begins_with: tuple[int, ...] = ()  # ids that come before every prompt
    pattern = ""  # of the pieces into which a text is split before any merge; "" if it is not split
    normalization: Literal["", "NFC"] = ""  # of a text before it is split
    n_rows: int | None = None  # of the model, if the tokenizer has ids beyond them
    words_begin_with_space = False  # whether the space before a word is part of its token

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """One more than the largest token id."""

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The added tokens that are marked as special: a generated text can be shown without them."""
        return frozenset(token["id"] for token in self.spec.get("added_tokens") or [] if token.get("special"))

    @cached_property
    def longest_token(self) -> int:
        """The id of the token with the most bytes."""
        return max(range(self.vocab_size), key=lambda token_id: len(self.token_bytes(token_id)))

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The token ids of ``text``. A character vocabulary may raise ``UnknownCharacters``.

        Raises ``UnknownTokens`` for an id that is not below ``n_rows``.
        """

    def checked(self, ids: list[int]) -> list[int]:
        """``ids`` unchanged. Raises ``UnknownTokens`` for one that is not below ``n_rows``."""
        if self.n_rows is not None and max(ids, default=0) >= self.n_rows:
            raise UnknownTokens(max(ids), self.n_rows, token_text(self, max(ids)))
        return ids

    def encode_prompt(self, text: str) -> list[int]:
        """The ids of ``text``, preceded by those that start every prompt unless it already begins with them."""
        ids = self.encode(text)
        begins = tuple(ids[: len(self.begins_with)]) == self.begins_with
        return ids if begins else self.checked([*self.begins_with, *ids])

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """The half-open span of characters of ``text`` that each token of ``encode(text)`` touches."""
        character_of = [i for i, character in enumerate(text) for _ in character.encode()]  # of each byte
        ends = list(accumulate(len(self.token_bytes(token_id)) for token_id in self.encode(text)))
        return [(character_of[a], character_of[b - 1] + 1) for a, b in pairwise([0, *ends])]

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one token, possibly part of a character; empty for an id without a token."""

    def text_bytes(self, ids: Sequence[int]) -> list[bytes]:
        """The bytes that each of ``ids`` adds to their text: none for what the vocabulary puts before every prompt."""
        return list(map(self.token_bytes, ids))

    def text_before(self, ids: Sequence[int]) -> str:
        """What the vocabulary puts before the prompt ``ids``, such as ``"<s> "``: no part of their text."""
        first = ids[: len(self.begins_with) + 1]
        whole, own = b"".join(map(self.token_bytes, first)), b"".join(self.text_bytes(first))
        return whole.removesuffix(own).decode()

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ``ids``; bytes that are not valid UTF-8 become U+FFFD."""
        return b"".join(self.text_bytes(list(ids))).decode("utf-8", errors="replace")

    def encode_within(self, text: str) -> list[int]:
        """The ids of ``text`` in the middle of another text, where no space is put before it."""
        return self.encode(text)

    def token_of(self, text: str) -> int:
        """The id of the token whose bytes are exactly ``text``, or its normal form where the vocabulary reads that.

        Of several such tokens it is the one into which texts are encoded. Raises ``NotOneToken``, and a character
        vocabulary may raise ``UnknownCharacters``.
        """
        forms = [text, unicodedata.normalize(self.normalization, text)] if self.normalization else [text]
        named = [form.encode("utf-8", "surrogatepass") for form in forms]
        with suppress(UnknownCharacters):
            ids = self.encode_within(text)
            if len(ids) == 1 and self.token_bytes(ids[0]) in named:
                return ids[0]
        for raw in named:
            if raw in self.id_of_bytes:  # some tokens are never encoded to
                return self.id_of_bytes[raw]
        raise NotOneToken([token_text(self, token_id) for token_id in self.encode_within(text)])

    @cached_property
    def id_of_bytes(self) -> dict[bytes, int]:
        """The id of the token, or of one of the tokens, with these bytes."""
        ids = {self.token_bytes(token_id): token_id for token_id in range(self.vocab_size)}
        ids.pop(b"", None)
        return ids

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The characters of ``decode(ids)`` that each token completes; an unfinished one is with the last token."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        texts = self.text_bytes(ids)
        return [decoder.decode(raw, final=i == len(texts)) for i, raw in enumerate(texts, 1)]


class BPEVocabulary(Tokenizer):
    """A BPE vocabulary, with the bytes of the token of each id."""

    kind = "bpe"
    bytes_of: dict[int, bytes]

    @property
    def vocab_size(self) -> int:
        return max(self.bytes_of) + 1

    @cached_property
    def words_begin_with_space(self) -> bool:  # type: ignore[override]
        texts = [token.decode("utf-8", "ignore") for token in self.bytes_of.values() if b" " in token]
        begin = any(text[0] == " " and text[1:2].isalpha() for text in texts)
        return begin and not any(text[-1] == " " and text[-2:-1].isalpha() for text in texts)

    def token_bytes(self, token_id: int) -> bytes:
        return self.bytes_of.get(token_id, b"")


class Token(NamedTuple):
    """A token id and its display text.

    In a text, a character that several tokens make up stands on the last of them, and the others show their bytes:
    ``<0xE2>``.
    """

    id: int
    text: str

    @property
    def byte_text(self) -> str:
        """What a token of a text shows by itself if it holds only a part of some character; "" for all others."""
        return ""

    @property
    def shown(self) -> str:
        """What the token adds to the running text: without bytes of a character that a later token completes."""
        return LAST_BYTES.sub("", self.text) if self.byte_text else self.text


class PartialToken(Token):
    """A token that holds only a part of some character of its text."""

    byte_text: str = ""


def token_text(tokenizer: Tokenizer, token_id: int) -> str:
    """The display text of a token by itself: bytes that are not whole characters are ``<0xE2>``."""
    return split_characters([tokenizer.token_bytes(token_id)])[0][0]


def text_tokens(tokenizer: Tokenizer, ids: Sequence[int], start: int = 0) -> list[Token]:
    """The tokens from ``start`` on of a text, which may still grow."""
    first = max(start - MAX_CHARACTER_BYTES + 1, 0)  # where a character may begin that the token at ``start`` ends
    found = split_characters([tokenizer.token_bytes(token_id) for token_id in ids[first:]])
    tokens: list[Token] = []
    for token_id, (text, is_part) in zip(ids[start:], found[start - first :], strict=True):
        tokens.append(PartialToken(token_id, text) if is_part else Token(token_id, text))
        if isinstance(tokens[-1], PartialToken):
            tokens[-1].byte_text = token_text(tokenizer, token_id)
    return tokens


def split_characters(tokens: Sequence[bytes]) -> list[tuple[str, bool]]:
    """The display text of each token of a text, and whether it holds only a part of some character."""
    try:
        return [(token.decode(), False) for token in tokens]
    except UnicodeDecodeError:
        pass
    data, owners = b"".join(tokens), [i for i, token in enumerate(tokens) for _ in token]
    texts, are_parts = [""] * len(tokens), [False] * len(tokens)
    at = 0
    while at < len(data):
        piece, character, is_open = data[at : at + character_size(data[at])], "", False
        try:
            character = piece.decode()
        except UnicodeDecodeError as error:
            is_open = error.reason == "unexpected end of data"  # later tokens may complete it
            piece = piece if is_open else piece[:1]
        inside = owners[at : at + len(piece)]
        for byte, i in zip(piece, inside, strict=True):
            are_parts[i] |= is_open or inside[0] != inside[-1]
            if not character or i != inside[-1]:
                texts[i] += f"<0x{byte:02X}>"
        texts[inside[-1]] += character
        at += len(piece)
    return list(zip(texts, are_parts, strict=True))


def character_size(first: int) -> int:
    """The number of bytes of a UTF-8 character that begins with this byte."""
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def part_type(part: object) -> object:
    """The ``type`` of one part of a pipeline, such as a decoder; None if there is no part."""
    return part.get("type") if isinstance(part, dict) else part


def check_id(token: str, token_id: object) -> None:
    """Raise ``Mismatch`` unless ``token_id`` can be the id of a token."""
    if not isinstance(token_id, int) or isinstance(token_id, bool) or not 0 <= token_id < MAX_VOCAB_SIZE:
        raise Mismatch(
            f"token {shorten(token)} with the id {shorten(token_id)}", f"an integer from 0 to {MAX_VOCAB_SIZE - 1:,}"
        )


def check_longest(tokenizer: Tokenizer) -> None:
    """Raise ``Mismatch`` for a token of more than ``MAX_TOKEN_BYTES``."""
    token_id = tokenizer.longest_token
    if (n_bytes := len(tokenizer.token_bytes(token_id))) > MAX_TOKEN_BYTES:
        raise too_long(token_text(tokenizer, token_id), token_id, n_bytes)


def too_long(token: str, token_id: int, n_bytes: int) -> Mismatch:
    return Mismatch(
        f"the token {shorten(token)} with the id {token_id} and {n_bytes:,} bytes", f"at most {MAX_TOKEN_BYTES:,} bytes"
    )


def check_distinct(vocabulary: Mapping[str, int]) -> None:
    """Raise ``Mismatch`` if two tokens share an id."""
    seen: dict[int, str] = {}
    for token, token_id in vocabulary.items():
        if token_id in seen:
            both = f"{shorten(seen[token_id])} and {shorten(token)}"
            raise Mismatch(f"tokens {both} with the same id {token_id}", "a different id for each token")
        seen[token_id] = token


def check_post_processor(spec: Spec) -> None:
    """Raise ``Mismatch`` if the post-processor adds tokens; the template that transformers writes adds none."""
    post = spec.get("post_processor")
    if post is None or part_type(post) == "ByteLevel":
        return
    if part_type(post) != "TemplateProcessing":
        raise Mismatch(f"a post-processor of type {part_type(post)!r}", "one that adds no tokens to a text")
    template = post.get("single")
    if not isinstance(template, list) or len(template) != 1 or "Sequence" not in template[0]:
        raise Mismatch(f"a post-processor with the template {template!r}", "one that adds no tokens to a text")


def added_tokens(spec: Spec) -> list[dict[str, Any]]:
    """The added tokens, at which a text is split before anything else. Raises ``Mismatch`` for other kinds."""
    added: list[dict[str, Any]] = spec.get("added_tokens") or []
    for token in added:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str) or not token["content"]:
            raise Mismatch(f"the added token {shorten(token)}", "one with a 'content' and an 'id'")
        check_id(token["content"], token.get("id"))
        if spec["model"]["vocab"].get(token["content"], token["id"]) != token["id"]:
            raise Mismatch(
                f"the added token {shorten(token['content'])} with an id other than in the vocabulary", "the same id"
            )
        for name in ("lstrip", "rstrip", "single_word"):
            if token.get(name):
                raise Mismatch(f"the added token {shorten(token['content'])} with {name}", "one without it")
    return added
