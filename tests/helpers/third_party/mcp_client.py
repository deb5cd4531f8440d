"""The official MCP client."""

from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def with_tools(
    url: str, headers: dict[str, str], calls: list[tuple[str, dict[str, Any]]]
) -> tuple[Any, list[Any]]:
    """The listed tools, and the results of the calls."""
    async with (
        streamablehttp_client(f"{url}/gradio_api/mcp/", headers=headers) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        return tools, [await session.call_tool(*call) for call in calls]
