"""Refuses request bodies in formats not accepted here, and counts large response bodies against the budget.

``body_limit.py`` limits the size of request bodies.
"""

import codecs
import json
import re
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.errors import ApiError, as_api_error
from ..client import client_in
from ..request_path import path_of
from ..serving.budget import DROP, Budget, NoRoom, Sending
from ..settings import PIECE_BYTES

GRADIO = "/gradio_api/"
MAY_HOLD_FILE = re.compile(rb"_type|\\u")  # the name of the key, or escapes that may spell it
BOM = "\ufeff"


class BodyFormatMiddleware:
    """Refuses compressed bodies, JSON that is not UTF-8, and file objects in the data of a Gradio event.

    Gradio treats any ``{"path": ADDRESS, "meta": {"_type": "gradio.FileData"}}`` in that data as a file and fetches it.
    This app takes no files. ``texts`` lists the paths whose bodies are not JSON.
    """

    def __init__(self, app: ASGIApp, texts: Collection[str] = ()) -> None:
        self.app, self.texts = app, texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        coding = Headers(scope=scope).get("content-encoding", "").strip().lower()
        if coding not in ("", "identity"):
            message = f"The body is compressed ({coding[:40]}). Send it uncompressed."
            refusal = ApiError(415, message, code="compressed_body", headers={"Accept-Encoding": "identity"})
            await refusal.response()(scope, receive, send)
            return
        path = path_of(scope)
        if path not in self.texts:
            receive = in_utf8(receive)
        if scope["method"] != "POST" or not path.startswith(GRADIO):
            await self.app(scope, receive, send)
            return
        try:
            body = await read_body(receive)
        except HTTPException as error:
            await as_api_error(error).response()(scope, receive, send)
            return
        if holds_file(body):
            refusal = ApiError(
                400, "The data contains a file object. This server does not accept files.", code="file_object"
            )
            await refusal.response()(scope, receive, send)
            return
        await self.app(scope, replay(body, receive), send)


def in_utf8(receive: Receive) -> Receive:
    """Wrap ``receive`` so that it raises ``ApiError`` unless the body is UTF-8.

    Python's ``json.loads`` also accepts UTF-16 and UTF-32, which it recognises by a byte order mark or zero bytes. In
    these encodings, a search for ASCII keys in the raw bytes would find nothing.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    has_begun = False

    async def checked() -> Message:
        nonlocal has_begun
        message = await receive()
        if message["type"] != "http.request":
            return message
        try:
            text = decoder.decode(message.get("body", b""), final=not message.get("more_body"))
        except UnicodeDecodeError:
            raise not_utf8() from None
        if "\0" in text or (not has_begun and text.startswith(BOM)):
            raise not_utf8()
        has_begun = has_begun or bool(text)
        return message

    return checked


def not_utf8() -> ApiError:
    return ApiError(400, "The body must be JSON in UTF-8, without a byte order mark.", code="not_utf8")


def holds_file(body: bytes) -> bool:
    """Whether the JSON ``body`` contains an object that Gradio would treat as a file."""
    if not MAY_HOLD_FILE.search(body):
        return False
    try:
        left: list[Any] = [json.loads(body)]
    except (ValueError, RecursionError):
        return False  # Gradio cannot read it either
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            if "_type" in value:  # the key by which Gradio recognises its own objects
                return True
            left += value.values()
    return False


async def read_body(receive: Receive) -> bytes:
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(pieces)


def replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives ``body``, which has already been read, and then whatever ``receive`` gives."""
    was_read = False

    async def again() -> Message:
        nonlocal was_read
        if was_read:
            return await receive()
        was_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class ResponseBudgetMiddleware:
    """Counts large parts of responses against the budget until the client has read them.

    If there is no room for a part of more than ``PIECE_BYTES``, the client gets an error if the response has not begun;
    otherwise the connection is closed.
    """

    def __init__(self, app: ASGIApp, budget: Budget) -> None:
        self.app, self.budget = app, budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: Message | None = None  # of a large response, held back until there is known to be room
        refused = False
        client = client_in(scope)

        async def counted(message: Message) -> None:
            nonlocal start, refused
            if refused:
                return
            if message["type"] == "http.response.start" and is_large(message):
                start = message
                return
            body = message.get("body", b"")
            if len(body) <= PIECE_BYTES:
                if start:
                    await send(start)
                    start = None
                await send(message)
                return
            with ExitStack() as stack:
                try:
                    sending = stack.enter_context(self.budget.hold_while_sent(len(body), scope, client))
                except NoRoom as error:
                    refused = True
                    if start:
                        await as_api_error(error).response()(scope, receive, send)
                    else:
                        scope["extensions"][DROP]()
                    return
                if start:
                    await send(start)
                    start = None
                await self.send_in_pieces(message, body, send, sending)

        await self.app(scope, receive, counted)

    async def send_in_pieces(self, message: Message, body: bytes, send: Send, sending: Sending) -> None:
        view = memoryview(body)
        for begin in range(0, len(body), PIECE_BYTES):
            piece = bytes(view[begin : begin + PIECE_BYTES])
            more = begin + PIECE_BYTES < len(body) or bool(message.get("more_body"))
            with sending.waiting():
                await send({"type": message["type"], "body": piece, "more_body": more})


def is_large(start: Message) -> bool:
    length = Headers(raw=start["headers"]).get("content-length", "")
    return length.isdigit() and int(length) > PIECE_BYTES
