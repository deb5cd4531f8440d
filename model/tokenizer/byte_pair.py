"""Byte-level byte-pair encoding, run by tiktoken."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from ..config import MAX_VOCAB_SIZE
from ..errors import Mismatch, shorten
from .base import (
    END_OF_TEXT,
    MAX_TOKEN_BYTES,
    BPEVocabulary,
    Spec,
    added_tokens,
    check_distinct,
    check_id,
    check_post_processor,
    part_type,
    too_long,
)

# GPT-2's pre-tokenizer (Radford et al. 2019): a text is split into these pieces before any merge.
GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


# Limit on the sum of squared token lengths, to which the time for checking merges is proportional. GPT-2: 2.5 million.
MAX_MERGE_WORK = 20_000_000


class BPETokenizer(BPEVocabulary):
    """Byte-level byte-pair encoding as in GPT-2.

    tiktoken uses a token's id as its merge rank, so the vocabulary must contain all 256 bytes and its ids must follow
    the order of the merges. Raises ``Mismatch`` otherwise.
    """

    pattern = GPT2_PATTERN

    def __init__(self, spec: Spec) -> None:
        """``spec`` is the content of a ``tokenizer.json`` with a byte-level BPE model."""
        import tiktoken

        check_byte_level(spec)
        self.spec = spec
        vocabulary: dict[str, int] = spec["model"]["vocab"]
        self.special_tokens = {token["content"]: token["id"] for token in spec.get("added_tokens") or []}
        for content, token_id in (vocabulary | self.special_tokens).items():
            check_id(content, token_id)
        check_distinct(vocabulary | self.special_tokens)
        ranks = merge_ranks(vocabulary, spec["model"].get("merges") or [], self.special_tokens)
        self.encoding = tiktoken.Encoding(
            "headscope", pat_str=GPT2_PATTERN, mergeable_ranks=ranks, special_tokens=self.special_tokens
        )
        self.bytes_of = {token_id: token for token, token_id in ranks.items()}
        self.bytes_of |= {token_id: token.encode() for token, token_id in self.special_tokens.items()}

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "BPETokenizer":
        """Learn ``vocab_size`` tokens from ``texts``: ``<|endoftext|>``, the 256 bytes, and merges.

        Raises ``ValueError`` if ``vocab_size`` is below 257.
        """
        import json

        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        if vocab_size < 257:
            raise ValueError(f"a byte-level vocabulary needs at least 257 tokens, found vocab_size={vocab_size}")
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=[END_OF_TEXT],
            max_token_length=MAX_TOKEN_BYTES,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),  # tiktoken panics on a missing byte
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(json.loads(tokenizer.to_str()))

    def encode(self, text: str) -> list[int]:
        return self.checked(self.encoding.encode(text, allowed_special="all"))


def is_gpt2_byte_level(pre: object) -> bool:
    """Whether a pre-tokenizer splits a text as GPT-2's."""
    if not isinstance(pre, dict) or pre.get("type") != "ByteLevel":
        return False
    return not pre.get("add_prefix_space") and bool(pre.get("use_regex", True))


def check_byte_level(spec: Spec) -> None:
    """Raise ``Mismatch`` unless text is split as in GPT-2, with no processing beyond what tiktoken does."""
    pre = spec.get("pre_tokenizer")
    if not is_gpt2_byte_level(pre):
        raise Mismatch(f"the pre-tokenizer {pre!r}", "GPT-2's ByteLevel without a prefix space")
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "ByteLevel":
        raise Mismatch(f"the decoder {part_type(spec.get('decoder'))!r}", "'ByteLevel'")
    for name in ("byte_fallback", "ignore_merges"):
        if spec["model"].get(name):
            raise Mismatch(f"{name} true", "false")
    added_tokens(spec)
    contents = sorted(token["content"] for token in spec.get("added_tokens") or [])
    for one, other in itertools.pairwise(contents):
        if other.startswith(one):  # if a text contains the longer one, tiktoken may match either
            raise Mismatch(
                f"the added token {shorten(other)}, which begins with another, {shorten(one)}",
                "added tokens none of which is a prefix of another",
            )


def byte_to_character() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte: itself if printable, else the next code point from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {byte: chr(byte) for byte in printable}
    rest = (byte for byte in range(256) if byte not in table)
    return table | {byte: chr(256 + i) for i, byte in enumerate(rest)}


def merge_ranks(
    vocabulary: Mapping[str, int], merges: Sequence[object], special: Mapping[str, int]
) -> dict[bytes, int]:
    """Map the bytes of each token to its id, as tiktoken expects. Raises ``Mismatch`` unless ids are merge ranks."""
    byte_of = {character: byte for byte, character in byte_to_character().items()}
    missing = [byte for character, byte in byte_of.items() if character not in vocabulary]
    if missing:
        raise Mismatch(f"a vocabulary without the byte {missing[0]:#04x} ({len(missing)} missing)", "all 256 bytes")
    work = 0
    last, made = -1, {character: vocabulary[character] for character in byte_of}
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise Mismatch(f"the merge {merge!r}", "a pair of tokens")
        token = pair[0] + pair[1]
        if token not in vocabulary or pair[0] not in made or pair[1] not in made:
            raise Mismatch(f"the merge {merge!r}", "two earlier tokens that merge into a token of the vocabulary")
        if vocabulary[token] <= last:
            raise Mismatch(f"token {shorten(token)} with the id {vocabulary[token]} after {last}", "ids in merge order")
        work += len(token) ** 2
        if len(token) > MAX_TOKEN_BYTES:
            raise too_long(token, vocabulary[token], len(token))
        if work > MAX_MERGE_WORK:
            raise Mismatch(f"tokens as long as {len(token):,} characters", "shorter tokens")
        if len(token) > 2 and apply_merges(token, made) != pair:
            raise Mismatch(f"the merge {shorten(merge)}, which earlier merges preempt", "one that can take place")
        last = made[token] = vocabulary[token]
    # By the merges, no text encodes to a token that no merge produces, but tiktoken would still produce it.
    unmade = [token for token in vocabulary if token not in made and token not in special]
    if unmade:
        raise Mismatch(
            f"the token {shorten(unmade[0])}, which no merge produces ({len(unmade)} in all)", "a merge for each token"
        )
    return {bytes(byte_of[c] for c in token): token_id for token, token_id in made.items()}


def apply_merges(token: str, ranks: Mapping[str, int]) -> list[str]:
    """The pieces of ``token`` once the merges ``ranks`` are applied: lowest rank first, and leftmost among equals."""
    pieces = list(token)
    while len(pieces) > 1:
        rank, i = min((ranks.get(a + b, MAX_VOCAB_SIZE), i) for i, (a, b) in enumerate(itertools.pairwise(pieces)))
        if rank == MAX_VOCAB_SIZE:
            break
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces
