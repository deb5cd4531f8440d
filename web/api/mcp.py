"""The Gradio endpoints as MCP tools, where the package ``mcp`` is installed."""

import json
from importlib.util import find_spec
from typing import Any

import gradio as gr
from gradio_client import Client


def is_installed() -> bool:
    return find_spec("mcp") is not None


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
