"""Requests that nothing here needs are refused before Gradio, or anything else, reads them."""

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..api.auth import path_of
from .bodies import GRADIO

# What the page, gradio_client, curl and MCP use of Gradio's API. The rest takes files or passes on requests.
NEEDED = ("app_id", "call/", "cancel", "info", "mcp", "openapi.json", "queue/", "reset", "startup-events", "theme.css")


class Door:
    """ASGI middleware in front of everything, Gradio's own included."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            path = path_of(scope)
            if path.startswith(GRADIO) and not path.removeprefix(GRADIO).startswith(NEEDED):
                await refuse(404, "There is no such route here.")(scope, receive, send)
                return
            if headers.get("content-type", "").lower().startswith("multipart/"):
                await refuse(415, "This server takes no files.")(scope, receive, send)
                return
            if "host" not in headers:  # HTTP/1.0 allows it, and Gradio relies on it
                host, port = scope["server"] or ("localhost", None)
                host = f"{host}:{port}" if port else host
                scope["headers"] = [*scope["headers"], (b"host", host.encode())]
        await self.app(scope, receive, send)


def refuse(status: int, message: str) -> JSONResponse:
    return JSONResponse({"detail": message}, status)
