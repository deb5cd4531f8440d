"""Clients take turns at loading the page, whose HTML and descriptions of the API take long to make."""

from contextlib import AsyncExitStack

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model.errors import Busy

from ..api.errors import as_api_error
from ..client import client_in
from ..request_path import path_of
from ..serving.fair_pool import FairPool

N_PLACES = 2  # of which a client has one
# Routes that compute in ``FairPool`` of their own or answer with streams, apart from Gradio's descriptions of its API.
OTHERS = ("/health", "/metrics", "/v1/", "/look/", "/learn/", "/train/", "/gradio_api/")
MADE = ("/gradio_api/info", "/gradio_api/openapi.json", "/gradio_api/mcp/schema")


class PageLoadMiddleware:
    """Makes one answer of the page at a time for each client, up to its first byte."""

    def __init__(self, app: ASGIApp, max_waiting: int) -> None:
        self.app, self.places = app, FairPool(N_PLACES, max_waiting, max_per_client=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not is_of_page(path_of(scope)):
            await self.app(scope, receive, send)
            return
        async with AsyncExitStack() as place:

            async def begun(message: Message) -> None:
                await place.aclose()  # a client that reads slowly keeps no place
                await send(message)

            try:
                await place.enter_async_context(self.places.place(client_in(scope)))
            except Busy as error:
                await as_api_error(error).response()(scope, receive, send)
                return
            await self.app(scope, receive, begun)


def is_of_page(path: str) -> bool:
    return not path.startswith(OTHERS) or path.startswith(MADE)
