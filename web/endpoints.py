"""The endpoints that gradio_client, curl and MCP call: /generate and /attention."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr

from model import Step

from .shelf import Shelf
from .validate import BadInput, read_head, read_model, read_prompt, read_request
from .writer import Writer


def add_endpoints(shelf: Shelf, writer: Writer) -> None:
    """Add the public endpoints to the Blocks that are being built."""

    async def generate(
        prompt: str = "",
        model: str | None = None,
        max_new_tokens: int = 100,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        seed: int | None = None,
    ) -> AsyncIterator[str]:
        """Continue a text. Streams the generated text so far, without the prompt.

        Args:
            prompt: The text to continue.
            model: The name of a model that is served here; the first one by default.
            max_new_tokens: How many tokens to write at most; fewer where the model's context is full.
            temperature: 0 always takes the most probable token, higher values write more freely.
            top_k: Draw among this many most probable tokens only; 0 or null means all.
            top_p: Draw among the fewest most probable tokens whose probabilities reach this sum.
            min_p: Leave out tokens less than this fraction as probable as the most probable one.
            seed: The same seed writes the same text; null draws a new one.
        """
        await shelf.wait()
        with refusals():
            request = read_request(shelf, prompt, model, max_new_tokens, temperature, top_k, top_p, min_p, seed)
        pieces: list[str] = []

        def take(step: Step, last: bool) -> None:
            pieces.append(step.text)

        job = writer.start(request.steps(), take)
        try:
            async for _ in job.progress():
                yield "".join(pieces)
            yield "".join(pieces)
        finally:
            job.cancel()

    async def attention(prompt: str = "", model: str | None = None, layer: int = 0, head: int = 0) -> dict[str, Any]:
        """The attention weights of one head while it reads a text.

        Args:
            prompt: The text to read.
            model: The name of a model that is served here; the first one by default.
            layer: The layer, counted from 0.
            head: The head within the layer, counted from 0.

        Returns:
            The texts of the tokens, and for each token (query) how much it looks at each token (key).
        """
        await shelf.wait()
        with refusals():
            _, gpt = read_model(shelf, model)
            ids = read_prompt(gpt, prompt)
            layer, head = read_head(gpt, layer, head, len(ids))
        trace = await asyncio.to_thread(gpt.trace, ids, layers=[layer], heads=[head])
        return {"tokens": [token.text for token in trace.tokens], "attention": trace.attention[0, 0].tolist()}

    gr.api(generate, api_name="generate")
    gr.api(attention, api_name="attention")


@contextmanager
def refusals() -> Iterator[None]:
    """``BadInput`` as the error that Gradio shows to whoever called."""
    try:
        yield
    except BadInput as error:
        raise gr.Error(str(error), print_exception=False) from None
