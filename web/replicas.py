"""Several copies of the API behind Ray Serve: ``serve run web.replicas:app``.

A gate receives every request and passes it to one of the replicas, each of which has its own models and engines. If a
replica dies, the gate retries once on another one, unless part of the answer has been sent: a stream then ends with an
error object. Flags of ``app.py`` are given as ``HEADSCOPE_*`` variables; ``HEADSCOPE_REPLICAS`` sets the number of
replicas.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import settings
from .api.errors import ApiError, as_api_error
from .api.routes import api_routes
from .edge.middleware import for_routes, wrap
from .request_path import path_of
from .services import make_services
from .serving.budget import budget_for
from .serving.server_sent_events import DONE, EVENT_STREAM, server_sent_event

ONGOING = 1_000  # requests at a replica or the gate; the engines refuse requests when there are too many
MAX_HELD_BYTES = 16_000_000  # of an answer held back until it is complete, so that another replica can take over
PASSED_ON = ("type", "method", "scheme", "path", "raw_path", "query_string", "root_path", "headers", "client", "server")
# The gate computes nothing. A busy replica may need more than Ray's default of 0.1 seconds to report its queue length,
# and would then get no more requests.
GATE_OPTIONS = {"num_cpus": 0, "runtime_env": {"env_vars": {"RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S": "1"}}}
REPLICA_LOST = "The copy of the app that was answering was lost. Try again."


@serve.deployment(max_ongoing_requests=ONGOING)
class Replica:
    """One copy of the API with its own models and engines."""

    def __init__(self) -> None:
        self.services = make_services(settings.parse([], os.environ))
        self.services.load()
        self.app = FastAPI(routes=api_routes(self.services), openapi_url=None)
        self.name = serve.get_replica_context().replica_id.unique_id.encode()

    async def answer(self, scope: dict[str, Any], body: bytes) -> AsyncGenerator[Message]:
        """The messages of the app's response. Closing the generator means that the client has left."""
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        requests = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Message:
            for message in requests:
                return message
            await asyncio.Future()  # the task is cancelled when the client leaves
            raise AssertionError

        async def run() -> None:
            try:
                await self.app(scope, receive, messages.put)
            finally:
                messages.put_nowait(None)

        task = asyncio.create_task(run())
        try:
            while (message := await messages.get()) is not None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message["headers"], (b"x-headscope-replica", self.name)]
                yield message
            await task
        finally:
            task.cancel()

    def __del__(self) -> None:
        with suppress(AttributeError):  # a checkpoint may have failed before
            self.services.close()


@serve.deployment(max_ongoing_requests=ONGOING, ray_actor_options=GATE_OPTIONS)
@serve.ingress()
class Gate:
    """Receives requests from clients and has a replica answer each of them."""

    def __init__(self, replicas: DeploymentHandle) -> None:
        self.replicas = replicas.options(stream=True)
        self.settings = settings.parse([], os.environ)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return wrap(self.forward, for_routes(self.settings, budget_for(self.settings.limits)))

    async def forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if path_of(scope) == "/metrics":
            message = "Each replica has its own metrics, which are not combined here. Use Ray's metrics instead."
            error = ApiError(404, message, code="not_found")
            await error.response()(scope, receive, send)
            return
        request = {name: scope[name] for name in PASSED_ON if name in scope}
        try:
            body = await Request(scope, receive).body()
        except (HTTPException, ClientDisconnect) as error:  # the body is too large, or the client has left
            await as_api_error(error).response()(scope, receive, send)
            return
        for is_last_try in (False, True):
            messages, answer = self.replicas.answer.remote(request, body), Answer(send)
            try:
                await answer.take(messages)
                return
            except RayTaskError as error:  # the app itself raised it
                await answer.fail(as_api_error(error), scope, receive)
                return
            except (RayError, RayServeException):
                if is_last_try or answer.has_begun:
                    await answer.fail(ApiError(503, REPLICA_LOST, code="replica_lost"), scope, receive)
                    return
            finally:
                messages.cancel()


class Answer:
    """A replica's answer: a stream is passed on as it arrives, anything else once it is complete."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.held: list[Message] = []
        self.n_held = 0
        self.is_stream = self.has_begun = False

    async def take(self, messages: AsyncIterator[Message]) -> None:
        async for message in messages:
            if message["type"] == "http.response.start":
                kinds = [value for name, value in message["headers"] if name.lower() == b"content-type"]
                self.is_stream = any(kind.startswith(EVENT_STREAM.encode()) for kind in kinds)
            self.held.append(message)
            self.n_held += len(message.get("body", b""))
            if self.is_stream or self.n_held > MAX_HELD_BYTES:
                await self.release()
        await self.release()

    async def release(self) -> None:
        for message in self.held:
            self.has_begun = True
            await self.send(message)
        self.held, self.n_held = [], 0

    async def fail(self, error: ApiError, scope: Scope, receive: Receive) -> None:
        """Tell the client that there will be no answer, or that the rest of it will not come."""
        if not self.has_begun:
            await error.response()(scope, receive, self.send)
        elif self.is_stream:
            end = server_sent_event(error.body) + DONE
            await self.send({"type": "http.response.body", "body": end, "more_body": False})
        else:
            raise ConnectionError(error.detail)  # the client sees the connection break off


gate: Any = Gate  # the decorators have replaced the classes with deployments
replica: Any = Replica
app = gate.bind(replica.options(num_replicas=int(os.environ.get("HEADSCOPE_REPLICAS") or 2)).bind())
