"""Conversations: the prompt that a model reads for one, and where in it each message is."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from model import InputError, LoadedModel

from ..settings import Limits
from .chat_templates import TemplateFailed, Templates

Conversation = Sequence[Mapping[str, str]]  # messages, each with a "role" and its "content"
Span = tuple[int, int]  # first and end

SPEAKERS = {"system": "System", "developer": "System", "user": "User", "assistant": "Assistant"}
# Characters for private use, of which each message gets two as marks.
FIRST_MARK, LAST_MARK = 0xF0000, 0xFFFFD
MARK = re.compile(f"[{chr(FIRST_MARK)}-{chr(LAST_MARK)}]")
END_OF_REASONING = "</think>"


def check_conversation_length(messages: Conversation, limits: Limits) -> None:
    """Raise ``InputError`` for more characters than a prompt may have."""
    n_characters, most = sum(len(message["content"]) for message in messages), limits.max_prompt_characters
    if n_characters > most:
        raise InputError("messages", f"The messages have {n_characters:,} characters; at most {most:,} are accepted.")


async def render(
    templates: Templates,
    client: Hashable,
    loaded: LoadedModel,
    messages: Conversation,
    *,
    add_generation_prompt: bool = True,
    template_options: Mapping[str, Any] | None = None,
) -> str:
    """The prompt for a conversation, ready for the assistant's turn unless ``add_generation_prompt`` is false.

    The checkpoint's own Jinja template makes it, as in transformers. Without a template the prompt is a transcript: a
    line for each message, ``User: ...``, ``Assistant: ...`` or ``System: ...``, and a final ``Assistant:``. The
    ``template_options`` are further variables of the template, such as ``enable_thinking``. Raises
    ``InputError`` if the template fails, ``TemplatesUnavailable`` and ``Busy``.
    """
    if not loaded.chat_template:
        if template_options:
            raise InputError("chat_template_kwargs", f"{loaded.name} has no chat template to give these options to.")
        lines = [f"{SPEAKERS[message['role']]}: {message['content']}" for message in messages]
        return "\n".join([*lines, "Assistant:"] if add_generation_prompt else lines)
    context = {**loaded.template_tokens, **(template_options or {})}
    context |= {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": add_generation_prompt}
    try:
        return await templates.render(client, loaded.chat_template, context)
    except TemplateFailed as error:
        message = f"The chat template of {loaded.name} cannot be used for these messages: {error}"
        raise InputError("messages", message, "chat_template") from None


def prompt_ids(loaded: LoadedModel, prompt: str) -> list[int]:
    """The token ids of a prompt that ``render`` made. A template itself writes the token that begins it, if any."""
    return loaded.tokenizer.encode(prompt) if loaded.chat_template else loaded.tokenizer.encode_prompt(prompt)


async def locate(
    templates: Templates, client: Hashable, loaded: LoadedModel, messages: Conversation, prompt: str
) -> list[Span | None]:
    """Which tokens of ``prompt``, which ``render`` made of the ``messages``, are the content of each.

    The template is rendered again with marks around the contents. If the prompt is the same without the marks, they
    show where the contents are, even where one repeats another; else all are None, as for a message that is left out.
    Some templates strip white space, or leave out the reasoning of an earlier answer: then the rest is marked.
    """
    nowhere: list[Span | None] = [None] * len(messages)
    contents = [message["content"] for message in messages]
    if 2 * len(messages) > LAST_MARK - FIRST_MARK or MARK.search(prompt + "".join(contents)):
        return nowhere
    tried: list[list[Span]] = []
    for kept in (whole, stripped, without_reasoning):
        parts = [kept(content) for content in contents]
        if parts in tried:
            continue
        tried.append(parts)
        try:
            marked = await render(templates, client, loaded, with_marks(messages, parts))
        except InputError:
            continue
        spans = between_marks(marked, len(messages)) if MARK.sub("", marked) == prompt else None
        if spans is not None:
            return as_tokens(loaded, prompt, spans)
    return nowhere


def whole(content: str) -> Span:
    return 0, len(content)


def stripped(content: str) -> Span:
    start = len(content) - len(content.lstrip())
    return start, max(start, len(content.rstrip()))


def without_reasoning(content: str) -> Span:
    rest = content.rpartition(END_OF_REASONING)[2]
    n_before = len(content) - len(rest)
    start, end = stripped(rest)
    return n_before + start, n_before + end


def with_marks(messages: Conversation, parts: Sequence[Span]) -> Conversation:
    """The messages with two marks each, around a part of the content."""
    marked = []
    for i, (message, (start, end)) in enumerate(zip(messages, parts, strict=True)):
        content, (opening, closing) = message["content"], (chr(FIRST_MARK + 2 * i), chr(FIRST_MARK + 2 * i + 1))
        marked.append({**message, "content": f"{content[:start]}{opening}{content[start:end]}{closing}{content[end:]}"})
    return marked


def between_marks(marked: str, n_messages: int) -> list[Span | None] | None:
    """The characters between the marks of each message, not counting marks; None unless the marks come in pairs."""
    places = [(ord(match[0]) - FIRST_MARK, match.start() - n) for n, match in enumerate(MARK.finditer(marked))]
    spans: list[Span | None] = [None] * n_messages
    for (opening, start), (closing, end) in zip(places[::2], places[1::2], strict=False):
        if opening % 2 or closing != opening + 1 or spans[opening // 2]:
            return None
        spans[opening // 2] = start, end
    return None if len(places) % 2 else spans


def as_tokens(loaded: LoadedModel, prompt: str, spans: Sequence[Span | None]) -> list[Span | None]:
    """The tokens that hold any of the characters; a token that two spans share belongs to the first."""
    offsets = loaded.tokenizer.offsets(prompt)
    n_before = len(prompt_ids(loaded, prompt)) - len(offsets)
    starts, ends = [start for start, _ in offsets], [end for _, end in offsets]
    found: list[Span | None] = [None] * len(spans)
    taken = 0
    for i, span in sorted(((i, span) for i, span in enumerate(spans) if span), key=lambda each: each[1]):
        first, end = max(bisect_right(ends, span[0]), taken), bisect_left(starts, span[1])
        if first < end and span[0] < span[1]:
            found[i] = first + n_before, end + n_before
            taken = end
    return found
