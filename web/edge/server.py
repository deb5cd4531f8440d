"""The server process: configuration of Gradio's uvicorn, suppression of repeated log messages, and signals."""

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import uvicorn
from starlette.types import ASGIApp

from ..gauges import ConnectionGauges
from ..prometheus import Metrics
from ..seams.gradio import end_tunnels, server_made_by
from ..serving.budget import Budget
from ..settings import Settings
from .connections import Connections
from .logs import file_for_dump
from .middleware import before_gradio, wrap

ACCEPTED_AT_ONCE = 64  # connections accepted before any of them is handled; each takes a file descriptor
WATCHDOG_INTERVAL = 5  # seconds between signs of life of the event loop
QUIET_SECONDS = 60.0  # in which the same message is not logged again
MAX_REMEMBERED = 1_000  # different messages


@contextmanager
def configured_server(settings: Settings, budget: Budget, metrics: Metrics) -> Iterator[None]:
    """While this context is active, a Gradio app is launched with uvicorn options that Gradio does not expose."""
    limits = settings.limits
    max_open, max_per_client = limits.max_connections, limits.max_connections_per_address
    connections = Connections(budget, max_open, max_per_client, settings.trusted_proxies)
    metrics.registry.register(ConnectionGauges(connections))

    def config(app: ASGIApp, **given: Any) -> uvicorn.Config:
        options: dict[str, Any] = {
            "http": connections.protocol,
            "ws": "none",  # nothing here uses WebSockets
            "backlog": ACCEPTED_AT_ONCE,
            "proxy_headers": False,  # web/client.py reads these headers
            "log_level": settings.log_level,
            "log_config": None,  # ``set_up_logs`` formats uvicorn's messages too
            "access_log": False,  # RequestLogMiddleware writes one
        }
        if settings.watchdog_seconds:
            dump = file_for_dump(settings.log_format)
            notify = watchdog(settings.watchdog_seconds, dump)
            options |= {"callback_notify": notify, "timeout_notify": WATCHDOG_INTERVAL}
        made = uvicorn.Config(wrap(app, before_gradio(settings, budget)), **(given | options))
        suppress_repeats()
        return made

    with server_made_by(config):
        yield


def watchdog(seconds: int, dump: IO[bytes] | IO[str] = sys.stderr) -> Callable[[], Awaitable[None]]:
    """A function that the event loop calls regularly; once it has been blocked for ``seconds``, the process ends.

    The timer is a thread of the interpreter's own that needs no lock, so it notices a loop blocked in C code as well.
    It first writes to ``dump`` what all threads are doing.
    """

    async def is_alive() -> None:
        faulthandler.dump_traceback_later(WATCHDOG_INTERVAL + seconds, exit=True, file=dump)

    return is_alive


class RepeatFilter(logging.Filter):
    """Suppresses messages already logged within the last minute; the next one logged says how many were dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[
            object, tuple[float, int]
        ] = {}  # the time of each, and how often it has been suppressed since

    def filter(self, record: logging.LogRecord) -> bool:
        message, now = message_key(record), time.monotonic()
        at, count = self.logged.get(message, (-QUIET_SECONDS, 0))
        if now - at < QUIET_SECONDS:
            self.logged[message] = at, count + 1
            return False
        if len(self.logged) >= MAX_REMEMBERED:
            self.logged.clear()
        self.logged[message] = now, 0
        if count:
            record.msg = f"{record.getMessage()} ({count:,} more times since this was last logged)"
            record.args = ()
        return True


def message_key(record: logging.LogRecord) -> object:
    """The message before its values are filled in; for an exception, also its class and where it was raised."""
    error = record.exc_info[1] if record.exc_info else None
    where = None
    if error is not None:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        where = type(error), traceback and (traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    return record.name, record.msg, where


def suppress_repeats() -> None:
    """Suppress repeated messages in uvicorn's log and in logs that have no handler of their own."""
    handlers = [*logging.getLogger("uvicorn").handlers, *logging.getLogger().handlers, logging.lastResort]
    for handler in handlers:
        if handler and not any(isinstance(each, RepeatFilter) for each in handler.filters):
            handler.addFilter(RepeatFilter())


def listen_for_signals() -> threading.Event:
    """Return an event that SIGTERM or Ctrl-C sets, so that running texts can end. A second signal exits at once.

    Call this in the main thread.
    """
    stopping = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if stopping.is_set():
            exit_now(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return stopping


def exit_now(status: int) -> None:
    """End the process at once, and also the tunnel of ``--share``, a separate process that would outlive it."""
    end_tunnels()
    os._exit(status)
