"""What a ``tokenizer.json`` holds: how one is made, and what is checked before one is believed."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from ..config import MAX_VOCAB_SIZE
from ..errors import Mismatch


def tokenizer_spec(model: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` around a model."""
    none = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor")
    return {"version": "1.0", "added_tokens": [], "decoder": decoder, "model": model} | dict.fromkeys(none)


def part_type(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else part


def check_id(token: str, token_id: object) -> None:
    if not isinstance(token_id, int) or isinstance(token_id, bool) or not 0 <= token_id < MAX_VOCAB_SIZE:
        raise Mismatch(f"token {token!r} with the id {token_id!r}", f"an integer from 0 to {MAX_VOCAB_SIZE - 1:,}")


def check_distinct(vocabulary: Mapping[str, int]) -> None:
    seen: dict[int, str] = {}
    for token, token_id in vocabulary.items():
        if token_id in seen:
            raise Mismatch(
                f"tokens {seen[token_id]!r} and {token!r} with the same id {token_id}", "one token for an id"
            )
        seen[token_id] = token


def check_fused(spec: dict[str, Any]) -> None:
    """Raise ``Mismatch`` unless characters are joined as they are, with nothing put around or in between."""
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "Fuse":
        raise Mismatch(f"the decoder {part_type(spec.get('decoder'))!r}", "'Fuse'")


def check_post_processor(spec: dict[str, Any]) -> None:
    """Raise ``Mismatch`` for one that adds tokens to a text; transformers writes a template without any."""
    post = spec.get("post_processor")
    if post is None or part_type(post) == "ByteLevel":
        return
    if part_type(post) != "TemplateProcessing":
        raise Mismatch(f"a post-processor of type {part_type(post)!r}", "one that adds no tokens to a text")
    template = post.get("single")
    if not isinstance(template, list) or len(template) != 1 or "Sequence" not in template[0]:
        raise Mismatch(f"a post-processor with the template {template!r}", "one that adds no tokens to a text")


def check_byte_level(spec: dict[str, Any]) -> None:
    """Raise ``Mismatch`` unless text is cut as GPT-2 cuts it, and nothing is done to it that tiktoken does not do."""
    pre = spec.get("pre_tokenizer")
    if (
        not isinstance(pre, dict)
        or pre.get("type") != "ByteLevel"
        or pre.get("add_prefix_space")
        or (not pre.get("use_regex", True))
    ):
        raise Mismatch(f"the pre-tokenizer {pre!r}", "GPT-2's ByteLevel without a prefix space")
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "ByteLevel":
        raise Mismatch(f"the decoder {part_type(spec.get('decoder'))!r}", "'ByteLevel'")
    for name in ("byte_fallback", "ignore_merges"):
        if spec["model"].get(name):
            raise Mismatch(f"{name} true", "false")
    for token in spec.get("added_tokens") or []:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str) or not token["content"]:
            raise Mismatch(f"the added token {token!r}", "one with a 'content' and an 'id'")
        check_id(token["content"], token.get("id"))
        if spec["model"]["vocab"].get(token["content"], token["id"]) != token["id"]:
            raise Mismatch(
                f"the added token {token['content']!r} with another id than in the vocabulary", "the same id"
            )
        for name in ("lstrip", "rstrip", "single_word"):
            if token.get(name):
                raise Mismatch(f"the added token {token['content']!r} with {name}", "one without it")
    contents = sorted(token["content"] for token in spec.get("added_tokens") or [])
    for one, other in itertools.pairwise(contents):
        if other.startswith(one):  # tiktoken may take either where a text holds the longer one
            raise Mismatch(f"the added token {other!r} that begins with {one!r}, another one", "none that does")


def byte_to_character() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte: itself where it prints, else the next free code point from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {byte: chr(byte) for byte in printable}
    rest = (byte for byte in range(256) if byte not in table)
    return table | {byte: chr(256 + i) for i, byte in enumerate(rest)}


def merge_ranks(vocabulary: Mapping[str, int], merges: Sequence[Any], special: Mapping[str, int]) -> dict[bytes, int]:
    """Token bytes to ids, as tiktoken wants them. Raises ``Mismatch`` where ids are not merge ranks."""
    byte_of = {character: byte for byte, character in byte_to_character().items()}
    missing = [byte for character, byte in byte_of.items() if character not in vocabulary]
    if missing:
        raise Mismatch(f"a vocabulary without the byte {missing[0]:#04x} ({len(missing)} missing)", "all 256 bytes")
    last, made = -1, {character: vocabulary[character] for character in byte_of}
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise Mismatch(f"the merge {merge!r}", "a pair of tokens")
        token = pair[0] + pair[1]
        if token not in vocabulary or pair[0] not in made or pair[1] not in made:
            raise Mismatch(f"the merge {merge!r}", "one of earlier tokens that makes a token of the vocabulary")
        if vocabulary[token] <= last:
            raise Mismatch(f"token {token!r} with the id {vocabulary[token]} after {last}", "ids in merge order")
        if len(token) > 2 and parts(token, made) != pair:
            raise Mismatch(f"the merge {merge!r} to which earlier merges leave nothing to do", "one that makes a token")
        last = made[token] = vocabulary[token]
    # A token that no merge makes can never come out of text; tiktoken would make it all the same.
    unmade = [token for token in vocabulary if token not in made and token not in special]
    if unmade:
        raise Mismatch(f"the token {unmade[0]!r} that no merge makes ({len(unmade)} such)", "a merge for each token")
    return {bytes(byte_of[c] for c in token): token_id for token, token_id in made.items()}


def parts(token: str, ranks: Mapping[str, int]) -> list[str]:
    """What the merges ``ranks`` make of ``token``: the pair of the lowest rank, the leftmost first, again and again."""
    pieces = list(token)
    while len(pieces) > 1:
        rank, i = min((ranks.get(a + b, MAX_VOCAB_SIZE), i) for i, (a, b) in enumerate(itertools.pairwise(pieces)))
        if rank == MAX_VOCAB_SIZE:
            break
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces
