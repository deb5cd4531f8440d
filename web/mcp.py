"""The Gradio endpoints as MCP tools, where the package ``mcp`` is installed."""

from importlib.util import find_spec

import gradio as gr
from gradio_client import Client


def is_installed() -> bool:
    return find_spec("mcp") is not None


def hand_over_key(demo: gr.Blocks, key: str) -> None:
    """Gradio's tools call its API as a client of their own, which has to know the key; there is no option for that."""
    if demo.mcp_server_obj:
        headers = {"x-gradio-user": "mcp", "Authorization": f"Bearer {key}"}
        options = {"verbose": False, "download_files": False, "analytics_enabled": False, "_skip_components": False}
        demo.mcp_server_obj._client_instance = Client(demo.local_url, headers=headers, **options)
