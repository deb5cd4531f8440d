"""The format of the logs, and the end of a process whose event loop is blocked."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from web.edge.logs import JsonFormatter, TextFormatter

BLOCKED = """
import asyncio, sys, threading
from web.edge import server
from web.edge.logs import file_for_dump

server.WATCHDOG_INTERVAL = 0

async def main():
    await server.watchdog(1, file_for_dump(sys.argv[1]))()
    threading.Event().wait()

asyncio.run(main())
"""
FAILING = """
import threading, warnings
from web.edge.logs import set_up_logs

def fail(where):
    raise ValueError(where)

set_up_logs("warning", "json")
warnings.warn("be careful")
thread = threading.Thread(target=fail, args=["in a thread"])
thread.start()
thread.join()
fail("in the end")
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


@pytest.mark.release
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_blocked_event_loop_ends_the_process_and_says_where(log_format: str) -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", BLOCKED, log_format]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1
    said = ended.stderr if log_format == "text" else json.loads(ended.stderr)["traceback"]
    assert "Timeout" in said and "in main" in said


@pytest.mark.slow
def test_json_logs_have_warnings_and_what_nothing_catches() -> None:
    root = Path(__file__).parents[3]
    ended = subprocess.run([sys.executable, "-c", FAILING], cwd=root, capture_output=True, text=True, timeout=120)
    entries = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 1 and len(entries) == 3
    assert "be careful" in entries[0]["message"]
    assert ["in a thread" in entries[1]["traceback"], "in the end" in entries[2]["traceback"]] == [True, True]
