"""Another continuation of a text: what the page sends to ask for one, checked."""

from collections.abc import Mapping
from dataclasses import dataclass

from model import GenerationRequest, InputError, LoadedModel
from model.errors import InvalidValue, shorten

from ..serving.inputs import read_index, read_options, whole
from ..serving.served_models import ServedModels
from ..settings import MAX_RUN_ID


@dataclass(frozen=True)
class Branch:
    """``request`` writes on from the first text up to token ``at`` and another token in its place."""

    loaded: LoadedModel
    request: GenerationRequest
    of: str  # the run that it left, as the page calls it
    n_prompt: int
    instead: int | None  # the id of the token that the first text has there

    @property
    def prompt(self) -> str:
        """What was typed of it."""
        return self.loaded.tokenizer.decode(self.request.prompt[: self.n_prompt])

    @property
    def pointer(self) -> dict[str, object]:
        """What the page says about it."""
        *before, token = self.loaded.tokens(self.request.prompt)
        instead = "" if self.instead is None else self.loaded.tokens([self.instead])[0].text
        return {"of": self.of, "at": len(before), "token": token.text, "instead": instead}


def read_branch(served: ServedModels, sent: object, fields: Mapping[str, object]) -> Branch:
    """From an event's data, which anybody can make up. Raises ``InputError`` for what cannot be used.

    ``sent`` has the keys of, sha256, model, ids (the last one is the other token), n_prompt and instead; ``fields`` are
    those of ``read_options``.
    """
    if not isinstance(sent, dict):
        raise InputError("branch", f"a branch is an object, found {shorten(sent)}")
    loaded = served.with_hash(str(sent.get("sha256")), str(sent.get("model")))
    if not loaded:
        raise InputError("sha256", "The model that wrote this text is no longer served here.")
    ids, most = sent.get("ids"), loaded.config.context_length
    if not isinstance(ids, list):
        raise InvalidValue("ids", ids, "a list of token ids")
    if not 2 <= len(ids) <= most:
        message = f"A branch needs 2 to {most} tokens, the context of the model; found {len(ids)}."
        raise InputError("ids", message)
    ids = loaded.read_prompt([whole(token_id) for token_id in ids])
    n_prompt = read_index("n_prompt", sent.get("n_prompt"), 0, len(ids) - 1)
    instead = sent.get("instead")
    if instead is not None:
        instead = read_index("instead", instead, 0, loaded.config.vocab_size - 1)
    of = sent.get("of")
    if not isinstance(of, str) or len(of) > MAX_RUN_ID:
        raise InvalidValue("of", of, "the id of a run")
    return Branch(loaded, read_options(served.settings.limits, loaded, ids, fields), of, n_prompt, instead)
