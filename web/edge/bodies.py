"""What no body may be: compressed, JSON that is not UTF-8, or one that makes Gradio fetch a file."""

import codecs
import json
import re
from collections.abc import Collection
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.auth import path_of
from ..api.errors import ApiError, RefusedBody, as_api_error

GRADIO = "/gradio_api/"
MAY_HOLD_FILE = re.compile(rb"_type|\\u")  # the name of the key, or letters that may spell it
BOM = "\ufeff"


class PlainBodies:
    """ASGI middleware behind the one that limits bodies.

    Gradio takes ``{"path": ADDRESS, "meta": {"_type": "gradio.FileData"}}``, wherever it is in the data of an event,
    for a file and fetches it. Nothing here takes files. ``texts`` names the paths whose bodies are no JSON.
    """

    def __init__(self, app: ASGIApp, texts: Collection[str] = ()) -> None:
        self.app, self.texts = app, texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        coding = Headers(scope=scope).get("content-encoding", "").strip().lower()
        if coding not in ("", "identity"):
            message = f"The body is compressed ({coding[:40]}). Send it as it is."
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
            refusal = ApiError(400, "The data holds a file object. This server takes no files.", code="file_object")
            await refusal.response()(scope, receive, send)
            return
        await self.app(scope, replay(body, receive), send)


def in_utf8(receive: Receive) -> Receive:
    """``receive`` of a body that must be JSON in UTF-8; raises ``RefusedBody`` otherwise.

    Python's ``json.loads`` also reads UTF-16 and UTF-32, which it recognizes by a byte order mark or by bytes that are
    0. In these encodings, nothing that looks for words in the bytes of a body finds them.
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


def not_utf8() -> RefusedBody:
    return RefusedBody(400, "The body must be JSON in UTF-8, without a byte order mark.", "not_utf8")


def holds_file(body: bytes) -> bool:
    """Whether there is an object anywhere in the JSON ``body`` that Gradio would take for a file."""
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
            if "_type" in value:  # by which Gradio tells its own objects
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
    """``receive`` of a request whose body was read already."""
    was_read = False

    async def again() -> Message:
        nonlocal was_read
        if was_read:
            return await receive()
        was_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
