"""The endpoint ``/train`` that gradio_client, curl and MCP call."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import gradio as gr

from model import InputError
from model.serving.engine import Busy, Closed

from .ask import ask_with_text
from .sizes import seconds_of
from .trainings import Trainings
from .visitors import COOKIE, new_visitor

SHOWN = {"loss", "sample", "end", "state"}  # the kinds of events that a caller gets
ARCHIVE = "train/model.zip"


def add_train_endpoint(trainings: Trainings) -> None:
    """Add it to the Blocks that are being built."""

    async def train(text: str = "", size: str = "small") -> AsyncIterator[dict[str, Any]]:
        """Train a small GPT on a text, for some seconds, and report how it learns.

        Args:
            text: The text to learn from, at least 1,000 characters, no longer than a request to this server may be.
            size: "small", "medium" or "large", as far as this server offers them.

        Returns:
            The newest of what is known: "state", "step", "validation_loss" in nats per character, "sample", and in the
            end "loss" on the whole held-out tenth. "cookie" is the key to the model: sent as a cookie, it downloads
            "download", for a few minutes.
        """
        try:
            ask = ask_with_text(trainings.limits, size, text.encode())
            visitor = new_visitor()
            training = trainings.start(visitor, ask)
        except (InputError, UnicodeEncodeError) as error:
            raise gr.Error(str(error), print_exception=False) from None
        except Busy:
            raise gr.Error(
                "Too many trainings are waiting. Try again in a few minutes.", print_exception=False
            ) from None
        except Closed:
            raise gr.Error("The server is shutting down.", print_exception=False) from None
        progress = gr.Progress()  # not a parameter: gr.api would take it for an input
        seconds = seconds_of(ask.size, trainings.limits)
        known: dict[str, Any] = {"cookie": f"{COOKIE}={visitor}", "download": ARCHIVE, "name": training.name}
        async with aclosing(trainings.follow(training)) as events:
            async for event in events:
                if event is None or event["kind"] not in SHOWN | {"step"}:
                    continue
                if event["kind"] == "step":
                    progress(min(1.0, event["seconds"] / seconds), desc=training.state)
                if event["kind"] in SHOWN:
                    known |= {("sample" if k == "text" else k): v for k, v in event.items() if k != "kind"}
                    yield known
        if training.state == "failed":
            raise gr.Error(known.get("why", "Training failed."), print_exception=False)

    gr.api(train, api_name="train")  # type: ignore[attr-defined]
