"""The texts that the page asks for: new ones, branches of displayed ones, and answers in a conversation."""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from model import GenerationRequest, InputError, LoadedModel
from model.errors import InvalidValue, shorten

from ..services import Services
from ..serving.conversation import check_conversation_length, locate, prompt_ids, render
from ..serving.inputs import check_length, parse_index, parse_options, parse_request, whole
from ..serving.served_models import ServedModels
from ..settings import MAX_RUN_ID
from .chat import parse_messages, with_span


@dataclass(frozen=True)
class PageText:
    """A text that the page asks for: a new one, or a branch of a displayed one."""

    loaded: LoadedModel
    request: GenerationRequest
    prompt: str
    n_prompt: int
    branch: dict[str, object] | None = None  # the run that it leaves, where, and with which token instead of which
    chat: list[dict[str, Any]] | None = None  # the messages that the prompt was made from


def parse_page_text(services: Services, fields: Mapping[str, Any]) -> PageText:
    """The text that ``fields`` ask for; ``fields["branch"]`` is for ``parse_branch``. Raises ``InputError``.

    The prompt is text, or token ids.
    """
    sent, prompt = fields.get("branch"), fields.get("prompt")
    if sent is None and isinstance(prompt, list):
        loaded = services.served.find(fields.get("model"))
        ids = loaded.parse_prompt([whole(token_id) for token_id in prompt])
        request = parse_options(services.limits, loaded, ids, fields)
        services.engines.check(loaded, request, same_ids=False)
        return PageText(loaded, request, loaded.tokenizer.decode(ids), len(ids))
    if sent is None:
        loaded, request = parse_request(services.served, fields)
        services.engines.check(loaded, request)
        return PageText(loaded, request, fields["prompt"], len(request.prompt))
    text = parse_branch(services.served, sent, fields)
    services.engines.check(text.loaded, text.request, same_ids=False)
    return text


async def read_page_text(services: Services, client: Hashable, fields: Mapping[str, Any]) -> PageText:
    """The text that ``fields`` ask for: the answer to ``messages``, or what ``parse_page_text`` reads."""
    if fields.get("messages") is None:
        return await asyncio.to_thread(parse_page_text, services, fields)
    loaded = services.served.find(fields.get("model"))
    if not loaded.chat_template:
        raise InputError("messages", f"{loaded.name} has no chat template.")
    messages = parse_messages(loaded, fields["messages"])
    if not messages[-1]["content"]:
        raise InputError("messages", "The message is empty.")
    check_conversation_length(messages, services.limits)
    prompt = await render(services.templates, client, loaded, messages)

    def parse() -> PageText:
        check_length("prompt", "conversation", prompt, services.limits.max_prompt_characters)
        ids = loaded.parse_prompt(prompt_ids(loaded, prompt), noun="conversation")
        request = parse_options(services.limits, loaded, ids, fields)
        services.engines.check(loaded, request)
        return PageText(loaded, request, prompt, len(ids))

    text = await asyncio.to_thread(parse)
    spans = await locate(services.templates, client, loaded, messages, prompt)
    return replace(text, chat=[with_span(*each) for each in zip(messages, spans, strict=True)])


def parse_branch(served: ServedModels, sent: object, fields: Mapping[str, object]) -> PageText:
    """A continuation of a text with another token in place of one, from the page's data, which may be forged.

    ``sent`` has the keys ``of``, ``sha256``, ``model``, ``ids`` (the last one is the other token), ``n_prompt`` and
    ``instead``, the id of the token that the text has there; ``fields`` are those of ``parse_options``. Raises
    ``InputError`` if one is invalid.
    """
    if not isinstance(sent, dict):
        raise InputError("branch", f"A branch must be an object, found {shorten(sent)}.")
    loaded = served.with_hash(str(sent.get("sha256")), str(sent.get("model")))
    ids, most = sent.get("ids"), loaded.config.context_length
    if not isinstance(ids, list):
        raise InvalidValue("ids", ids, "a list of token ids")
    if not 2 <= len(ids) <= most:
        message = f"A branch needs 2 to {most} tokens, the context of the model; found {len(ids)}."
        raise InputError("ids", message)
    ids = loaded.parse_prompt([whole(token_id) for token_id in ids])
    n_prompt = parse_index("n_prompt", sent.get("n_prompt"), 0, len(ids) - 1)
    instead = sent.get("instead")
    if instead is not None:
        instead = parse_index("instead", instead, 0, loaded.config.vocab_size - 1)
    of = sent.get("of")
    if not isinstance(of, str) or len(of) > MAX_RUN_ID:
        raise InvalidValue("of", of, "the id of a run")
    *before, token = loaded.text_tokens(ids)
    replaced = "" if instead is None else loaded.tokens([instead])[0].text
    return PageText(
        loaded,
        parse_options(served.settings.limits, loaded, ids, fields),
        loaded.tokenizer.decode(ids[:n_prompt]),
        n_prompt,
        {"of": of, "at": len(before), "token": token.text, "instead": replaced},
    )
