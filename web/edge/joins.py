"""Gradio's queue, with an end to what nobody follows, and no more of it for one address than its part.

Gradio runs an event whether anybody asks for its messages or not, and keeps them until somebody does.
"""

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import gradio as gr
from gradio.queueing import Queue
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.auth import path_of
from ..serving.budget import NoRoom
from ..serving.tickets import Tickets
from ..settings import FOLLOWED_SECONDS, Limits
from .bodies import GRADIO, read_body, replay
from .calls import BadCall, Calls
from .client_address import client_host
from .door import refuse

log = logging.getLogger(__name__)

JOIN = re.compile(rf"{GRADIO}(queue/join|call/(?P<keywords>v2/)?(?P<name>[^/]+))/?")
FOLLOW = re.compile(rf"{GRADIO}(queue/data|call/(v2/)?[^/]+/(?P<event>[^/]+))/?")
DONE = re.compile(rb'data: \{"msg":"process_completed","event_id":"(\w+)"')  # as Gradio writes it on queue/data
WATCH_SECONDS = 1.0
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
    """The sessions that wait for something. Used from the event loop alone."""

    def __init__(self, demo: gr.Blocks, limits: Limits, tickets: Tickets) -> None:
        self.queue: Queue = demo._queue
        self.calls, self.tickets = Calls(demo), tickets
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
                self.forget_lost()
            except Exception:  # whatever Gradio's queue raised, the next round comes
                log.exception("Dropping sessions of Gradio failed")
        self.watching = None

    def left(self) -> list[str]:
        """The sessions that nobody follows, or that wait for nothing."""
        now = time.monotonic()
        for name, session in self.sessions.items():
            self.forget_answered(name, session)
        return [
            name
            for name, session in self.sessions.items()
            if not session.n_listeners and (not session.events or now - session.left_at > FOLLOWED_SECONDS)
        ]

    def forget_state(self, name: str) -> None:
        """Gradio keeps a copy of the page's configuration for each session; no endpoint here keeps state in it."""
        if self.queue.server_app:
            holder = self.queue.server_app.state_holder
            holder.session_data.pop(name, None)
            holder.time_last_used.pop(name, None)

    def forget_lost(self) -> None:
        """Gradio keeps an event that was cancelled while it ended, with all that was sent for it."""
        queue = self.queue
        at_work = {event._id for job in queue.active_jobs for event in job or ()}
        waiting = {event._id for each in queue.event_queue_per_concurrency_id.values() for event in each.queue}
        for event in queue.event_ids_to_events.keys() - at_work - waiting:
            del queue.event_ids_to_events[event]

    def forget_answered(self, name: str, session: Session) -> None:
        """Gradio keeps an event among the pending ones until its answer is sent."""
        session.events &= self.queue.pending_event_ids_session.get(name, set())

    async def drop(self, names: Iterable[str]) -> None:
        dropped = {name: self.sessions.pop(name) for name in names}
        events = {event for session in dropped.values() for event in session.events}
        for name, session in dropped.items():
            await self.queue.clean_events(session_hash=name)
            self.queue.pending_messages_per_session.pop(name, None)
            self.queue.pending_event_ids_session.pop(name, None)
            self.forget_state(name)
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
        elif scope["method"] == "POST" and (match := JOIN.fullmatch(path)):
            await self.join(match["name"], bool(match["keywords"]), scope, receive, send)
        elif scope["method"] == "GET" and (match := FOLLOW.fullmatch(path)):
            await self.follow(match["event"], scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def join(self, endpoint: str | None, by_keyword: bool, scope: Scope, receive: Receive, send: Send) -> None:
        client, joins = client_host(scope), self.joins
        try:
            body = await read_body(receive)
            fields = joins.calls.read(body, endpoint, by_keyword=by_keyword)
        except HTTPException as error:
            await refuse(error.status_code, error.detail)(scope, receive, send)
            return
        except BadCall as error:
            await refuse(error.status, error.why)(scope, receive, send)
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

        session.n_listeners += 1
        try:
            await self.app(scope, receive, answered)
        finally:
            session.n_listeners -= 1
            session.left_at = time.monotonic()
            joins.forget_answered(name, session)


def event_in(message: Message) -> str | None:
    """The id of the event that Gradio's answer to a join names."""
    match = re.fullmatch(rb'\{"event_id":\s*"(\w+)"\}', message.get("body", b""))
    return match[1].decode() if match else None
