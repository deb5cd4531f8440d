"""The endpoints as MCP tools, if the package ``mcp`` is installed. No session is kept between calls."""

import inspect
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from importlib.util import find_spec
from typing import Any

import gradio as gr
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from .errors import as_api_error
from .guards import ToolCall

PATH = "/gradio_api/mcp"  # where Gradio's own MCP server would be
MAX_TOOL_ANSWER_BYTES = 8_192  # a language model has to read all of them
WHOLE = "whole"
ABOUT_WHOLE = f"Return the answer even if it has more than {MAX_TOOL_ANSWER_BYTES:,} bytes."
ARGUMENT = re.compile(r"^ +(\w+): (.+)$", re.MULTILINE)

Endpoint = Callable[..., Any]

log = logging.getLogger(__name__)


class ToolError(Exception):
    """Its text is the answer of a tool that could not do what it was asked."""


class McpServer:
    """An MCP server with ``endpoints`` as its tools, or none where the package ``mcp`` is missing."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.routes: list[BaseRoute] = []
        self.manager: Any = None
        if find_spec("mcp") is None:
            return
        from mcp import types
        from mcp.server.lowlevel import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        tools = {endpoint.__name__: Tool(endpoint) for endpoint in endpoints}
        server: Any = Server("Headscope")
        self.manager = StreamableHTTPSessionManager(server, stateless=True)

        @server.list_tools()  # type: ignore[untyped-decorator]
        async def list_tools() -> list[types.Tool]:
            return [types.Tool(**tool.listed) for tool in tools.values()]

        @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]  # ``Tool.call`` says what is wrong
        async def call_tool(name: str, arguments: dict[str, Any]) -> list[types.TextContent]:
            if name not in tools:
                raise ToolError(f"There is no tool named {name!r}.")
            context = server.request_context
            token = context.meta and context.meta.progressToken

            async def progress(n_events: int) -> None:
                if token is not None:
                    await context.session.send_progress_notification(token, n_events)

            text = await tools[name].call(context.request, arguments, progress)
            return [types.TextContent(type="text", text=text)]

        async def schema(_request: Request) -> JSONResponse:
            return JSONResponse([tool.listed for tool in tools.values()])

        # A GET would open a stream for messages that this server never sends.
        posts = [Route(path, self.manager.asgi_app, methods=["POST"]) for path in (f"{PATH}/", PATH)]
        self.routes = [Route(f"{PATH}/schema", schema), *posts]

    @asynccontextmanager
    async def lifespan(self, _app: object) -> AsyncIterator[None]:
        """Answers calls inside the ``async with`` block."""
        if self.manager is None:
            yield
            return
        async with self.manager.run():
            yield


class Tool:
    """A tool made from an endpoint: its arguments and their descriptions come from the signature and the docstring."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.signature = endpoint, inspect.signature(endpoint)
        about, _, rest = (inspect.getdoc(endpoint) or "").partition("\n\nArgs:\n")
        arguments, _, returns = rest.partition("\n\nReturns:\n")
        helps = dict(ARGUMENT.findall(arguments))
        fields: dict[str, Any] = {
            name: (
                parameter.annotation,
                Field(
                    ... if parameter.default is inspect.Parameter.empty else parameter.default,
                    description=helps.get(name),
                ),
            )
            for name, parameter in self.signature.parameters.items()
            if name != "request"
        }
        fields[WHOLE] = bool, Field(False, description=ABOUT_WHOLE)
        self.arguments: type[BaseModel] = create_model(
            endpoint.__name__, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields
        )
        description = f"{about}\n\nReturns: {' '.join(returns.split())}" if returns else about
        self.listed: dict[str, Any] = {
            "name": endpoint.__name__,
            "description": description,
            "inputSchema": self.arguments.model_json_schema(),
        }

    async def call(self, request: Request, given: dict[str, Any], progress: Callable[[int], Any]) -> str:
        """The answer as text. ``progress`` is awaited with the number of events that have come so far.

        Raises ``ToolError``, whose message is for the caller.
        """
        try:
            checked = self.arguments.model_validate(given)
            values = {name: getattr(checked, name) for name in self.arguments.model_fields if name != WHOLE}
            if "request" in self.signature.parameters:
                values["request"] = ToolCall(request.client)
            bound = self.signature.bind(**values)
            answer = self.endpoint(*bound.args, **bound.kwargs)
            if inspect.isasyncgen(answer):
                answer = await last_of(answer, progress)
            else:
                answer = await answer
        except gr.Error as error:
            raise ToolError(error.message) from None
        except ValidationError as error:
            raise ToolError(as_api_error(error).detail) from None
        except Exception:
            log.exception("The tool %s failed", self.endpoint.__name__)
            raise ToolError("The server failed to answer; its log says why.") from None
        content = answer if isinstance(answer, bytes | str) else json.dumps(answer)
        text = content.decode() if isinstance(content, bytes) else content
        n_bytes = len(text.encode())
        if n_bytes > MAX_TOOL_ANSWER_BYTES and not getattr(checked, WHOLE):
            raise ToolError(
                f"The answer has {n_bytes:,} bytes, and a tool sends at most {MAX_TOOL_ANSWER_BYTES:,} unless it is "
                f"called with {WHOLE}: true. Ask about a shorter text, or fetch it over HTTP (/v1/openapi.json)."
            )
        return text


async def last_of(events: Any, progress: Callable[[int], Any]) -> Any:
    n, last = 0, ""
    async with aclosing(events):
        async for event in events:
            n, last = n + 1, event
            await progress(n)
    return last
