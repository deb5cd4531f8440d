"""Turns a conversation into a prompt with a checkpoint's own chat template, in a process that can be killed.

A template may loop forever or ask for more memory than there is; neither may hold up other models.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import model
from model.errors import readable

from ..settings import without_secrets
from .fair_pool import FairPool
from .template_worker import MAX_CHARACTERS, READY

ROOT = Path(model.__file__).resolve().parent.parent
START_SECONDS = 30.0
RENDER_SECONDS = 2.0
MAX_PROCESSES = 4  # conversations rendered at once, of which one client has at most all but one
MAX_WAITING = 64  # conversations
MAX_LINE = 12 * MAX_CHARACTERS  # bytes: a character may be sent as two escapes

log = logging.getLogger(__name__)


class TemplateFailed(Exception):
    """A template cannot be rendered for these messages; the error's message says why."""


class TemplatesUnavailable(Exception):
    """No process can be started, whatever the template and the messages."""

    def __init__(self) -> None:
        super().__init__("The server cannot start the process that reads conversations. Try again in a moment.")


class Templates:
    """The processes that render templates, each started when it is first needed. Used only from one event loop.

    Clients take turns, so that neither many conversations nor slow templates of one keep out another's. A process only
    ever renders the templates of one model, and a template in demand has several.
    """

    def __init__(self) -> None:
        self.places = FairPool(MAX_PROCESSES, MAX_WAITING, MAX_PROCESSES - 1)
        self.processes: list[TemplateProcess] = []  # the least recently used first

    async def render(self, client: Hashable, source: str, context: Mapping[str, Any]) -> str:
        """Render the template ``source`` with ``context``.

        Raises ``TemplateFailed``, ``TemplatesUnavailable`` and ``Busy``.
        """
        async with self.places.place(client):
            with self.process_for(source) as process:
                reply = await process.render(context)
        text = reply.get("text")
        if text is None or readable(text) != text:
            raise TemplateFailed(readable(reply.get("error", "its output contains half of a surrogate pair")))
        return text

    @contextlib.contextmanager
    def process_for(self, source: str) -> Iterator["TemplateProcess"]:
        """An idle process for this template, in use inside the block. Whoever has a place finds one, or room for it."""
        idle = [process for process in self.processes if not process.in_use]
        process = next((each for each in reversed(idle) if each.source == source), None)
        if process is None:
            if len(self.processes) >= MAX_PROCESSES:
                self.processes.remove(idle[0])
                idle[0].kill()
            process = TemplateProcess(source)
        else:
            self.processes.remove(process)
        self.processes.append(process)
        process.in_use = True
        try:
            yield process
        finally:
            process.in_use = False

    def close(self) -> None:
        for process in self.processes:
            process.kill()


class TemplateProcess:
    """A process of ``template_worker.py`` for one template, which is restarted after it had to be killed."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.process: Process | None = None
        self.in_use = False

    async def render(self, context: Mapping[str, Any]) -> dict[str, str]:
        """The process's answer. Any failure kills it, and so does a caller's cancellation."""
        line = json.dumps({"template": self.source, "context": context}).encode() + b"\n"
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
        if self.process is not None and self.process.returncode is None:
            return self.process
        try:
            return await self.start()
        except OSError as error:  # such as ``TimeoutError``
            log.error("the process for chat templates did not start", exc_info=error)
            raise TemplatesUnavailable from None

    async def start(self) -> Process:
        """A process that waits for conversations. Raises ``OSError``."""
        process = self.process = await asyncio.create_subprocess_exec(
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
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            if await process.stdout.readline() != READY:
                raise OSError("the process ended")
        return process

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
