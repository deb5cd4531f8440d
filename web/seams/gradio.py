"""What Headscope uses of Gradio beyond what it publishes; no other module uses such a part.

A test looks up ``PARTS`` in the installed version, so that an update which takes one away fails with a sentence.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gradio as gr
import gradio.http_server
import uvicorn
from gradio import tunneling
from gradio.queueing import Queue
from gradio.route_utils import get_root_url
from starlette.requests import Request

PARTS = {
    "gradio.http_server.uvicorn": "starts the server, with options that Gradio does not pass on",
    "gradio.http_server.uvicorn.Config": "is the only part of uvicorn that Gradio makes there",
    "gradio.tunneling.CURRENT_TUNNELS": "lists the processes of --share, which would outlive this one",
    "gradio.Blocks._queue": "is the queue of an app's events",
    "gradio.Blocks.config": "has the address of the theme's style sheet",
    "gradio.Blocks.fns": "lists the endpoints",
    "gradio.block_function.BlockFunction.api_name": "is the name of an endpoint",
    "gradio.block_function.BlockFunction.inputs": "are the arguments of an endpoint",
    "gradio.route_utils.get_root_url": "says at what address a browser sees the page",
    "gradio.events.EventData._data": "holds what the page sends with an event",
    "gradio.queueing.Event._id": "is the id by which a client asks for an event's messages",
    "gradio.queueing.Queue.sleep_when_free": "is the time between checks of the queue, a thousand a second by default",
    "gradio.queueing.Queue.active_jobs": "lists the events that run",
    "gradio.queueing.Queue.event_queue_per_concurrency_id": "lists the events that wait",
    "gradio.queueing.Queue.event_ids_to_events": "keeps events with all their data, also some that were cancelled",
    "gradio.queueing.Queue.pending_event_ids_session": "lists the events of a session that were not answered yet",
    "gradio.queueing.Queue.pending_messages_per_session": "keeps the messages that no client has read yet",
    "gradio.queueing.Queue.clean_events": "cancels the events of a session",
    "gradio.queueing.Queue._asyncio_tasks": "lists the tasks that run events",
    "gradio.queueing.Queue.server_app": "leads from the queue to the app",
    "gradio.routes.App.state_holder": "keeps a copy of the page's configuration for each session",
    "gradio.state_holder.StateHolder.session_data": "is that copy",
    "gradio.state_holder.StateHolder.time_last_used": "decides which copy is dropped first",
}

# Gradio's own script and style sheets in the HTML of its page.
STARTS = re.compile(rb'<script type="module" crossorigin src="([^"]+)"></script>')
STYLES = re.compile(rb'<link rel="stylesheet" crossorigin href="[^"]+">')
# Messages of its queue: the answer to a call that joined it, and the last message about an event.
JOINED = re.compile(rb'\{"event_id":\s*"(\w+)"\}')
ENDED = re.compile(rb'data: \{"msg":"process_completed","event_id":"(\w+)"')


@contextmanager
def server_made_by(config: Callable[..., uvicorn.Config]) -> Iterator[None]:
    """While this context is active, a Gradio app is served as ``config`` says, called like ``uvicorn.Config``.

    Everything else stays as in Gradio: the port, the thread, how the server is closed, and additions for Spaces.
    """
    module: Any = gradio.http_server
    module.uvicorn = SimpleNamespace(Config=config)
    try:
        yield
    finally:
        module.uvicorn = uvicorn


def end_tunnels() -> None:
    """End the processes of ``--share``."""
    for tunnel in tunneling.CURRENT_TUNNELS:
        if tunnel.proc is not None:
            tunnel.proc.terminate()


def fields_of(event: gr.EventData) -> dict[str, Any]:
    """What the page sent with an event; nothing unless it sent an object."""
    return event._data if isinstance(event._data, dict) else {}


def check_queue_every(seconds: float, demo: gr.Blocks) -> None:
    """Set the time between two looks at the queue of an app for an event that can run."""
    demo._queue.sleep_when_free = seconds


def address_of(request: Request, root_path: str, route_path: str = "/") -> str:
    """The address at which a browser sees the page, if ``route_path`` of it is requested."""
    return f"{get_root_url(request, route_path, root_path)}/"


def theme_address(demo: gr.Blocks) -> str:
    """The address from which an app's page requests the style sheet of its theme."""
    return f"theme.css?v={demo.config['theme_hash']}"


def with_start_replaced(html: bytes, replacement: bytes) -> tuple[bytes, bytes]:
    """The HTML of Gradio's page without its style sheets, and the elements that load these.

    ``replacement`` stands for the script that starts Gradio, whose address is ``\\1`` there.
    """
    return STYLES.sub(b"", STARTS.sub(replacement, html)), b"".join(STYLES.findall(html))


def n_arguments(demo: gr.Blocks) -> dict[str | int, int]:
    """How many arguments each endpoint of an app takes, by its index and, if it has one, by its name."""
    found = dict[str | int, int]()
    for index, endpoint in demo.fns.items():
        found[index] = len(endpoint.inputs)
        if isinstance(endpoint.api_name, str):
            found[endpoint.api_name] = len(endpoint.inputs)
    return found


def event_joined(body: bytes) -> str | None:
    """The id of the event in Gradio's answer to a call that joined its queue; None in any other answer."""
    match = JOINED.fullmatch(body)
    return match[1].decode() if match else None


def event_ended(body: bytes) -> str | None:
    """The id of the event whose last message this is; None for any other message."""
    match = ENDED.match(body)
    return match[1].decode() if match else None


class QueuedEvents:
    """The events in the queue of a Gradio app, and what Gradio keeps for the sessions that joined them."""

    def __init__(self, demo: gr.Blocks) -> None:
        self.queue: Queue = demo._queue

    @property
    def kept(self) -> list[object]:
        """All that the queue keeps for clients: nothing is left once each has got its answers or is gone."""
        queue = self.queue
        return [*queue.pending_messages_per_session, *queue.pending_event_ids_session, *queue.event_ids_to_events]

    def unanswered(self, session: str) -> set[str]:
        """The ids of a session's events whose last message was not sent yet."""
        return self.queue.pending_event_ids_session.get(session, set())

    def drop_cancelled(self) -> None:
        """Remove events that were cancelled just as they ended: Gradio would keep them and all their data."""
        queue = self.queue
        active = {event._id for job in queue.active_jobs for event in job or ()}
        waiting = {event._id for each in queue.event_queue_per_concurrency_id.values() for event in each.queue}
        for event in queue.event_ids_to_events.keys() - active - waiting:
            del queue.event_ids_to_events[event]

    async def drop_session(self, session: str) -> None:
        """Cancel a session's events, and remove its messages and its copy of the page's configuration.

        No endpoint here keeps state in that copy.
        """
        await self.queue.clean_events(session_hash=session)
        self.queue.pending_messages_per_session.pop(session, None)
        self.queue.pending_event_ids_session.pop(session, None)
        if self.queue.server_app:
            holder = self.queue.server_app.state_holder
            holder.session_data.pop(session, None)
            holder.time_last_used.pop(session, None)

    def cancel(self, events: Iterable[str]) -> None:
        """Cancel the tasks that run these events."""
        cancelled = set(events)
        for task in list(self.queue._asyncio_tasks):
            if task.get_name().rpartition("<gradio-sep>")[2] in cancelled:
                task.cancel()
