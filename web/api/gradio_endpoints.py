"""The endpoints that gradio_client, curl and MCP call: /generate, /attention, /tokenize, /models, and Ask's."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import gradio as gr
import orjson

from model import LoadedModel, Step

from ..client import client_of
from ..services import Services
from ..serving.inputs import parse_head, parse_prompt, parse_request, parse_text
from ..settings import Limits
from .attention_answer import head_weights
from .guards import model_to_read_with, refusals, store_answer
from .lens import lens_endpoints
from .model_info import model_info

EVENT_SECONDS = 0.2  # between events with a text that has grown; each takes time away from writing


def endpoints(services: Services) -> list[Callable[..., Any]]:
    """The public endpoints, each with the name of its function."""
    served, limits = services.served, services.limits

    async def generate(
        request: gr.Request,
        prompt: str,
        model: str | None = None,
        max_new_tokens: int = 100,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
    ) -> AsyncIterator[str]:
        """Continue a text. Streams the text generated so far, without the prompt.

        Args:
            prompt: The text to continue.
            model: The name of a served model; the first model by default.
            max_new_tokens: The maximum number of tokens to write; fewer if the model's context is full.
            temperature: 0 always takes the most probable token; higher values write more freely.
            top_k: Sample only among this many of the most probable tokens, plus ties; 0 means all.
            top_p: Sample among the fewest most probable tokens whose probabilities reach this sum.
            min_p: Leave out tokens less than this fraction as probable as the most probable one.
            seed: The same seed gives the same text; null draws a new seed.
        """
        sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        fields = {"prompt": prompt, "model": model, "max_new_tokens": max_new_tokens, "seed": seed} | sampling
        await served.wait()
        with refusals(services, "/generate"):
            loaded, asked = parse_request(served, fields)
            asked = replace(asked, logprobs=False)
            services.engines.check(loaded, asked)
        in_event = isinstance(request, gr.Request)
        generation = services.engines.generate(
            loaded, asked, client=client_of(request), route="/generate", pace=EVENT_SECONDS, in_event=in_event
        )
        text = ""
        with refusals(services):
            async with generation:
                async for events in generation:
                    text += "".join(event.text for _, event in events if isinstance(event, Step))
                    yield text

    async def attention(
        request: gr.Request, prompt: str, model: str | None = None, layer: int = 0, head: int = 0
    ) -> dict[str, Any]:
        """The attention weights of one head over a text.

        Args:
            prompt: The text to read.
            model: The name of a served model, or a training step (NAME@STEP); the first model by default.
            layer: The layer, counted from 0.
            head: The head within the layer, counted from 0.

        Returns:
            The texts of the tokens, and for each token (query) its attention weight to each token (key).
        """
        await served.wait()
        with refusals(services, "/attention"):
            client = client_of(request)
            loaded = await model_to_read_with(services, model, client)
            ids = parse_prompt(limits, loaded, prompt)
            layer, head = parse_head(limits, loaded, layer, head, len(ids))
            answer = await services.trace_pool.run(client, head_weights, loaded, ids, layer, head)
        placeholder: dict[str, Any] = store_answer(services, request, answer)
        return placeholder

    async def tokenize(request: gr.Request, text: str, model: str | None = None) -> list[dict[str, Any]]:
        """The tokens of a text in a model's vocabulary.

        Args:
            text: Any text.
            model: The name of a served model; the first model by default.

        Returns:
            The id and the text of each token.
        """
        await served.wait()
        with refusals(services, "/tokenize"):
            loaded = served.find(model)
            answer = await asyncio.to_thread(tokens_in_json, limits, loaded, text)
        placeholder: list[dict[str, Any]] = store_answer(services, request, answer)
        return placeholder

    async def models() -> list[dict[str, Any]]:
        """The served models, each with its sizes."""
        await served.wait()
        return [model_info(loaded) for loaded in served.models.values()]

    return [generate, attention, tokenize, models, *lens_endpoints(services)]


def tokens_in_json(limits: Limits, loaded: LoadedModel, text: str) -> bytes:
    """The tokens of a text, as JSON. Raises ``InputError``."""
    return orjson.dumps([token._asdict() for token in loaded.tokens(parse_text(limits, loaded, text))])
