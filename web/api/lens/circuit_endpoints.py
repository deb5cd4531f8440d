"""The questions about how heads work together, as endpoints for gradio_client, curl and MCP."""

from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

Endpoint = Callable[..., Awaitable[Any]]
Ask = Callable[[gr.Request, str, dict[str, object]], Awaitable[dict[str, Any]]]


def circuit_endpoints(ask: Ask) -> list[Endpoint]:
    """The endpoints; each is called as its function is named, and gets its answer from ``ask``."""

    async def patch(
        request: gr.Request,
        prompt: str = "",
        corrupted: str = "",
        answer: str | None = None,
        wrong: str | None = None,
        model: str = "",
        direction: str = "denoise",
        heads: list[list[int]] | None = None,
    ) -> dict[str, Any]:
        """Which heads and positions carry what two prompts differ in.

        Args:
            prompt: The clean prompt, which leads to the answer.
            corrupted: A prompt of as many tokens that leads to the wrong token.
            answer: The token that the clean prompt leads to, its space included; by default the most probable.
            wrong: The token that the corrupted prompt leads to; by default the most probable other one.
            model: The name of a model that is served here; the first one by default.
            direction: "denoise" puts activations of the clean prompt into a run of the corrupted one, "noise" those of
                the corrupted prompt into a run of the clean one.
            heads: Heads to patch together, each as [layer, head].

        Returns:
            What the logit difference is with each head, and with the residual stream at each layer and position, taken
            from the other prompt, and with all heads that are named at once: 0 is corrupted, 1 is clean.
        """
        fields: dict[str, object] = {"prompt": prompt, "corrupted": corrupted, "answer": answer, "wrong": wrong}
        return await ask(request, "patch", fields | {"model": model, "direction": direction, "heads": heads})

    async def composition(request: gr.Request, model: str = "", centred: bool = False) -> dict[str, Any]:
        """How strongly the weights of each head read what each earlier head writes.

        Args:
            model: The name of a model that is served here; the first one by default.
            centred: Whether to fold in the layer norm's subtraction of the mean as well as its gain.

        Returns:
            Q-, K- and V-composition scores by later layer and head, then earlier layer and head, and what random heads
            of this shape score.
        """
        return await ask(request, "composition", {"model": model, "centred": centred})

    async def paths(
        request: gr.Request, prompt: str = "", model: str = "", layer: int = 1, head: int = 0
    ) -> dict[str, Any]:
        """What changes in a head if it does not see what one earlier head wrote.

        Args:
            prompt: The text to read; it is not continued.
            model: The name of a model that is served here; the first one by default.
            layer: The layer of the later head, counted from 0.
            head: The later head, counted from 0.

        Returns:
            For each earlier layer and head, how much of the attention moves when its path into the queries or the keys
            is cut, and how much of the output changes when it is cut from the values.
        """
        return await ask(request, "paths", {"prompt": prompt, "model": model, "layer": layer, "head": head})

    async def difference(
        request: gr.Request, prompt: str = "", other: str | None = None, model: str = "", other_model: str = ""
    ) -> dict[str, Any]:
        """How differently each head attends in two texts, two models or two training steps.

        Args:
            prompt: The text to read; it is not continued.
            other: Another text; by default the same.
            model: The name of a model that is served here; the first one by default.
            other_model: Another model of the same shape, or a training step (NAME@STEP); by default the same.

        Returns:
            The mean total variation distance of each head's attention weights, and all heads, the most different first.
        """
        fields: dict[str, object] = {"prompt": prompt, "other": other, "model": model, "other_model": other_model}
        return await ask(request, "difference", fields)

    async def passages(request: gr.Request, text: str = "", model: str = "") -> dict[str, Any]:
        """Where in a long text each head acts most strongly.

        Args:
            text: The text to read, of up to a megabyte.
            model: The name of a model that is served here; the first one by default.

        Returns:
            For each head its strongest passages, a histogram and what the passages share; and a map of all heads.
        """
        return await ask(request, "passages", {"text": text, "model": model})

    return [patch, composition, paths, difference, passages]
