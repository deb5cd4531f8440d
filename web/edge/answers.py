"""Large answers count against the budget until the client has read them."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.errors import as_api_error
from ..serving.budget import Budget, NoRoom
from .client_address import client_host

DROP = "headscope.drop"  # in a scope's extensions: closes the connection
PIECE = 32_768  # bytes: at most so many lie in the connection's own buffer


class CountAnswers:
    """ASGI middleware: a part of an answer above ``PIECE`` is sent when there is room for it, and otherwise refused.

    An answer that is sent whole becomes an error; where one has begun, the connection is closed.
    """

    def __init__(self, app: ASGIApp, budget: Budget) -> None:
        self.app, self.budget = app, budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start: Message | None = None  # of a whole answer, until it is known whether there is room
        refused = False
        client = client_host(scope)

        async def counted(message: Message) -> None:
            nonlocal start, refused
            if refused:
                return
            if message["type"] == "http.response.start" and is_large(message):
                start = message
                return
            body = message.get("body", b"")
            n_bytes = len(body) if len(body) > PIECE else 0
            try:
                self.budget.take(n_bytes, client)
            except NoRoom as error:
                refused = True
                if start:
                    await as_api_error(error).response()(scope, receive, send)
                else:
                    scope["extensions"][DROP]()
                return
            try:
                if start:
                    await send(start)
                    start = None
                if n_bytes:
                    await self.send_in_pieces(message, body, send)
                else:
                    await send(message)
            finally:
                self.budget.give_back(n_bytes, client)

        await self.app(scope, receive, counted)

    async def send_in_pieces(self, message: Message, body: bytes, send: Send) -> None:
        view = memoryview(body)
        for begin in range(0, len(body), PIECE):
            end = begin + PIECE
            more = end < len(body) or bool(message.get("more_body"))
            await send({"type": message["type"], "body": bytes(view[begin:end]), "more_body": more})


def is_large(start: Message) -> bool:
    length = Headers(raw=start["headers"]).get("content-length", "")
    return length.isdigit() and int(length) > PIECE
