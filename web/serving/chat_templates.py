"""Turns a conversation into a prompt with a checkpoint's own chat template, in a process that can be killed.

A template may loop forever or ask for more memory than there is; neither may hold up other models.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

import model
from model.errors import Busy, readable

from ..bounded_cache import BoundedCache
from ..settings import without_secrets
from .template_worker import MAX_CHARACTERS, READY

ROOT = Path(model.__file__).resolve().parent.parent
START_SECONDS = 30.0
RENDER_SECONDS = 2.0
MAX_PROCESSES = 4  # beyond that, the least recently used idle one is ended; ``Busy`` while all are in use
MAX_WAITING = 16  # conversations per template
MAX_LINE = 12 * MAX_CHARACTERS  # bytes: a character may be sent as two escapes


class TemplateFailed(Exception):
    """A template cannot be rendered for these messages; the error's message says why."""


class Templates:
    """The processes of the templates in use, each started when it is first needed. Used only from one event loop."""

    def __init__(self) -> None:
        self.workers = BoundedCache[str, Worker](
            max_entries=MAX_PROCESSES, can_evict=lambda worker: not worker.n_waiting, on_evict=Worker.kill
        )

    async def render(self, source: str, context: dict[str, Any]) -> str:
        """Render the template ``source`` with ``context``. Raises ``TemplateFailed`` and ``Busy``."""
        worker = self.workers.get(source)
        if worker is None:
            workers = self.workers.values()
            if len(workers) >= MAX_PROCESSES and all(worker.n_waiting for worker in workers):
                raise Busy
            self.workers.put(source, worker := Worker())
        reply = await worker.ask({"template": source, "context": context})
        text = reply.get("text")
        if text is None or readable(text) != text:
            raise TemplateFailed(readable(reply.get("error", "its output contains half of a surrogate pair")))
        return text

    def close(self) -> None:
        for worker in self.workers.values():
            worker.kill()


class Worker:
    """A process of ``template_worker.py``, which is restarted after it had to be killed."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.turn = asyncio.Lock()
        self.n_waiting = 0

    async def ask(self, asked: dict[str, Any]) -> dict[str, str]:
        if self.n_waiting >= MAX_WAITING:
            raise Busy
        self.n_waiting += 1
        try:
            async with self.turn:
                return await self.exchange(json.dumps(asked).encode() + b"\n")
        finally:
            self.n_waiting -= 1

    async def exchange(self, line: bytes) -> dict[str, str]:
        """Send one line and return the answer. Any failure kills the process, and so does a caller's cancellation."""
        answered = False
        try:
            process = await self.running()
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(line)
            async with asyncio.timeout(RENDER_SECONDS):
                await process.stdin.drain()
                reply: dict[str, str] = json.loads(await process.stdout.readline())
            answered = True
            return reply
        except TimeoutError:
            await self.end()
            raise TemplateFailed(f"it takes more than {RENDER_SECONDS:g} seconds") from None
        except (OSError, ValueError):  # the process ended, or its line was too long
            await self.end()
            raise TemplateFailed("it takes too much memory") from None
        finally:
            if not answered:
                self.kill()

    async def running(self) -> Process:
        if self.process is None or self.process.returncode is not None:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "web.serving.template_worker",
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                cwd=ROOT,
                env=without_secrets(os.environ),
                limit=MAX_LINE,
                start_new_session=True,  # Ctrl-C is for the server
            )
            assert self.process.stdout is not None
            async with asyncio.timeout(START_SECONDS):
                if await self.process.stdout.readline() != READY:
                    raise OSError("the process did not start")
        return self.process

    async def end(self) -> None:
        """Kill the process, and return when it has ended."""
        process = self.process
        self.kill()
        if process is not None:
            await process.wait()

    def kill(self) -> None:
        if self.process and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        self.process = None
