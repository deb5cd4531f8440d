"""The questions as endpoints for gradio_client, curl and MCP."""

from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr
import orjson

from ...services import Services
from ...serving.engines import client_of
from ..guards import refusals
from .questions import QUESTIONS
from .routes import ask, read_question


def lens_endpoints(services: Services) -> list[Callable[..., Awaitable[Any]]]:
    """The endpoints; each is called as its function is named."""

    async def knockout(
        request: gr.Request, prompt: str = "", model: str | None = None, method: str = "zero"
    ) -> dict[str, Any]:
        """How much worse a text is predicted without each head of a model.

        Args:
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            method: "zero" replaces a head's output by zeros, "mean" by its mean over this text.

        Returns:
            The loss of the text in nats per token, and for each layer and head the loss without it minus that.
        """
        return await answer(request, "knockout", {"prompt": prompt, "model": model, "method": method})

    async def answer(request: gr.Request, name: str, fields: dict[str, object]) -> dict[str, Any]:
        question = next(each for each in QUESTIONS if each.name == name)
        route = f"/{name}"
        await services.served.wait()
        with refusals(services, route):
            asked = await read_question(services, question, question.body.model_validate(fields))
        with refusals(services):
            async with ask(services, question, asked, client_of(request), route) as asking:
                answer: dict[str, Any] = orjson.loads(await asking.answer())
        return answer

    return [knockout]
