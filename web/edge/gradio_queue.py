"""Guards Gradio's API: which routes are open, which calls are valid, and how much of the queue one client may use.

Gradio runs an event even if no client reads its messages, and keeps the messages until one does. Here, sessions that no
client reads are dropped.
"""

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import Busy, counted, shorten

from ..api.errors import refusal
from ..client import client_in
from ..request_path import path_of
from ..seams.gradio import QueuedEvents, event_ended, event_joined, n_arguments
from ..serving.uncollected_answers import UncollectedAnswers
from ..settings import MAX_RUN_ID, Limits
from .bodies import GRADIO, read_body, replay

FOLLOWED_SECONDS = 10.0  # after which an event in Gradio's queue that no client reads is dropped

log = logging.getLogger(__name__)

JOIN = re.compile(rf"{GRADIO}(queue/join|call/(?P<keywords>v2/)?(?P<name>[^/]+))/?")
FOLLOW = re.compile(rf"{GRADIO}(queue/data|call/(v2/)?[^/]+/(?P<event>[^/]+))/?")
MCP = f"{GRADIO}mcp"
MAX_ARGUMENTS = 64
MAX_VALUES = 10_000
MAX_DEPTH = 100  # of lists and objects in a message to MCP
WATCH_SECONDS = 1.0
MEMORY_PER_BYTE = 4  # bytes in memory per byte of a body, roughly
# Gradio looks for whatever file these paths name, and fails if the system allows no such name.
FILES = ("/static/", "/assets/", "/svelte/")
MAX_FILE_PATH_BYTES = 255
# The routes of Gradio's API that the page, gradio_client, curl and MCP use. The others take files or proxy requests.
OPEN_ROUTES = (
    "app_id",
    "call/",
    "cancel",
    "info",
    "mcp",
    "openapi.json",
    "queue/",
    "reset",
    "startup-events",
    "theme.css",
)


class GradioRouteMiddleware:
    """Refuses file uploads to any route, and routes of Gradio's API that are not in ``OPEN_ROUTES``."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = path_of(scope)
            is_closed = path.startswith(GRADIO) and not path.removeprefix(GRADIO).startswith(OPEN_ROUTES)
            if is_closed or (path.startswith(FILES) and len(path.encode()) > MAX_FILE_PATH_BYTES):
                await refuse(404, "This server has no such route.")(scope, receive, send)
                return
            if Headers(scope=scope).get("content-type", "").lower().startswith("multipart/"):
                await refuse(415, "This server does not accept files.")(scope, receive, send)
                return
        await self.app(scope, receive, send)


def refuse(status: int, message: str) -> JSONResponse:
    return JSONResponse({"detail": message}, status)


class BadCall(Exception):
    """A call that an endpoint cannot accept, with the status of the response and the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Endpoints:
    """The endpoints of a Gradio app. Explains what is wrong with a call on which Gradio would merely fail."""

    def __init__(self, demo: gr.Blocks) -> None:
        self.demo = demo

    @cached_property
    def n_arguments(self) -> dict[str | int, int]:
        return n_arguments(self.demo)

    @cached_property
    def parameters(self) -> dict[str, dict[str, bool]]:
        """For each endpoint, the names of its parameters and whether each may be omitted."""
        endpoints = self.demo.get_api_info()["named_endpoints"]
        return {
            name.lstrip("/"): {each["parameter_name"]: each["parameter_has_default"] for each in endpoint["parameters"]}
            for name, endpoint in endpoints.items()
        }

    def parse(self, body: bytes, name: str | None, *, by_keyword: bool) -> dict[str, Any]:
        """Parse and check a body for the endpoint ``name``; None means that the body gives its index.

        Returns no fields for a call by keyword. Raises ``BadCall``.
        """
        fields = parse_json(body)
        if by_keyword:
            self.check_keywords(name or "", fields)
            return {}
        session = fields.get("session_hash")
        if (session is not None or name is None) and not (isinstance(session, str) and 0 < len(session) <= MAX_RUN_ID):
            raise BadCall(422, f"session_hash must be a string of 1 to {MAX_RUN_ID} characters.")
        index, data = fields.get("fn_index"), fields.get("data")
        asked: Any = index if name is None else name
        n = self.n_arguments.get(asked) if name is not None or type(index) is int else None
        if n is None:
            raise BadCall(404, f"There is no endpoint {shorten(asked)}.")
        if not isinstance(data, list) or len(data) > MAX_ARGUMENTS:
            raise BadCall(422, f"data must be a list of at most {MAX_ARGUMENTS} arguments.")
        if len(data) != n:
            raise BadCall(422, f"Expected {counted(n, 'argument')}, found {len(data)}.")
        return fields

    def check_keywords(self, name: str, fields: dict[str, Any]) -> None:
        parameters = self.parameters.get(name)
        if parameters is None:
            raise BadCall(404, f"There is no endpoint {shorten(name)}.")
        if unknown := [field for field in fields if field not in parameters]:
            raise BadCall(422, f"This endpoint has no argument {shorten(unknown[0])}.")
        if missing := [field for field, may_miss in parameters.items() if not may_miss and field not in fields]:
            raise BadCall(422, f"The argument {missing[0]} is missing.")


def parse_json(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)  # accepts NaN, as Gradio does
    except (ValueError, RecursionError) as error:
        raise BadCall(422, f"The body is not valid JSON: {str(error)[:200]}.") from None
    if not isinstance(fields, dict):
        raise BadCall(422, "The body must be a JSON object.")
    if has_more_values(fields, MAX_VALUES):
        raise BadCall(422, f"The body contains more than {MAX_VALUES:,} values.")
    return fields


def check_message(body: bytes) -> None:
    """Raise ``BadCall`` for a message that MCP's server cannot read, or whose parts it could not send back.

    On these it fails with 500 and a traceback, or ends its answer without a word.
    """
    fields = parse_json(body)
    level: list[Any] = [fields]
    for _ in range(MAX_DEPTH):
        items = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
        level = [item for item in items if isinstance(item, list | dict)]
    if level:
        raise BadCall(422, f"The body is nested more than {MAX_DEPTH} levels deep.")
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadCall(422, "The body contains half of a surrogate pair.") from None


def has_more_values(value: Any, most: int) -> bool:
    """Whether lists and objects contain more than ``most`` values. Gradio copies each value several times."""
    left, count = [value], 0
    while left:
        inner = left.pop()
        count += len(inner)
        if count > most:
            return True
        items = inner.values() if isinstance(inner, dict) else inner
        left += [item for item in items if isinstance(item, list | dict)]
    return False


@dataclass
class Session:
    """A Gradio session (a browser tab or a single call), and the client of each event that it is waiting for.

    A browser may change between IPv4 and IPv6, so its requests may come from several clients.
    """

    n_bytes: Counter[str | None] = field(default_factory=Counter)  # held in the budget, by client
    events: dict[str, str | None] = field(default_factory=dict)
    n_listeners: int = 0
    left_at: float = field(default_factory=time.monotonic)


class QueueSessions:
    """The sessions that are waiting for events. Not thread-safe: used only from the event loop."""

    def __init__(self, demo: gr.Blocks, limits: Limits, answers: UncollectedAnswers) -> None:
        self.queued = QueuedEvents(demo)
        self.endpoints, self.answers = Endpoints(demo), answers
        self.most = limits.max_texts
        self.by_name: dict[str, Session] = {}
        self.joining: Counter[str | None] = Counter()  # requests to join that Gradio has not answered yet, by client
        self.watching: asyncio.Task[None] | None = None

    def n_waiting(self, client: str | None) -> int:
        waiting = sum(list(session.events.values()).count(client) for session in self.by_name.values())
        return waiting + self.joining[client]

    def joined(self, name: str, client: str | None, event: str, n_bytes: int) -> None:
        session = self.by_name.setdefault(name, Session())
        session.events[event] = client
        session.n_bytes[client] += n_bytes
        if self.watching is None:
            self.watching = asyncio.create_task(self.watch())

    def session_of(self, event: str) -> str:
        """The name of the session that is waiting for this event."""
        return next((name for name, session in self.by_name.items() if event in session.events), event)

    async def watch(self) -> None:
        """Drop abandoned sessions, checking until no sessions are left."""
        while self.by_name:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self.drop(self.abandoned())
                self.queued.drop_cancelled()
            except Exception:  # Gradio's queue may raise anything, and this loop must continue
                log.exception("Abandoned Gradio sessions could not be dropped")
        self.watching = None

    def abandoned(self) -> list[str]:
        """The names of the sessions that no client reads and that have no events left or were left too long ago."""
        now = time.monotonic()
        for name, session in self.by_name.items():
            self.drop_answered(name, session)
        return [
            name
            for name, session in self.by_name.items()
            if not session.n_listeners and (not session.events or now - session.left_at > FOLLOWED_SECONDS)
        ]

    def drop_answered(self, name: str, session: Session) -> None:
        """Remove a session's events that Gradio no longer lists as pending: their answers have been sent."""
        for event in session.events.keys() - self.queued.unanswered(name):
            del session.events[event]

    async def drop(self, names: Iterable[str]) -> None:
        dropped = {name: self.by_name.pop(name) for name in names}
        events = {event for session in dropped.values() for event in session.events}
        for name, session in dropped.items():
            await self.queued.drop_session(name)
            self.answers.drop(name)
            for client, n_bytes in session.n_bytes.items():
                self.answers.budget.give_back(n_bytes, client)
        self.queued.cancel(events)


class GradioQueueMiddleware:
    """Checks calls that join Gradio's queue, limits each client's share of it, and updates ``QueueSessions``."""

    def __init__(self, app: ASGIApp, sessions: QueueSessions) -> None:
        self.app, self.sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope) if scope["type"] == "http" else ""
        if not path.startswith(GRADIO):
            await self.app(scope, receive, send)
        elif scope["method"] == "POST" and (match := JOIN.fullmatch(path)):
            await self.join(match["name"], bool(match["keywords"]), scope, receive, send)
        elif scope["method"] == "GET" and (match := FOLLOW.fullmatch(path)):
            await self.follow(match["event"], scope, receive, send)
        elif scope["method"] == "POST" and path.startswith(MCP):
            await self.message(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def join(self, endpoint: str | None, by_keyword: bool, scope: Scope, receive: Receive, send: Send) -> None:
        client, sessions = client_in(scope), self.sessions
        try:
            body = await read_body(receive)
            fields = sessions.endpoints.parse(body, endpoint, by_keyword=by_keyword)
        except HTTPException as error:
            await refuse(error.status_code, error.detail)(scope, receive, send)
            return
        except BadCall as error:
            await refuse(error.status, error.why)(scope, receive, send)
            return
        n_bytes = MEMORY_PER_BYTE * len(body)
        try:
            if sessions.n_waiting(client) >= sessions.most:
                raise Busy
            sessions.answers.budget.take(n_bytes, client)
        except Busy as error:
            await refusal(error)(scope, receive, send)
            return
        joined = False

        async def answered(message: Message) -> None:
            nonlocal joined
            event = event_joined(message.get("body", b""))
            if event:
                joined = True
                sessions.joined(fields.get("session_hash") or event, client, event, n_bytes)
            await send(message)

        sessions.joining[client] += 1
        try:
            await self.app(scope, replay(body, receive), answered)
        finally:
            sessions.joining -= Counter([client])  # subtracting also removes zero counts
            if not joined:
                sessions.answers.budget.give_back(n_bytes, client)

    async def message(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_body(receive)
            check_message(body)
        except HTTPException as error:
            await refuse(error.status_code, error.detail)(scope, receive, send)
        except BadCall as error:
            await refuse(error.status, error.why)(scope, receive, send)
        else:
            await self.app(scope, replay(body, receive), send)

    async def follow(self, event: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        sessions = self.sessions
        query = parse_qs(scope["query_string"].decode("latin-1"))
        name = sessions.session_of(event) if event else query.get("session_hash", [""])[0]
        session = sessions.by_name.get(name)
        if session is None:
            await refuse(404, "No event is waiting here, or it was dropped because no client read it.")(
                scope, receive, send
            )
            return

        async def answered(message: Message) -> None:
            body = message.get("body", b"")
            if body:
                message = {**message, "body": sessions.answers.fill_in(body, name)}
            await send(message)
            session.events.pop(event_ended(body) or "", None)

        session.n_listeners += 1
        try:
            await self.app(scope, receive, answered)
        finally:
            session.n_listeners -= 1
            session.left_at = time.monotonic()
            sessions.drop_answered(name, session)
