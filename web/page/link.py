"""Links to a view: the server's part of what ``web/js/lib/link.mjs`` writes.

A link names the weights that wrote a text and holds the text as token ids, so any server with that checkpoint can
compute it again. Everything in it is a visitor's: a link that cannot be followed leads to a model's opening, with the
reason.
"""

import base64
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from torch import Tensor

from model import InputError, LoadedModel, PromptError
from model.errors import Busy, InvalidValue

from ..runs.run import Run
from ..services import Services
from ..serving.inputs import SLIDERS, parse_options
from ..serving.served_models import NotServed, ServedModels
from ..serving.snapshots import Snapshots
from .chat import parse_linked_chat
from .controls import WORDS
from .pointers import opening_pointer, pointer

TEXT = ("sha256", "ids", "prompt")  # an address that has none of these leads to no text
NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?(e-\d{1,2})?")
HASH = re.compile(r"[0-9a-f]{16}")
MASKED = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?(?:x(\d{1,3}))?", re.ASCII)  # layer, head if not all, percent if not 0
FORMERLY_MASKED = re.compile(r"(\d{1,3})\.(\d{1,3})(?:x(\d(?:\.\d{1,2})?))?", re.ASCII)  # in earlier links
MAX_ID_BITS = 35
SECOND = ("model", "sha256", "ids", "prompt", "mask")  # words that are given for a second text with the prefix "b_"


class BadLink(ValueError):
    """A link that cannot be followed; the message is shown to the visitor."""


@dataclass(frozen=True)
class Link:
    """A text of one of the served models."""

    loaded: LoadedModel
    ids: list[int]
    n_prompt: int
    head_mask: Tensor | None = None


@dataclass(frozen=True)
class PageStart:
    """What the page opens with: a pointer, the known settings, and perhaps a pointer to a text to compare with."""

    pointer: dict[str, object]
    settings: dict[str, object]
    second: dict[str, object] | None = None


async def resolve_address(services: Services, query: Mapping[str, str], client: Hashable = None) -> PageStart:
    """The start that the page's query asks for: a text, or a model's opening with a notice that says why."""
    served, named = services.served, query.get("model")
    try:
        start = await follow_link(services, query, client) if leads_to_text(served, query) else None
    except BadLink as error:
        return await start_with_opening(services, named, [str(error)])
    except Busy:
        return await start_with_opening(services, named, ["Too many links are being opened. Try again in a moment."])
    if start is None:
        unknown = unknown_model(served, named) if served.models else ""
        return await start_with_opening(services, named, [unknown] if unknown else [])
    return start


async def follow_link(services: Services, query: Mapping[str, str], client: Hashable) -> PageStart | None:
    """The page's initial state for a link, or None if it has no text. Raises ``BadLink`` and ``Busy``."""
    link = await services.page_pool.run(client, parse_link, services.snapshots, query)
    if link is None:
        return None
    run = await services.page_pool.run(client, recompute, services, link)
    prompt = link.loaded.tokenizer.decode(link.ids[: link.n_prompt])
    is_given = any(word in query for word in WORDS.values())
    settings, notices = parse_settings(services.served, link, query, WORDS) if is_given else ({}, [])
    second, more = await services.page_pool.run(client, find_second, services, query, settings)
    settings = {"prompt": prompt} | settings
    chat, lost = find_chat(link, query)
    value = pointer(run, "linked", settings) | chat
    value |= {"notices": notices + lost + more + services.served.problems()}
    return PageStart(value, settings, second)


def leads_to_text(served: ServedModels, query: Mapping[str, str]) -> bool:
    return bool(served.models) and any(word in query for word in TEXT)


def recompute(services: Services, link: Link) -> Run:
    return services.runs.recompute(link.loaded, link.ids, link.n_prompt, link.head_mask)


def find_second(
    services: Services, query: Mapping[str, str], of_first: dict[str, object]
) -> tuple[dict[str, object] | None, list[str]]:
    """A pointer to the second text of a link, which its text is compared with, or a notice if that cannot be read. What
    a model wrote beside the first text has its settings, ``of_first``, except for those that the link gives.
    """
    words = {word: query[f"b_{word}"] for word in SECOND if f"b_{word}" in query}
    if not words:
        return None, []
    first = {word: query[word] for word in SECOND if word in query and word != "mask"}
    try:
        link = parse_link(services.snapshots, first | words)
    except BadLink as error:
        return None, [f"The second text of this link cannot be shown. {error}"]
    if link is None:
        return None, []
    own = {name: f"b_{word}" for name, word in WORDS.items() if f"b_{word}" in query}
    settings, notices = parse_settings(services.served, link, query, own) if own else ({}, [])
    settings = of_first | settings if settings else {}
    return pointer(recompute(services, link), "linked", settings) | find_chat(link, query)[0], notices


def find_chat(link: Link, query: Mapping[str, str]) -> tuple[dict[str, object], list[str]]:
    """What a pointer says of the messages in a link, or a notice if they are not those of its prompt."""
    if "chat" not in query:
        return {}, []
    chat = parse_linked_chat(link.loaded, link.ids[: link.n_prompt], query["chat"])
    return ({"chat": chat}, []) if chat else ({}, ["The conversation of this link cannot be continued."])


async def start_with_opening(services: Services, named: str | None, notices: list[str]) -> PageStart:
    served = services.served
    name = named if named in served.models else services.openings.first
    value = await opening_pointer(services, name)
    opening = services.openings.written.get(name or "")
    settings = {"prompt": opening.settings["prompt"]} if opening else {}
    return PageStart(value | {"notices": notices + served.problems()}, settings)


def parse_link(snapshots: Snapshots, query: Mapping[str, str]) -> Link | None:
    """The text that a page's query leads to, or None if it has none. Raises ``BadLink``."""
    if not leads_to_text(snapshots.served, query):
        return None
    loaded = linked_model(snapshots, query.get("model", ""), query.get("sha256", ""))
    context_length = loaded.config.context_length
    # A text may have one token more than the context, since the last token written is never read.
    ids = decode_ids(query.get("ids", ""), context_length + 1)
    try:
        loaded.parse_prompt(ids[:context_length])
        loaded.parse_prompt(ids[-1:])
    except PromptError as error:
        raise BadLink(f"{loaded.name} cannot read the text of this link. {error}") from None
    digits = query.get("prompt", "")
    if not re.fullmatch("[0-9]{1,9}", digits) or not 1 <= int(digits) <= len(ids):
        raise BadLink("This link is broken: it does not say which part of its text is the prompt.")
    return Link(loaded, ids, int(digits), parse_mask(loaded, query.get("mask", "")))


def parse_mask(loaded: LoadedModel, text: str) -> Tensor | None:
    """The head mask of a link, as ``web/js/lib/head_masks.mjs`` encodes it."""
    if text in ("", "all"):
        return None
    config = loaded.config
    mask = [[1.0] * config.n_head for _ in range(config.n_layer)]
    try:
        for part in text.split("_"):
            layer, head, scale = parse_masked(part)
            for each in range(config.n_head) if head is None else [head]:
                mask[layer][each] = scale
        return loaded.parse_head_mask(mask)
    except (ValueError, IndexError):
        raise BadLink("This link is broken: the heads that it mutes cannot be read.") from None


def parse_masked(text: str) -> tuple[int, int | None, float]:
    """A layer, one of its heads or None for all of them, and their scale. Raises ``ValueError``."""
    if match := MASKED.fullmatch(text):
        layer, head, percent = match.groups()
        return int(layer), None if head is None else int(head), int(percent or 0) / 100
    if match := FORMERLY_MASKED.fullmatch(text):
        layer, head, scale = match.groups()
        return int(layer), int(head), float(scale or 0)
    raise ValueError(text)


def linked_model(snapshots: Snapshots, name: str, sha256: str) -> LoadedModel:
    """The model with these weights: the one of that name, the same weights under another name, or a snapshot."""
    if not HASH.fullmatch(sha256):
        raise BadLink("This link is broken: it does not say which weights wrote its text.")
    try:
        return snapshots.with_hash(sha256, name)
    except NotServed as error:
        if name in snapshots.served.models:
            message = f"{name} has different weights here from those that wrote the text of this link."
            raise BadLink(message) from None
        raise BadLink(unknown_model(snapshots.served, name) or str(error)) from None
    except InputError as error:
        raise BadLink(str(error)) from None


def unknown_model(served: ServedModels, name: str | None) -> str:
    """Why there is no model of that name, or "" if there is one."""
    try:
        served.find(name)
    except InputError as error:
        return f"This link cannot be followed. {error}"
    return ""


def decode_ids(text: str, most: int) -> list[int]:
    """Token ids from base64url of little-endian base-128 numbers. Raises ``BadLink``."""
    broken = BadLink("This link is broken: its text cannot be read. It may have been cut off.")
    if not re.fullmatch("[A-Za-z0-9_-]+", text) or len(text) % 4 == 1:
        raise broken
    ids: list[int] = []
    value = bits = 0
    for byte in base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)):
        if len(ids) == most:
            raise BadLink(f"The text of this link is too long: the model reads at most {most - 1:,} tokens at once.")
        value |= (byte & 127) << bits
        bits += 7
        if bits > MAX_ID_BITS:
            raise broken
        if byte < 128:
            ids.append(value)
            value = bits = 0
    if bits or not ids:
        raise broken
    return ids


def parse_settings(
    served: ServedModels, link: Link, query: Mapping[str, str], words: Mapping[str, str]
) -> tuple[dict[str, object], list[str]]:
    """The settings that a link's text was written with, each given by its word, or a notice if they cannot be used."""
    try:
        values = {name: parse_number(query, word) for name, word in words.items()}
        parse_options(served.settings.limits, link.loaded, link.ids[: link.n_prompt], values)
        for name, slider in SLIDERS.items():
            if name in values and not slider.least <= values[name] <= slider.most:
                raise InvalidValue(words[name], values[name], f"from {slider.least:g} to {slider.most:g}")
    except InputError as error:
        return {}, [f"The settings of this link cannot be used. {error}"]
    return {**values}, []


def parse_number(query: Mapping[str, str], word: str) -> float:
    text = query.get(word, "")
    if not NUMBER.fullmatch(text):
        raise InvalidValue(word, text, "a number")
    return float(text) if "." in text or "e" in text else int(text)
