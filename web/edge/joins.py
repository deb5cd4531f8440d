"""Gradio's queue, with an end to what nobody follows, and no more of it for one address than its part.

Gradio runs an event whether anybody asks for its messages or not, and keeps them until somebody does.
"""

import asyncio
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from gradio.queueing import Queue
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.auth import path_of
from ..serving.budget import NoRoom
from ..serving.tickets import Tickets
from ..settings import FOLLOWED_SECONDS, MAX_RUN_ID, Limits
from .bodies import GRADIO, read_body, replay
from .client_address import client_host
from .door import refuse

log = logging.getLogger(__name__)

JOIN = re.compile(rf"{GRADIO}(queue/join|call/(v2/)?[^/]+)/?")
FOLLOW = re.compile(rf"{GRADIO}(queue/data|call/(v2/)?[^/]+/(?P<event>[^/]+))/?")
DONE = re.compile(rb'data: \{"msg":"process_completed","event_id":"(\w+)"')  # as Gradio writes it on queue/data
ENDED = (b"event: complete", b"event: error")  # and on call/NAME/EVENT
WATCH_SECONDS = 1.0
MAX_ARGUMENTS = 64
OBJECTS = 4  # bytes in memory for each in a body, about
BUSY = "Too many requests are waiting. Try again in a moment."


@dataclass
class Session:
    """What one session of Gradio's, a browser tab or a call, waits for."""

    client: str | None
    n_bytes: int = 0
    events: set[str] = field(default_factory=set)
    n_listeners: int = 0
    left_at: float = field(default_factory=time.monotonic)


class Joins:
    """The sessions that wait for something. Used from the event loop alone; ``queue`` is Gradio's."""

    def __init__(self, queue: Queue, limits: Limits, tickets: Tickets) -> None:
        self.queue, self.tickets = queue, tickets
        self.most = limits.max_batch + limits.max_waiting  # as many as an engine takes
        self.sessions: dict[str, Session] = {}
        self.joining: Counter[str | None] = Counter()  # requests of a client that Gradio has not answered
        self.watching: asyncio.Task[None] | None = None

    def n_waiting(self, client: str | None) -> int:
        waiting = sum(len(session.events) for session in self.sessions.values() if session.client == client)
        return waiting + self.joining[client]

    def joined(self, name: str, client: str | None, event: str, n_bytes: int) -> None:
        session = self.sessions.setdefault(name, Session(client))
        session.events.add(event)
        session.n_bytes += n_bytes
        if self.watching is None:
            self.watching = asyncio.create_task(self.watch())

    def followed_in(self, event: str) -> str:
        """The session whose event this is."""
        return next((name for name, session in self.sessions.items() if event in session.events), event)

    async def watch(self) -> None:
        """Drop the sessions that nobody follows any more, as long as there are any."""
        while self.sessions:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self.drop(self.left())
            except Exception:  # whatever Gradio's queue raised, the next round comes
                log.exception("Dropping sessions of Gradio failed")
        self.watching = None

    def left(self) -> list[str]:
        """The sessions that nobody follows, or that wait for nothing."""
        now, pending = time.monotonic(), self.queue.pending_event_ids_session
        for name, session in self.sessions.items():
            session.events &= pending.get(name, set())  # Gradio keeps an event there until its answer is sent
        return [
            name
            for name, session in self.sessions.items()
            if not session.n_listeners and (not session.events or now - session.left_at > FOLLOWED_SECONDS)
        ]

    async def drop(self, names: Iterable[str]) -> None:
        dropped = {name: self.sessions.pop(name) for name in names}
        events = {event for session in dropped.values() for event in session.events}
        for name, session in dropped.items():
            await self.queue.clean_events(session_hash=name)
            self.queue.pending_messages_per_session.pop(name, None)
            self.queue.pending_event_ids_session.pop(name, None)
            self.tickets.forget(name)
            self.tickets.budget.give_back(session.n_bytes, session.client)
        for task in list(self.queue._asyncio_tasks):
            if task.get_name().rpartition("<gradio-sep>")[2] in events:
                task.cancel()


class WatchJoins:
    """ASGI middleware on Gradio's queue."""

    def __init__(self, app: ASGIApp, joins: Joins) -> None:
        self.app, self.joins = app, joins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope) if scope["type"] == "http" else ""
        if not path.startswith(GRADIO):
            await self.app(scope, receive, send)
        elif scope["method"] == "POST" and JOIN.fullmatch(path):
            await self.join(scope, receive, send)
        elif scope["method"] == "GET" and (match := FOLLOW.fullmatch(path)):
            await self.follow(match["event"], scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def join(self, scope: Scope, receive: Receive, send: Send) -> None:
        client, joins = client_host(scope), self.joins
        try:
            body = await read_body(receive)
        except HTTPException as error:
            await refuse(error.status_code, error.detail)(scope, receive, send)
            return
        fields = read_join(body)
        if isinstance(fields, str):
            await refuse(422, fields)(scope, receive, send)
            return
        n_bytes = OBJECTS * len(body)
        try:
            if joins.n_waiting(client) >= joins.most:
                raise NoRoom
            joins.tickets.budget.take(n_bytes, client)
        except NoRoom:
            await refuse(429, BUSY)(scope, receive, send)
            return
        joined = False

        async def answered(message: Message) -> None:
            nonlocal joined
            event = event_in(message)
            if event:
                joined = True
                joins.joined(fields.get("session_hash") or event, client, event, n_bytes)
            await send(message)

        joins.joining[client] += 1
        try:
            await self.app(scope, replay(body, receive), answered)
        finally:
            joins.joining -= Counter([client])  # which leaves out what is 0
            if not joined:
                joins.tickets.budget.give_back(n_bytes, client)

    async def follow(self, event: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        joins = self.joins
        query = parse_qs(scope["query_string"].decode("latin-1"))
        name = joins.followed_in(event) if event else query.get("session_hash", [""])[0]
        session = joins.sessions.get(name)
        if session is None:
            await refuse(404, "Nothing is waiting here, or it was dropped because nobody followed it.")(
                scope, receive, send
            )
            return

        async def answered(message: Message) -> None:
            body = message.get("body", b"")
            if body:
                message = {**message, "body": joins.tickets.redeem(body, name)}
            await send(message)
            if done := DONE.match(body):
                session.events.discard(done[1].decode())
            elif event and body.startswith(ENDED):
                session.events.discard(event)

        session.n_listeners += 1
        try:
            await self.app(scope, receive, answered)
        finally:
            session.n_listeners -= 1
            session.left_at = time.monotonic()


def read_join(body: bytes) -> dict[str, Any] | str:
    """The fields of a body, or what is wrong with it."""
    try:
        fields = json.loads(body)  # which reads NaN, as Gradio does
    except (ValueError, RecursionError) as error:
        return f"The body is not valid JSON: {str(error)[:200]}."
    if not isinstance(fields, dict):
        return "The body must be a JSON object."
    session = fields.get("session_hash")
    if session is not None and not (isinstance(session, str) and 0 < len(session) <= MAX_RUN_ID):
        return f"session_hash must be a string of 1 to {MAX_RUN_ID} characters."
    data = fields.get("data", [])
    if len(fields) > MAX_ARGUMENTS or (isinstance(data, list | dict) and len(data) > MAX_ARGUMENTS):
        return f"At most {MAX_ARGUMENTS} arguments are accepted."
    return fields


def event_in(message: Message) -> str | None:
    """The id of the event that Gradio's answer to a join names."""
    match = re.fullmatch(rb'\{"event_id":\s*"(\w+)"\}', message.get("body", b""))
    return match[1].decode() if match else None
