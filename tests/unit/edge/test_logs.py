"""The format of the logs, and the end of a process whose event loop is blocked."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from web.edge.logs import JsonFormatter, TextFormatter

BLOCKED = """
import asyncio, threading
from web.edge import server

server.WATCHDOG_INTERVAL = 0

async def main():
    await server.watchdog(1)()
    threading.Event().wait()

asyncio.run(main())
"""


def record(message: str) -> logging.LogRecord:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        made = logging.LogRecord("here", logging.WARNING, "", 0, message, None, sys.exc_info())
    made.created = 0.0
    return made


def test_every_record_has_a_time() -> None:
    assert TextFormatter().format(record("broken")).startswith("1970-01-01T00:00:00Z WARNING here: broken")


def test_json_is_one_object_per_line() -> None:
    text = JsonFormatter().format(record('a "quote"\nand more'))
    assert "\n" not in text
    found = json.loads(text)
    assert found["message"] == 'a "quote"\nand more' and "ValueError: two\nlines" in found["traceback"]
    assert (found["time"], found["level"], found["logger"]) == ("1970-01-01T00:00:00Z", "WARNING", "here")


@pytest.mark.slow
def test_a_blocked_event_loop_ends_the_process_and_says_where() -> None:
    root = Path(__file__).parents[3]
    ended = subprocess.run([sys.executable, "-c", BLOCKED], cwd=root, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr and "in main" in ended.stderr
