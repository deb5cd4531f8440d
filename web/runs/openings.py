"""The texts that the page shows before a visitor has written one: one short text per model, shared by all.

A checkpoint may declare its own in ``opening.json`` (``DeclaredOpening``). For any other model a text is written, and a
head with a clear pattern in it is found.
"""

import functools
import itertools
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from model import CheckpointError, InputError, LoadedModel, PromptError, SamplingSettings
from model.checkpoint.files import read_json
from model.errors import InvalidValue
from model.generate import generate
from model.lens.opening import FittingHead, cut_at_open_choice, fitting_heads, head_to_open
from model.lens.text_pass import TextPass
from model.modules.head_tensors import Head

from ..serving.bounded_cache import BoundedCache
from ..serving.inputs import settings_of
from ..serving.served_models import ServedModels
from .run import Run
from .store import Runs

OPENS_ON = "stories-bpe"  # the model that the page opens on if it is served; otherwise it opens on the first one
OPENING_TOKENS = 120  # in an opening text, which is written once for each model when the server starts
MIN_OPENING_TOKENS = 60  # in an opening, unless its checkpoint declares one or its context is short
MAX_OPENING_BYTES = 10_000  # of a declared opening
MAX_LABEL = 24  # characters
OPENING_SEED = 1
OPENING_TEMPERATURE = 0.8
OPENING_PROMPTS = ("ROMEO:", "Once upon a time", "The ", "\n")  # the first that the model knows is used, or can read
# In nats per character. A prompt with a smaller loss counts as known; text like the model's own has about 1.
MAX_KNOWN_PROMPT_LOSS = 2.5

DECLARED = "opening.json"
FIRST_SCREEN = "first_screen.json"  # what the page draws of it before the model is loaded (web/page/first_screen.py)
log = logging.getLogger(__name__)


class CannotWrite(Exception):
    """A model that cannot even write its opening."""


class DeclaredOpening(BaseModel):
    """The opening that a checkpoint declares: ``tokens`` tokens written after ``prompt``, with ``head`` open.

    ``label`` says on the page, in a word or two, what this model writes.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: str
    tokens: int = Field(ge=1)
    head: list[int] = Field(min_length=2, max_length=2)  # layer and head
    seed: int = OPENING_SEED
    temperature: float = OPENING_TEMPERATURE
    label: str = Field("", max_length=MAX_LABEL)


@functools.lru_cache(maxsize=64)
def read_declared(source: Path | str) -> DeclaredOpening | None:
    """The opening that the checkpoint in this folder declares; None if there is none, or it cannot be read."""
    path = Path(source) / DECLARED
    if not os.path.isfile(path):
        return None
    try:
        return DeclaredOpening.model_validate(read_json(path, MAX_OPENING_BYTES))
    except CheckpointError as error:
        log.warning("%s", error)
    except ValidationError as error:
        first = error.errors()[0]
        log.warning("%s: %s: %s", path, ".".join(map(str, first["loc"])) or "the opening", first["msg"])
    return None


@dataclass(frozen=True)
class Opening:
    """A text and the head that the page opens with it."""

    settings: dict[str, object]  # everything that determines the text
    ids: list[int]
    n_prompt: int
    head: Head
    suggested_heads: list[FittingHead]
    is_declared: bool = False


class Openings:
    """The opening of each model, written when it is first asked for."""

    def __init__(self, served: ServedModels, runs: Runs) -> None:
        self.served, self.runs = served, runs
        self.written = BoundedCache[str, Opening]()  # by name, one for each model that is served

    @property
    def first(self) -> str | None:
        """The model that the page opens on; None if no model is served."""
        models = self.served.models if self.served.ready.done() else self.served.sources
        return OPENS_ON if OPENS_ON in models else next(iter(models), None)

    def declared(self, name: str) -> DeclaredOpening | None:
        return read_declared(self.served.sources.get(name, ""))

    def write_all(self) -> None:
        """Write the openings of all models in advance. A model that cannot write one is no longer served."""
        for name in list(self.served.models):
            with suppress(CannotWrite):
                self.get(name)

    def get(self, name: str) -> tuple[Opening, Run]:
        """The opening of a model and its run, which is recomputed if it was evicted.

        Raises ``CannotWrite`` if the model fails; it is then no longer served.
        """
        loaded = self.served.models[name]

        def write() -> Opening:
            try:
                return write_declared(loaded, self.declared(name)) or write_opening(loaded)
            except Exception as error:  # its logits overflow, or there is not enough memory
                self.served.fail(name, error)
                raise CannotWrite(name) from error

        opening = self.written.get_or_compute(name, write)
        return opening, self.runs.recompute(loaded, opening.ids, opening.n_prompt)

    def forget(self, name: str) -> None:
        """Remove the opening of a model that is no longer served."""
        self.written.remove(lambda other, _: other == name)


def write_declared(loaded: LoadedModel, declared: DeclaredOpening | None) -> Opening | None:
    """The declared opening; None if there is none, or the model cannot write it."""
    if declared is None:
        return None
    config = loaded.config
    try:
        ids = loaded.parse_prompt(declared.prompt)
        layer, head = declared.head
        if not (0 <= layer < config.n_layer and 0 <= head < config.n_head):
            raise InvalidValue("head", declared.head, f"one of {config.n_layer} layers of {config.n_head} heads")
        if len(ids) + declared.tokens > config.context_length:
            most = config.context_length - len(ids)
            raise InvalidValue("tokens", declared.tokens, f"at most {most} after this prompt")
        sampling = SamplingSettings(temperature=declared.temperature)
        # More than is shown, so that writing the text again continues it.
        request = loaded.request(ids, max(OPENING_TOKENS, declared.tokens), sampling=sampling, seed=declared.seed)
    except InputError as error:
        log.warning("%s: its %s is not used: %s", loaded.name, DECLARED, error)
        return None
    steps = itertools.islice(generate(loaded.gpt, loaded.begin(request)), declared.tokens)
    text = ids + [step.token_id for step in steps if step.token_id not in loaded.end_token_ids]
    suggested = fitting_heads(loaded.trace_with(loaded.gpt, text).attention, text)
    return Opening(settings_of(request, declared.prompt), text, len(ids), (layer, head), suggested, is_declared=True)


def write_opening(loaded: LoadedModel) -> Opening:
    prompt, ids = opening_prompt(loaded)
    half = loaded.config.context_length // 2  # the other half is left to continue the text
    n_new = min(OPENING_TOKENS, half - len(ids))
    sampling = SamplingSettings(temperature=OPENING_TEMPERATURE)
    request = loaded.request(ids, max(n_new, 1), sampling=sampling, seed=OPENING_SEED)
    steps = generate(loaded.gpt, loaded.begin(request)) if n_new > 0 else ()
    text = ids + [step.token_id for step in steps if step.token_id not in loaded.end_token_ids]
    trace = loaded.trace_with(loaded.gpt, text)
    end = cut_at_open_choice(trace.logits, first=len(ids) + min(MIN_OPENING_TOKENS, max(n_new, 0) // 2))
    attention = trace.attention[:, :, :end, :end]
    suggested = fitting_heads(attention, text[:end])
    return Opening(settings_of(request, prompt), text[:end], len(ids), head_to_open(attention, suggested), suggested)


def opening_prompt(loaded: LoadedModel) -> tuple[str, list[int]]:
    """The first of the opening prompts that looks like the model's training text.

    Otherwise, the first one that the model can read, or else the model's first token.
    """
    readable = []
    for prompt in OPENING_PROMPTS:
        try:
            readable.append((prompt, loaded.parse_prompt(prompt)))
        except PromptError:
            continue
    for prompt, ids in readable:
        if len(ids) > 1 and -sum(TextPass(loaded.gpt, ids).logprobs()) <= MAX_KNOWN_PROMPT_LOSS * len(prompt):
            return prompt, ids
    return readable[0] if readable else (loaded.tokens([0])[0].text, [0])
