"""The questions as endpoints for gradio_client, curl and MCP."""

from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from ...services import Services
from ...serving.engines import client_of
from ..guards import leave, refusals
from .circuit_endpoints import circuit_endpoints
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

    async def removal(
        request: gr.Request,
        heads: list[list[int]],
        prompt: str = "",
        model: str | None = None,
        method: str = "zero",
    ) -> dict[str, Any]:
        """How much worse a text is predicted without several heads of a model at once.

        Args:
            heads: The heads to remove together, each as [layer, head].
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            method: "zero" replaces a head's output by zeros, "mean" by its mean over this text.

        Returns:
            The loss of the text in nats per token, the loss without these heads minus that, and both for each token.
        """
        fields: dict[str, object] = {"prompt": prompt, "model": model, "method": method, "heads": heads}
        return await answer(request, "removal", fields)

    async def roles(request: gr.Request, model: str | None = None) -> dict[str, Any]:
        """What each head of a model looks at on random tokens that are repeated once, and whether it copies.

        Args:
            model: The name of a model that is served here; the first one by default.

        Returns:
            For each layer and head a label, its scores, and what uniform attention or random weights would score.
        """
        return await answer(request, "roles", {"model": model})

    async def attribution(
        request: gr.Request,
        prompt: str = "",
        model: str | None = None,
        position: int | None = None,
        token: int | None = None,
        against: int | str | None = None,
    ) -> dict[str, Any]:
        """What every head, MLP, the embedding and the biases of a model add to the logit of a next token.

        Args:
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            position: The token after which it is predicted, counted from 0; the last by default.
            token: The id of the next token; the most probable one by default.
            against: Another token's id, or "likeliest", to take the difference of the two logits apart.

        Returns:
            The logit, and its parts, which add up to it.
        """
        fields: dict[str, object] = {
            "prompt": prompt,
            "model": model,
            "position": position,
            "token": token,
            "against": against,
        }
        return await answer(request, "attribution", fields)

    async def head_lenses(
        request: gr.Request,
        prompt: str = "",
        model: str | None = None,
        layer: int = 0,
        head: int = 0,
        position: int | None = None,
        token: int | None = None,
    ) -> dict[str, Any]:
        """What one head takes from each token for one prediction, in four measures.

        Args:
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            layer: The layer, counted from 0.
            head: The head, counted from 0.
            position: The token after which it is predicted, counted from 0; the last by default.
            token: The id of the next token; the most probable one by default.

        Returns:
            For each key its attention weight, value-weighted norm, part of the logit, and the change of the loss when
            that edge is cut; their sums, rank correlations, and the change of the loss without the head.
        """
        fields: dict[str, object] = {
            "prompt": prompt,
            "model": model,
            "layer": layer,
            "head": head,
            "position": position,
            "token": token,
        }
        return await answer(request, "head", fields)

    async def logit_lens(
        request: gr.Request, prompt: str = "", model: str | None = None, top: int = 5
    ) -> dict[str, Any]:
        """What each layer of a model would have predicted at each position, had it been the last.

        Args:
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            top: How many of the most probable tokens to name.

        Returns:
            After the embeddings and after each layer, for each position: the most probable tokens, and the divergence
            of the model's own answer from them in nats.
        """
        return await answer(request, "logit-lens", {"prompt": prompt, "model": model, "top": top})

    async def ledger(
        request: gr.Request,
        prompt: str = "",
        model: str | None = None,
        layer: int = 0,
        head: int = 0,
        query: int | None = None,
        key: int | None = None,
        token: int | None = None,
    ) -> dict[str, Any]:
        """Every number between one query, one key of a head and the logit of the next token.

        Args:
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            layer: The layer, counted from 0.
            head: The head, counted from 0.
            query: The token that looks, counted from 0; the last by default.
            key: The token it looks at; by default the one with the largest attention weight.
            token: The id of the token after the query; the most probable one by default.

        Returns:
            The vectors, products, sums, the softmax and the parts of the logit, and how far they are from the model's.
        """
        fields: dict[str, object] = {"prompt": prompt, "model": model, "layer": layer, "head": head, "token": token}
        return await answer(request, "ledger", fields | {"query": query, "key": key})

    async def answer(request: gr.Request, name: str, fields: dict[str, object]) -> dict[str, Any]:
        question = next(each for each in QUESTIONS if each.name == name)
        route = f"/{name}"
        await services.served.wait()
        with refusals(services, route):
            body, client = question.body.model_validate(fields), client_of(request)
            asked = await read_question(services, question, body, client)
        with refusals(services):
            async with ask(services, question, asked, client_of(request), route) as asking:
                found: dict[str, Any] = leave(services, request, await asking.answer())
        return found

    return [roles, knockout, removal, attribution, head_lenses, logit_lens, ledger, *circuit_endpoints(answer)]
