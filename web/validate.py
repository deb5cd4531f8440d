"""What a visitor or a program asks for, checked once for all: page, API and MCP."""

import secrets
from dataclasses import dataclass
from typing import Any

from model import LoadedModel, PromptError
from model.generate import Draft
from model.sampling import SamplingSettings

from .settings import Limits
from .shelf import Shelf

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "seed")


class BadInput(ValueError):
    """A value that cannot be used; ``field`` names it, the message is for the person who sent it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Request:
    """A text to be written, with every value checked."""

    name: str
    gpt: LoadedModel
    ids: list[int]
    prompt: str
    max_new_tokens: int
    sampling: dict[str, Any]
    context_shift: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """All that the same text can be written again from, as the page's controls have it."""
        numbers = self.sampling | {"top_k": self.sampling["top_k"] or 0}
        return {"prompt": self.prompt, "max_new_tokens": self.max_new_tokens} | numbers

    def draft(self, extra: int = 0) -> Draft:
        """It as the engine takes it, with ``extra`` tokens more than asked for."""
        sampling = {name: value for name, value in self.sampling.items() if name != "seed"}
        settings, seed = SamplingSettings(**sampling), self.sampling["seed"]
        n = self.max_new_tokens + extra
        return self.gpt.draft(self.ids, n, settings, seed=seed, context_shift=self.context_shift)


def read_request(shelf: Shelf, prompt: Any, model: Any, *settings: Any) -> Request:
    """A text to be written from a prompt; ``settings`` are those of ``read_settings``. Raises ``BadInput``."""
    name, gpt = read_model(shelf, model)
    limits = shelf.settings.limits
    return read_settings(limits, name, gpt, read_prompt(limits, gpt, prompt), prompt, *settings)


def read_settings(
    limits: Limits,
    name: str,
    gpt: LoadedModel,
    ids: list[int],
    prompt: str,
    max_new_tokens: Any,
    temperature: Any,
    top_k: Any,
    top_p: Any,
    min_p: Any,
    seed: Any,
    context_shift: Any = False,
) -> Request:
    """Raises ``BadInput`` for the first value that cannot be used. ``top_k`` 0 or None means all tokens."""
    if not isinstance(context_shift, bool):
        raise BadInput("context_shift", f"context_shift must be true or false, found {shorten(context_shift)}")
    max_new_tokens = whole(max_new_tokens)
    if type(max_new_tokens) is not int or not 1 <= max_new_tokens <= limits.max_new_tokens:
        most = f"{limits.max_new_tokens:,}"
        message = f"max_new_tokens must be an integer from 1 to {most}, found {shorten(max_new_tokens)}"
        raise BadInput("max_new_tokens", message)
    sampling = {
        "temperature": temperature,
        "top_k": None if top_k == 0 and type(top_k) is not bool else whole(top_k),
        "top_p": top_p,
        "min_p": min_p,
        "seed": secrets.randbits(32) if seed is None else whole(seed),
    }
    request = Request(name, gpt, ids, prompt, max_new_tokens, sampling, context_shift)
    try:
        request.draft()
    except ValueError as error:
        field = next((field for field in SAMPLING if str(error).startswith(field)), "prompt")
        raise BadInput(field, str(error)) from None
    return request


def read_model(shelf: Shelf, name: Any) -> tuple[str, LoadedModel]:
    """The model of that name, the first one where no name is given."""
    if not shelf.ready.done():
        raise BadInput("model", "The checkpoints are still loading. Try again in a moment.")
    if not shelf.models:
        raise BadInput("model", " ".join(shelf.problems()))
    if name is None or name == "":
        return next(iter(shelf.models.items()))
    if isinstance(name, str) and name in shelf.failures:
        raise BadInput("model", f"{name} cannot be served. {shelf.failures[name]}")
    if not isinstance(name, str) or name not in shelf.models:
        known = ", ".join(shelf.models)
        raise BadInput("model", f"There is no model {shorten(name)}. There is: {known}")
    return name, shelf.models[name]


def read_prompt(limits: Limits, gpt: LoadedModel, prompt: Any) -> list[int]:
    """Token ids of a prompt that is text, not too long, and that the model can read."""
    check_text(limits, prompt)
    try:
        return gpt.read_prompt(prompt)
    except PromptError as error:
        raise BadInput("prompt", str(error)) from None


def read_text(limits: Limits, gpt: LoadedModel, text: Any) -> list[int]:
    """Token ids of any text in the model's alphabet, longer than its context or empty too."""
    check_text(limits, text)
    try:
        return gpt.tokenizer.encode(text)
    except PromptError as error:
        raise BadInput("prompt", str(error)) from None


def check_text(limits: Limits, text: Any) -> None:
    if not isinstance(text, str):
        raise BadInput("prompt", f"The prompt must be text, found {shorten(text)}.")
    if len(text) > limits.max_prompt_characters:
        message = f"The prompt has {len(text):,} characters, at most {limits.max_prompt_characters:,} are taken."
        raise BadInput("prompt", message)


def read_head(limits: Limits, gpt: LoadedModel, layer: Any, head: Any, n_tokens: int) -> tuple[int, int]:
    """A layer and a head that the model has, and few enough weights to answer with."""
    for field, value, count in (("layer", layer, gpt.config.n_layer), ("head", head, gpt.config.n_head)):
        if type(whole(value)) is not int or not 0 <= value < count:
            raise BadInput(field, f"{field} must be an integer from 0 to {count - 1}, found {shorten(value)}")
    most = limits.max_json_weights
    if n_tokens**2 > most:
        message = f"The prompt has {n_tokens:,} tokens, which is {n_tokens**2:,} weights; at most {most:,}."
        raise BadInput("prompt", message)
    return whole(layer), whole(head)


def whole(value: Any) -> Any:
    """JSON and sliders may give 3.0 for 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + " ..."
