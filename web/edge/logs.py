"""The format of the logs, an id for every request, and the access log."""

import json
import logging
import random
import re
import subprocess
import sys
import threading
import time
from typing import IO, Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.errors import CLIENT_LEFT
from ..settings import LogFormat

TIME = "%Y-%m-%dT%H:%M:%SZ"
HEADER = "X-Request-Id"
DUMP_READER = f"""
import json, sys, time
dump = sys.stdin.read()
if dump:
    entry = {{"time": time.strftime({TIME!r}, time.gmtime()), "level": "CRITICAL", "logger": "watchdog"}}
    print(json.dumps(entry | {{"message": "The event loop was blocked", "traceback": dump}}), file=sys.stderr)
"""
GIVEN = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)

log = logging.getLogger(__name__)


class TextFormatter(logging.Formatter):
    """``2026-01-31T12:00:00Z WARNING logger: message``."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", TIME)


class JsonFormatter(logging.Formatter):
    """One object per line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": utc(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_logs(level: str, log_format: LogFormat) -> None:
    """Log to stderr from ``level`` on, with Python's warnings and the errors that nothing catches."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.captureWarnings(True)
    sys.excepthook = lambda *error: log.critical("The server failed", exc_info=error)
    threading.excepthook = lambda failed: log.error(
        "A thread failed", exc_info=(failed.exc_type, failed.exc_value or failed.exc_type(), failed.exc_traceback)
    )


def file_for_dump(log_format: LogFormat) -> IO[bytes] | IO[str]:
    """The file to which the watchdog writes what all threads were doing; in JSON, that becomes one object.

    The process ends in the same moment, so another one reads it.
    """
    if log_format == "text":
        return sys.stderr
    reader = subprocess.Popen([sys.executable, "-c", DUMP_READER], stdin=subprocess.PIPE, start_new_session=True)
    assert reader.stdin is not None
    return reader.stdin


class RequestLogMiddleware:
    """Sends ``X-Request-Id`` with every response: the client's own if it is well formed, otherwise a new one.

    With ``access_log``, it prints a line to stdout when a response has ended.
    """

    def __init__(self, app: ASGIApp, *, access_log: bool = False, log_format: LogFormat = "text") -> None:
        self.app, self.access_log, self.log_format = app, access_log, log_format

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        # Unique, but no secret: reading secret bytes is a system call, during which other threads take Python's lock.
        request_id = given if GIVEN.fullmatch(given) else f"req-{random.getrandbits(96):024x}"
        began, status, n_bytes = time.monotonic(), CLIENT_LEFT, 0

        async def answered(message: Message) -> None:
            nonlocal status, n_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            n_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, answered)
        except Exception:
            status = 500
            raise
        finally:
            if self.access_log:
                entry = {
                    "time": utc(time.time()),
                    "client": scope["client"][0] if scope.get("client") else "-",
                    "method": scope["method"],
                    "path": quote(scope["path"]),  # never the query or the body
                    "status": status,
                    "bytes": n_bytes,
                    "seconds": round(time.monotonic() - began, 3),
                    "request_id": request_id,
                }
                print(json.dumps(entry) if self.log_format == "json" else line(entry), file=sys.stdout, flush=True)


def line(entry: dict[str, Any]) -> str:
    """``2026-01-31T12:00:00Z 192.0.2.1 POST /v1/completions 200 1234 B 0.512 s req-...``."""
    return "{time} {client} {method} {path} {status} {bytes} B {seconds:.3f} s {request_id}".format_map(entry)


def utc(seconds: float) -> str:
    return time.strftime(TIME, time.gmtime(seconds))
