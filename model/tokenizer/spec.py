"""The content of a ``tokenizer.json``, and the checks that both kinds of tokenizer share."""

from collections.abc import Mapping
from typing import Any

from ..config import MAX_VOCAB_SIZE
from ..errors import Mismatch

Spec = dict[str, Any]  # parsed JSON from outside: its shape is checked wherever it is used


def part_type(part: object) -> object:
    """The ``type`` of one part of a pipeline, such as a decoder; None if there is no part."""
    return part.get("type") if isinstance(part, dict) else part


def check_id(token: str, token_id: object) -> None:
    """Raise ``Mismatch`` unless ``token_id`` can be the id of a token."""
    if not isinstance(token_id, int) or isinstance(token_id, bool) or not 0 <= token_id < MAX_VOCAB_SIZE:
        raise Mismatch(f"token {token!r} with the id {token_id!r}", f"an integer from 0 to {MAX_VOCAB_SIZE - 1:,}")


def check_distinct(vocabulary: Mapping[str, int]) -> None:
    """Raise ``Mismatch`` if two tokens share an id."""
    seen: dict[int, str] = {}
    for token, token_id in vocabulary.items():
        if token_id in seen:
            raise Mismatch(
                f"tokens {seen[token_id]!r} and {token!r} with the same id {token_id}", "a different id for each token"
            )
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
