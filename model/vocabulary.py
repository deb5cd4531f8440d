"""What a ``tokenizer.json`` holds: how one is made, and what is checked before one is believed."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from .config import MAX_VOCAB_SIZE


def tokenizer_spec(model: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """The content of a ``tokenizer.json`` around a model."""
    none = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor")
    return {"version": "1.0", "added_tokens": [], "decoder": decoder, "model": model} | dict.fromkeys(none)


def part_type(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else part


def check_id(token: str, token_id: object) -> None:
    if not isinstance(token_id, int) or isinstance(token_id, bool) or not 0 <= token_id < MAX_VOCAB_SIZE:
        raise ValueError(
            f"token {token!r} with the id {token_id!r}, where an integer from 0 to {MAX_VOCAB_SIZE - 1} is needed"
        )


def check_distinct(vocabulary: Mapping[str, int]) -> None:
    seen: dict[int, str] = {}
    for token, token_id in vocabulary.items():
        if token_id in seen:
            raise ValueError(f"tokens {seen[token_id]!r} and {token!r} with the same id {token_id}")
        seen[token_id] = token


def check_fused(spec: dict[str, Any]) -> None:
    """Raise ``ValueError`` unless characters are joined as they are, with nothing put around or in between."""
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "Fuse":
        raise ValueError(f"the decoder {part_type(spec.get('decoder'))!r}, where only 'Fuse' can be read")


def check_post_processor(spec: dict[str, Any]) -> None:
    """Raise ``ValueError`` for one that adds tokens to a text; transformers writes a template without any."""
    post = spec.get("post_processor")
    if post is None or part_type(post) == "ByteLevel":
        return
    if part_type(post) != "TemplateProcessing":
        raise ValueError(f"a post-processor of type {part_type(post)!r}, which cannot be honoured")
    template = post.get("single")
    if not isinstance(template, list) or len(template) != 1 or "Sequence" not in template[0]:
        raise ValueError(f"a post-processor that adds tokens to a text, {template!r}, which cannot be honoured")


def check_byte_level(spec: dict[str, Any]) -> None:
    """Raise ``ValueError`` unless text is cut as GPT-2 cuts it, and nothing is done to it that tiktoken does not do."""
    pre = spec.get("pre_tokenizer")
    if (
        not isinstance(pre, dict)
        or pre.get("type") != "ByteLevel"
        or pre.get("add_prefix_space")
        or (not pre.get("use_regex", True))
    ):
        raise ValueError(f"the pre-tokenizer {pre!r}, where only GPT-2's ByteLevel without a prefix space can be read")
    check_post_processor(spec)
    if part_type(spec.get("decoder")) != "ByteLevel":
        raise ValueError(f"the decoder {part_type(spec.get('decoder'))!r}, where only 'ByteLevel' can be read")
    for name in ("byte_fallback", "ignore_merges"):
        if spec["model"].get(name):
            raise ValueError(f"{name} true, where only false can be honoured")
    for token in spec.get("added_tokens") or []:
        if not isinstance(token, dict) or not isinstance(token.get("content"), str) or not token["content"]:
            raise ValueError(f"the added token {token!r}, where a 'content' and an 'id' are needed")
        check_id(token["content"], token.get("id"))
        if spec["model"]["vocab"].get(token["content"], token["id"]) != token["id"]:
            raise ValueError(f"the added token {token['content']!r} with another id than in the vocabulary")
        for name in ("lstrip", "rstrip", "single_word"):
            if token.get(name):
                raise ValueError(f"the added token {token['content']!r} with {name}, which cannot be honoured")
    contents = sorted(token["content"] for token in spec.get("added_tokens") or [])
    for one, other in itertools.pairwise(contents):
        if other.startswith(one):  # tiktoken may take either where a text holds the longer one
            raise ValueError(f"the added token {other!r}, which begins with another one, {one!r}")


def byte_to_character() -> dict[int, str]:
    """GPT-2's printable stand-in for each byte: itself where it prints, else the next free code point from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    table = {byte: chr(byte) for byte in printable}
    rest = (byte for byte in range(256) if byte not in table)
    return table | {byte: chr(256 + i) for i, byte in enumerate(rest)}


def merge_ranks(vocabulary: Mapping[str, int], merges: Sequence[Any], special: Mapping[str, int]) -> dict[bytes, int]:
    """Token bytes to ids, as tiktoken wants them. Raises ``ValueError`` where ids are not merge ranks."""
    byte_of = {character: byte for byte, character in byte_to_character().items()}
    missing = [byte for character, byte in byte_of.items() if character not in vocabulary]
    if missing:
        raise ValueError(f"a vocabulary without the byte {missing[0]:#04x} ({len(missing)} of 256 are missing)")
    last, made = -1, {character: vocabulary[character] for character in byte_of}
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
            raise ValueError(f"the merge {merge!r}, where a pair of tokens is needed")
        token = pair[0] + pair[1]
        if token not in vocabulary or pair[0] not in made or pair[1] not in made:
            raise ValueError(f"the merge {merge!r} of tokens that are not in the vocabulary or come later")
        if vocabulary[token] <= last:
            raise ValueError(f"ids that are not in merge order: {token!r} has {vocabulary[token]} after {last}")
        if len(token) > 2 and parts(token, made) != pair:
            raise ValueError(f"the merge {merge!r}, which earlier merges leave nothing to do")
        last = made[token] = vocabulary[token]
    # A token that no merge makes can never come out of text; tiktoken would make it all the same.
    unmade = [token for token in vocabulary if token not in made and token not in special]
    if unmade:
        raise ValueError(f"the token {unmade[0]!r} that no merge makes ({len(unmade)} such)")
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
