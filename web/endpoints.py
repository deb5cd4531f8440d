"""The endpoints that gradio_client, curl and MCP call: /generate, /attention, /tokenize and /models."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr

from model import Step
from model.engine import Busy, Closed
from model.ticket import Ticket

from .engines import Engines, client_of
from .errors import as_api_error
from .job import Job
from .settings import UPDATE_SECONDS
from .traces import read_one
from .validate import BadInput, read_head, read_model, read_prompt, read_request, read_text
from .workspace import Parts


def add_endpoints(parts: Parts) -> None:
    """Add the public endpoints to the Blocks that are being built."""
    shelf, engines, limits = parts.shelf, parts.engines, parts.shelf.settings.limits

    async def generate(
        request: gr.Request,
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
        with refusals(engines, "/generate"):
            asked = read_request(shelf, prompt, model, max_new_tokens, temperature, top_k, top_p, min_p, seed)
        job, text = Job(), ""
        ticket = Ticket(asked.draft(), job.sink(), client_of(request), deadline=engines.deadline())
        try:
            with refusals(engines):
                engines.start(job, asked.gpt, ticket)
            async for events in job.follow(UPDATE_SECONDS):
                text += "".join(event.text for _, event in events if isinstance(event, Step))
                yield text
        finally:
            engines.leave(job, "/generate")

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
        with refusals(engines, "/attention"):
            _, gpt = read_model(shelf, model)
            ids = read_prompt(limits, gpt, prompt)
            layer, head = read_head(limits, gpt, layer, head, len(ids))
            parts.traces.check_line()
            weights = await parts.traces.compute(read_one, gpt, ids, layer, head)
        return {"tokens": [token.text for token in gpt.tokens(ids)], "attention": weights}

    async def tokenize(text: str = "", model: str | None = None) -> list[dict[str, Any]]:
        """The tokens that a model makes of a text.

        Args:
            text: Any text.
            model: The name of a model that is served here; the first one by default.

        Returns:
            The id and the text of each token.
        """
        await shelf.wait()
        with refusals(engines, "/tokenize"):
            _, gpt = read_model(shelf, model)
            return [token._asdict() for token in gpt.tokens(read_text(limits, gpt, text))]

    async def models() -> list[dict[str, Any]]:
        """The models that are served here, each with its sizes."""
        await shelf.wait()
        return [describe(name, gpt) for name, gpt in shelf.models.items()]

    for endpoint in (generate, attention, tokenize, models):
        gr.api(endpoint, api_name=endpoint.__name__)


def describe(name: str, gpt: Any) -> dict[str, Any]:
    """A model as programs see it."""
    config = gpt.config
    return {
        "id": name,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_embd": config.n_embd,
        "vocab_size": config.vocab_size,
        "context_length": config.context_length,
        "n_parameters": config.n_parameters,
        "tokenizer": gpt.tokenizer.kind,
        "dtype": str(gpt.dtype).removeprefix("torch."),
        "sha256": gpt.sha256,
    }


@contextmanager
def refusals(engines: Engines, route: str = "") -> Iterator[None]:
    """What is refused, as the error that Gradio shows to whoever called; counted for ``route``."""
    try:
        engines.check_open()
        yield
    except (BadInput, Busy, Closed) as error:
        told = as_api_error(error)
        if route:
            engines.metrics.count(route, told.outcome)
        raise gr.Error(told.message, print_exception=False) from None
