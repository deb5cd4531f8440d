"""The texts that the page shows before a visitor has written one: one short text per model, shared by all."""

from contextlib import suppress
from dataclasses import dataclass

from model import LoadedModel, PromptError, SamplingSettings
from model.generate import generate
from model.lens.opening import FittingHead, cut_at_open_choice, fitting_heads, head_to_open
from model.lens.text_pass import TextPass

from ..bounded_cache import BoundedCache
from ..serving.inputs import settings_of
from ..serving.served_models import ServedModels
from ..settings import (
    KNOWN_PROMPT,
    LEAST_OPENING_TOKENS,
    OPENING_PROMPTS,
    OPENING_SEED,
    OPENING_TEMPERATURE,
    OPENING_TOKENS,
)
from .run import Run
from .store import Runs


class CannotWrite(Exception):
    """A model that cannot even write its opening."""


@dataclass(frozen=True)
class Opening:
    """A text and the head that the page opens with it."""

    settings: dict[str, object]  # everything that determines the text
    ids: list[int]
    n_prompt: int
    head: tuple[int, int]
    suggested_heads: list[FittingHead]


class Openings:
    """The opening of each model, written when it is first asked for."""

    def __init__(self, served: ServedModels, runs: Runs) -> None:
        self.served, self.runs = served, runs
        self.written = BoundedCache[str, Opening]()  # by name, one for each model that is served

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
                return write_opening(loaded)
            except Exception as error:  # its logits overflow, or there is not enough memory
                self.served.fail(name, error)
                raise CannotWrite(name) from error

        opening = self.written.get_or_compute(name, write)
        return opening, self.runs.recompute(loaded, opening.ids, opening.n_prompt)

    def forget(self, name: str) -> None:
        """Remove the opening of a model that is no longer served."""
        self.written.remove(lambda other, _: other == name)


def write_opening(loaded: LoadedModel) -> Opening:
    prompt, ids = opening_prompt(loaded)
    n_new = min(OPENING_TOKENS, loaded.config.context_length - len(ids))
    sampling = SamplingSettings(temperature=OPENING_TEMPERATURE)
    request = loaded.request(ids, max(n_new, 1), sampling=sampling, seed=OPENING_SEED)
    steps = generate(loaded.gpt, loaded.begin(request)) if n_new > 0 else ()
    text = ids + [step.token_id for step in steps if step.token_id != loaded.eos_token_id]
    trace = loaded.trace(text)
    end = cut_at_open_choice(trace.logits, first=len(ids) + LEAST_OPENING_TOKENS)
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
            readable.append((prompt, loaded.read_prompt(prompt)))
        except PromptError:
            continue
    for prompt, ids in readable:
        if len(ids) > 1 and -sum(TextPass(loaded.gpt, ids).logprobs()) <= KNOWN_PROMPT * len(prompt):
            return prompt, ids
    return readable[0] if readable else (loaded.tokens([0])[0].text, [0])
