"""Links to a view: the server's part of what ``attention_view/link.mjs`` writes.

A link holds which weights wrote a text and the text as token ids, so any server with that checkpoint computes it anew.
Everything in it is a visitor's: a link that cannot be followed leads to a model's opening, with a word about why.
"""

import asyncio
import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model import LoadedModel, PromptError

from .shelf import Shelf
from .validate import BadInput, read_request, shorten
from .workspace import Parts, opening_pointer, pointer

TEXT = ("sha256", "ids", "prompt")  # without any of them an address leads to no text
WORDS = {"max_new_tokens": "length"}  # settings that a link calls otherwise
SETTINGS = ("max_new_tokens", "temperature", "top_k", "top_p", "min_p", "seed")  # in read_request's order
NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?(e-\d{1,2})?")
HASH = re.compile(r"[0-9a-f]{16}")
MAX_ID_BITS = 35

Ranges = Mapping[str, tuple[float, float]]


class BadLink(ValueError):
    """A link that cannot be followed; the message is for who opened it."""


@dataclass(frozen=True)
class Link:
    """A text of one of the models served here."""

    name: str
    gpt: LoadedModel
    ids: list[int]
    n_prompt: int


@dataclass(frozen=True)
class Landing:
    """What the page opens with: a model, the view's value, and settings for the controls, as far as they are known."""

    name: str | None
    pointer: dict[str, Any]
    settings: dict[str, Any]


async def land(parts: Parts, query: Mapping[str, str], ranges: Ranges) -> Landing:
    """Go where the page's address leads; ``ranges`` are those of the controls."""
    shelf = parts.shelf
    named = query.get("model")
    try:
        link = read_link(shelf, query)
    except BadLink as error:
        return await land_on_opening(parts, named, [str(error)])
    if link is None:
        unknown = [unknown_model(shelf, named)] if named and shelf.models and named not in shelf.models else []
        return await land_on_opening(parts, named, unknown)
    run = await asyncio.to_thread(parts.runs.reread, link.gpt, link.ids, link.n_prompt)
    prompt = link.gpt.tokenizer.decode(link.ids[: link.n_prompt])
    settings, notices = read_settings(shelf, link.name, prompt, query, ranges)
    settings = {"prompt": prompt} | settings
    value = pointer(link.name, run, "linked", settings) | {"notices": notices + shelf.problems()}
    return Landing(link.name, value, settings)


async def land_on_opening(parts: Parts, named: str | None, notices: list[str]) -> Landing:
    name = named if named in parts.shelf.models else next(iter(parts.shelf.models), None)
    value = await opening_pointer(parts, name)
    opening = parts.openings.made.get(name or "")
    settings = {"prompt": opening.settings["prompt"]} if opening else {}
    return Landing(name, value | {"notices": notices + parts.shelf.problems()}, settings)


def read_link(shelf: Shelf, query: Mapping[str, str]) -> Link | None:
    """The text that a page's query leads to, None where it leads to none. Raises ``BadLink``."""
    if not shelf.models or not any(word in query for word in TEXT):
        return None
    name, gpt = find_model(shelf, query.get("model", ""), query.get("sha256", ""))
    context_length = gpt.config.context_length
    # A text may have one token more than the context: the last one written, which was not read any more.
    ids = decode_ids(query.get("ids", ""), context_length + 1)
    try:
        gpt.read_prompt(ids[:context_length])
        gpt.read_prompt(ids[-1:])
    except PromptError as error:
        raise BadLink(f"{name} cannot read the text of this link. {error}") from None
    digits = query.get("prompt", "")
    if not re.fullmatch("[0-9]{1,9}", digits) or not 1 <= int(digits) <= len(ids):
        raise BadLink("This link is broken: it does not say which part of its text is the prompt.")
    return Link(name, gpt, ids, int(digits))


def find_model(shelf: Shelf, name: str, sha256: str) -> tuple[str, LoadedModel]:
    """The model with these weights: the one of that name, or one that bears another name here."""
    if not HASH.fullmatch(sha256):
        raise BadLink("This link is broken: it does not say which weights wrote its text.")
    if found := shelf.with_hash(sha256, name):
        return found
    if name in shelf.models:
        raise BadLink(f"{name} has other weights here than those this link was made with, so its text is not shown.")
    raise BadLink(unknown_model(shelf, name))


def unknown_model(shelf: Shelf, name: str) -> str:
    return f"This link is to a model that is not served here: {shorten(name)}. There is: {', '.join(shelf.models)}"


def decode_ids(text: str, most: int) -> list[int]:
    """Token ids from base64url of little-endian base-128 numbers. Raises ``BadLink``."""
    broken = BadLink("This link is broken: its text cannot be read. Perhaps it was cut off on its way.")
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


def read_settings(
    shelf: Shelf, name: str, prompt: str, query: Mapping[str, str], ranges: Ranges
) -> tuple[dict[str, Any], list[str]]:
    """The settings a link's text was written with, and a notice instead where they cannot be used or are not there."""
    words = {field: WORDS.get(field, field) for field in SETTINGS}
    if not any(word in query for word in words.values()):
        return {}, []
    try:
        values = {field: read_number(query, word) for field, word in words.items()}
        read_request(shelf, prompt, name, *values.values())
        for field, (least, most) in ranges.items():
            if not least <= values[field] <= most:
                raise BadInput(field, f"{words[field]} must be from {least:g} to {most:g}, found {values[field]}")
    except BadInput as error:
        return {}, [f"The settings of this link cannot be used. {error}"]
    return values, []


def read_number(query: Mapping[str, str], word: str) -> float:
    text = query.get(word, "")
    if not NUMBER.fullmatch(text):
        raise BadInput(word, f"{word} must be a number, found {shorten(text)}")
    return float(text) if "." in text or "e" in text else int(text)
