"""The Gradio endpoints as MCP tools, if the package ``mcp`` is installed.

For each tool call Gradio creates a client, calls its own API from a thread, and blocks a thread of the pool that
everything else needs while it waits for the answer. Here calls take turns by address, no thread is blocked for long,
and a call whose client has disconnected is cancelled.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any

import gradio as gr
from gradio_client import Client

from model.errors import Busy

from ..client import client_of, headers_for
from ..serving.workers import Workers
from ..settings import Limits, Settings
from .errors import as_api_error

MAX_MCP_CALLS = 32  # at the same time; Gradio's own client sends no more than 40

MAX_TOOL_ANSWER_BYTES = 8_192  # a language model has to read all of them
WHOLE = "whole"
ABOUT_WHOLE = f"Return the answer even if it has more than {MAX_TOOL_ANSWER_BYTES:,} bytes."
wants_whole: ContextVar[bool] = ContextVar("wants_whole", default=False)  # of the call being answered

Submit = Callable[[Client], Any]  # sends a postponed call


def is_installed() -> bool:
    return find_spec("mcp") is not None


def set_up(demo: gr.Blocks, settings: Settings) -> None:
    """Adapt Gradio's MCP server after ``demo`` is launched. Without the package ``mcp`` this does nothing."""
    answer_in_json(demo)
    take_turns(demo, settings.limits)
    if settings.api_key:
        hand_over_key(demo, settings.api_key)


def answer_in_json(demo: gr.Blocks) -> None:
    """Send lists and dicts as JSON in a tool's answer, and a long answer only if the call asks for ``whole``.

    Gradio sends their Python repr at any length, and has no option to change that.
    """
    server: Any = demo.mcp_server_obj
    if not server:
        return
    in_gradio, prepare, schema_of = (
        server.postprocess_output_data,
        server._prepare_tool_call_args,
        server.get_input_schema,
    )

    def with_whole(tool_name: str, parameters: dict[str, str] | None = None) -> Any:
        schema, positions = schema_of(tool_name, parameters)
        schema["properties"][WHOLE] = {"type": "boolean", "default": False, "description": ABOUT_WHOLE}
        return schema, positions

    def prepared(name: str, arguments: dict[str, Any]) -> Any:
        wants_whole.set(arguments.get(WHOLE) is True)
        return prepare(name, {given: value for given, value in arguments.items() if given != WHOLE})

    def in_json(outputs: list[Any], root_url: str) -> Any:
        texts = [json.dumps(output) if isinstance(output, list | dict) else output for output in outputs]
        n_bytes = sum(len(text.encode()) for text in texts if isinstance(text, str))
        if n_bytes > MAX_TOOL_ANSWER_BYTES and not wants_whole.get():
            raise ValueError(
                f"The answer has {n_bytes:,} bytes, and a tool sends at most {MAX_TOOL_ANSWER_BYTES:,} unless it is "
                f"called with {WHOLE}: true. Ask about a shorter text, or fetch it over HTTP (/v1/openapi.json)."
            )
        return in_gradio(texts, root_url)

    server.get_input_schema = with_whole
    server._prepare_tool_call_args = prepared
    server.postprocess_output_data = in_json


def hand_over_key(demo: gr.Blocks, key: str) -> None:
    """Give the key to the client through which Gradio's tools call its API. Gradio has no option for it."""
    if demo.mcp_server_obj:
        headers = {"x-gradio-user": "mcp", "Authorization": f"Bearer {key}"}
        options = {"verbose": False, "download_files": False, "analytics_enabled": False, "_skip_components": False}
        demo.mcp_server_obj._client_instance = Client(demo.local_url, headers=headers, **options)


class PostponedCalls:
    """A stand-in for Gradio's client that sends a call when its turn has come."""

    def submit(self, *arguments: Any, **options: Any) -> Submit:
        return lambda client: client.submit(*arguments, **options)


def take_turns(demo: gr.Blocks, limits: Limits) -> None:
    """Bound the number of concurrent calls, half of them for one address, and attribute each to its caller."""
    server: Any = demo.mcp_server_obj
    if not server:
        return
    workers = Workers(MAX_MCP_CALLS, limits.max_waiting, MAX_MCP_CALLS // 2)
    making_client = Workers(1, limits.max_waiting + MAX_MCP_CALLS)
    prepare, make_client, follow = (
        server._prepare_tool_call_args,
        server._get_or_create_client,
        server._execute_tool_with_progress,
    )

    def caller() -> Any:
        return client_of(server.mcp_server.request_context.request)

    def prepared(name: str, arguments: dict[str, Any]) -> Any:
        endpoint, given, headers, function = prepare(name, arguments)
        return endpoint, given, headers | headers_for(caller()), function

    async def in_turn(submit: Submit, wait: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            async with workers.place(caller()):
                # In a thread of its own: the new client sends this server a request, which needs the other threads.
                job = submit(await making_client.run(None, make_client))
                try:
                    return await wait(job)
                except asyncio.CancelledError:  # the client has disconnected
                    asyncio.get_running_loop().run_in_executor(None, job.cancel)
                    raise
        except Busy as error:
            raise RuntimeError(as_api_error(error).message) from None

    async def without_progress(submit: Submit) -> Any:
        async def wait(job: Any) -> list[Any]:
            return [await asyncio.wrap_future(job.future)]

        return await in_turn(submit, wait)

    async def with_progress(submit: Submit, token: str | int) -> Any:
        return await in_turn(submit, lambda job: follow(job, token))

    server._prepare_tool_call_args = prepared
    server._get_or_create_client = PostponedCalls
    server._execute_tool_without_progress = without_progress
    server._execute_tool_with_progress = with_progress
