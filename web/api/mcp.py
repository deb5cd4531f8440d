"""The Gradio endpoints as MCP tools, where the package ``mcp`` is installed.

For each call of a tool Gradio calls its own API with a client of its own, from a thread, and waits for the answer in a
thread that everything else needs, too. Here calls take turns by address, nothing waits in a thread for long, and a
call whose client has left is cancelled.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any

import gradio as gr
from gradio_client import Client

from model.serving.engine import Busy

from ..client import client_of, headers_for
from ..serving.workers import Workers
from ..settings import MAX_MCP_CALLS, Limits, Settings
from .errors import as_api_error

Submit = Callable[[Client], Any]  # sends a call that was put off


def is_installed() -> bool:
    return find_spec("mcp") is not None


def set_up(demo: gr.Blocks, settings: Settings) -> None:
    """What Gradio's MCP server lacks, once ``demo`` is launched. Without the package ``mcp`` there is nothing to do."""
    answer_in_json(demo)
    take_turns(demo, settings.limits)
    if settings.api_key:
        hand_over_key(demo, settings.api_key)


def answer_in_json(demo: gr.Blocks) -> None:
    """Send lists and dicts as JSON in a tool's answer: Gradio sends their Python repr and has no option for it."""
    server: Any = demo.mcp_server_obj
    if not server:
        return
    in_gradio = server.postprocess_output_data

    def in_json(outputs: list[Any], root_url: str) -> Any:
        texts = [json.dumps(output) if isinstance(output, list | dict) else output for output in outputs]
        return in_gradio(texts, root_url)

    server.postprocess_output_data = in_json


def hand_over_key(demo: gr.Blocks, key: str) -> None:
    """Gradio's tools call its API through a client of their own, which must know the key: there is no option for it."""
    if demo.mcp_server_obj:
        headers = {"x-gradio-user": "mcp", "Authorization": f"Bearer {key}"}
        options = {"verbose": False, "download_files": False, "analytics_enabled": False, "_skip_components": False}
        demo.mcp_server_obj._client_instance = Client(demo.local_url, headers=headers, **options)


class PutOff:
    """Stands for Gradio's client: a call is sent when its turn has come."""

    def submit(self, *arguments: Any, **options: Any) -> Submit:
        return lambda client: client.submit(*arguments, **options)


def take_turns(demo: gr.Blocks, limits: Limits) -> None:
    """Bound the calls at work at the same time, half of them for one address, and count each as its caller's."""
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
                # In a thread of its own: to be made, the client asks this server, which needs the others to answer.
                job = submit(await making_client.run(None, make_client))
                try:
                    return await wait(job)
                except asyncio.CancelledError:  # the client has left
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
    server._get_or_create_client = PutOff
    server._execute_tool_without_progress = without_progress
    server._execute_tool_with_progress = with_progress
