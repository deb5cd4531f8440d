"""Conversations on the page: a pointer's ``chat`` has the messages that the shown prompt was made from.

The browser keeps them, and sends them with the next message; the answers that the model wrote, it sends as token ids.
"""

import json
from collections.abc import Mapping
from typing import Any
from unicodedata import normalize

from model import InputError, LoadedModel
from model.errors import InvalidValue, shorten

from ..serving.conversation import Span
from ..serving.inputs import whole

ROLES = ("system", "user", "assistant")
MAX_MESSAGES = 1_000

ChatMessage = dict[str, Any]  # role, content, and the start and the end of its tokens, None if they are unknown


def parse_messages(loaded: LoadedModel, sent: object) -> list[dict[str, str]]:
    """The messages that a browser sends: each has a role and its content, or the token ids of an answer."""
    if not isinstance(sent, list) or not 1 <= len(sent) <= MAX_MESSAGES:
        raise InvalidValue("messages", sent, f"1 to {MAX_MESSAGES:,} messages")
    return [parse_message(loaded, message) for message in sent]


def parse_message(loaded: LoadedModel, sent: object) -> dict[str, str]:
    if not isinstance(sent, dict) or sent.get("role") not in ROLES:
        raise InvalidValue("messages", sent, f"messages whose role is {', '.join(ROLES[:-1])} or {ROLES[-1]}")
    content, ids = sent.get("content"), sent.get("ids")
    if isinstance(ids, list) and content is None:
        content = loaded.tokenizer.decode(loaded.parse_prompt([whole(each) for each in ids])) if ids else ""
    if not isinstance(content, str):
        raise InputError("messages", f"The content of a message must be text, found {shorten(content)}.")
    return {"role": sent["role"], "content": content}


def with_span(message: Mapping[str, str], span: Span | None) -> ChatMessage:
    start, end = span or (None, None)
    return {**message, "start": start, "end": end}


def parse_linked_chat(loaded: LoadedModel, prompt: list[int], text: str) -> list[ChatMessage] | None:
    """The messages of a link, as ``web/js/lib/link.mjs`` writes them; None if they do not belong to its ``prompt``.

    Of each there are the role, the start and the end of its tokens, and its content unless that is their text.
    """
    try:
        sent = json.loads(text)
        messages, taken = [], 0
        for role, start, end, *content in sent:
            if start is not None:
                if type(start) is not int or type(end) is not int or not taken <= start < end <= len(prompt):
                    return None
                taken = end
            tokens = "" if start is None else text_of(loaded, prompt[start:end])
            message = parse_message(loaded, {"role": role, "content": content[0] if content else tokens})
            read, said = normalize("NFC", tokens), normalize("NFC", message["content"])
            if read.strip() not in said and said not in read:
                return None
            messages.append(with_span(message, None if start is None else (start, end)))
    except (ValueError, TypeError, RecursionError, InputError):
        return None
    return messages if 1 <= len(messages) <= MAX_MESSAGES else None


def text_of(loaded: LoadedModel, ids: list[int]) -> str:
    return b"".join(map(loaded.tokenizer.token_bytes, ids)).decode("utf-8", "replace")
