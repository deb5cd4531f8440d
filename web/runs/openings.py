"""What the page shows before anybody has written: a short text of each model, written once and shared by all."""

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from model import LoadedModel, PromptError, SamplingSettings
from model.generate import generate
from model.lens.head_roles import CLEAR_ROLE, text_scores
from model.lens.metrics import most_selective_head
from model.lens.residuals import Residuals

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

LEAST_REAL = 0.08  # probability from which an alternative counts as real
MOST_CERTAIN = 0.6


class CannotWrite(Exception):
    """A model that cannot write even its opening."""


class FittingHead(NamedTuple):
    """The head of a text that fits a role best, and its mean attention weight there."""

    role: str
    head: tuple[int, int]
    score: float


@dataclass(frozen=True)
class Opening:
    """A text and the head that is open beside it."""

    settings: dict[str, object]  # all that it was written from
    ids: list[int]
    n_prompt: int
    head: tuple[int, int]
    suggested_heads: list[FittingHead]


class Openings:
    """The opening of each model, written when it is first asked for."""

    def __init__(self, served: ServedModels, runs: Runs) -> None:
        self.served, self.runs = served, runs
        self.made: dict[str, Opening] = {}
        self.lock = threading.Lock()

    def write_all(self) -> None:
        """Write them before anybody asks. A model that cannot write one is no longer served."""
        for name in list(self.served.models):
            with suppress(CannotWrite):
                self.get(name)

    def get(self, name: str) -> tuple[Opening, Run]:
        """The opening of a model and its run, which is recomputed if others have pushed it out.

        Raises ``CannotWrite`` for a model that fails at it, and which is then no longer served.
        """
        loaded = self.served.models[name]
        with self.lock:
            if name not in self.made:
                try:
                    self.made[name] = write_opening(loaded)
                except Exception as error:  # its logits overflow, or there is not enough memory
                    self.served.fail(name, error)
                    raise CannotWrite(name) from error
            opening = self.made[name]
        return opening, self.runs.recompute(loaded, opening.ids, opening.n_prompt)


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
    suggested_heads = [
        FittingHead(role, divmod(int(scores.argmax()), scores.shape[1]), round(float(scores.max()), 4))
        for role, scores in text_scores(attention, text[:end]).items()
    ]
    head = suggested_heads[0].head if suggested_heads[0].score >= CLEAR_ROLE else most_selective_head(attention)
    return Opening(settings_of(request, prompt), text[:end], len(ids), head, suggested_heads)


def cut_at_open_choice(logits: Tensor, first: int) -> int:
    """How many tokens to keep, at least ``first``: the last one had three or four real alternatives.

    So the next-token bars, which start there, have something to show.

    ``logits`` ``(T, vocab_size)`` are those of the whole text.
    """
    T = len(logits)
    if T <= first:
        return T
    probabilities = logits[first - 1 : T - 1].softmax(-1)  # of the tokens from ``first`` on
    real = (probabilities >= LEAST_REAL).sum(-1)
    largest = probabilities.amax(-1)
    eventful = ((real == 3) | (real == 4)) & (largest <= MOST_CERTAIN)
    places = eventful.nonzero().flatten()
    # As late as possible: there is more to look at.
    return first + int(places[-1]) + 1 if len(places) else T


def opening_prompt(loaded: LoadedModel) -> tuple[str, list[int]]:
    """The first of the opening prompts that looks like what this model was trained on.

    If none does: the first that it can read; if there is none, its first token.
    """
    readable = []
    for prompt in OPENING_PROMPTS:
        try:
            readable.append((prompt, loaded.read_prompt(prompt)))
        except PromptError:
            continue
    for prompt, ids in readable:
        if len(ids) > 1 and -sum(Residuals(loaded.gpt, ids).logprobs()) <= KNOWN_PROMPT * len(prompt):
            return prompt, ids
    return readable[0] if readable else (loaded.tokens([0])[0].text, [0])
