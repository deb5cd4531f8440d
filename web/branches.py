"""Another continuation of a text: what the page sends to ask for one, checked."""

from dataclasses import dataclass
from typing import Any

from model import PromptError

from .settings import MAX_RUN_ID
from .shelf import Shelf
from .validate import BadInput, Request, read_settings, shorten, whole


@dataclass(frozen=True)
class Branch:
    """``request`` writes on from the first text up to token ``at`` and another token in its place."""

    request: Request
    of: str  # the run that it left, as the page calls it
    n_prompt: int
    instead: int | None  # the id of the token that the first text has there

    @property
    def at(self) -> int:
        return len(self.request.ids) - 1

    @property
    def pointer(self) -> dict[str, Any]:
        """What the page says about it."""
        gpt = self.request.gpt
        (token,) = gpt.tokens(self.request.ids[-1:])
        instead = "" if self.instead is None else gpt.tokens([self.instead])[0].text
        return {"of": self.of, "at": self.at, "token": token.text, "instead": instead}


def read_branch(shelf: Shelf, sent: Any, *settings: Any) -> Branch:
    """From an event's data, which anybody can make up. Raises ``BadInput`` for what cannot be used.

    ``sent`` has the keys of, sha256, model, ids (the last one is the other token), n_prompt and instead; ``settings``
    are those of ``read_settings``.
    """
    if not isinstance(sent, dict):
        raise BadInput("branch", f"a branch is an object, found {shorten(sent)}")
    found = shelf.with_hash(str(sent.get("sha256")), str(sent.get("model")))
    if not found:
        raise BadInput("sha256", "The model that wrote this text is no longer served here.")
    name, gpt = found
    ids = sent.get("ids")
    if not isinstance(ids, list):
        raise BadInput("ids", f"ids must be a list of token ids, found {shorten(ids)}")
    if not 2 <= len(ids) <= gpt.config.context_length:
        message = f"A branch needs 2 to {gpt.config.context_length} tokens, the context of the model; found {len(ids)}."
        raise BadInput("ids", message)
    try:
        ids = gpt.read_prompt([whole(token_id) for token_id in ids])
    except PromptError as error:
        raise BadInput("ids", str(error)) from None
    n_prompt = read_number("n_prompt", sent.get("n_prompt"), 0, len(ids) - 1)
    instead = sent.get("instead")
    if instead is not None:
        instead = read_number("instead", instead, 0, gpt.config.vocab_size - 1)
    of = sent.get("of")
    if not isinstance(of, str) or len(of) > MAX_RUN_ID:
        raise BadInput("of", f"of must be the id of a run, found {shorten(of)}")
    prompt = gpt.tokenizer.decode(ids[:n_prompt])
    request = read_settings(shelf.settings.limits, name, gpt, ids, prompt, *settings)
    return Branch(request, of, n_prompt, instead)


def read_number(field: str, value: Any, least: int, most: int) -> int:
    value = whole(value)
    if type(value) is not int or not least <= value <= most:
        raise BadInput(field, f"{field} must be an integer from {least} to {most}, found {shorten(value)}")
    return value
