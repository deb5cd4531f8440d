"""What the page shows before anybody has written: a short text of each model, written once and shared by all."""

import threading
from dataclasses import dataclass

from model import LoadedModel, PromptError, SamplingSettings
from model.generate import generate
from model.lens.metrics import most_selective_head
from model.lens.residuals import Residuals

from ..serving.inputs import settings_of
from ..serving.served_models import ServedModels
from ..settings import KNOWN_PROMPT, OPENING_PROMPTS, OPENING_SEED, OPENING_TEMPERATURE, OPENING_TOKENS
from .run import Run
from .store import Runs


@dataclass(frozen=True)
class Opening:
    """A text and the head that is open beside it."""

    settings: dict[str, object]  # all that it was written from
    ids: list[int]
    n_prompt: int
    head: tuple[int, int]


class Openings:
    """The opening of each model, written when it is first asked for."""

    def __init__(self, served: ServedModels, runs: Runs) -> None:
        self.served, self.runs = served, runs
        self.made: dict[str, Opening] = {}
        self.lock = threading.Lock()

    def write_all(self) -> None:
        """Write them before anybody asks."""
        for name in self.served.models:
            self.get(name)

    def get(self, name: str) -> tuple[Opening, Run]:
        """The opening of a model and its run, which is recomputed if others have pushed it out."""
        loaded = self.served.models[name]
        with self.lock:
            if name not in self.made:
                self.made[name] = write_opening(loaded)
            opening = self.made[name]
        return opening, self.runs.recompute(loaded, opening.ids, opening.n_prompt)


def write_opening(loaded: LoadedModel) -> Opening:
    prompt, ids = opening_prompt(loaded)
    n_new = min(OPENING_TOKENS, loaded.config.context_length - len(ids))
    sampling = SamplingSettings(temperature=OPENING_TEMPERATURE)
    request = loaded.request(ids, max(n_new, 1), sampling=sampling, seed=OPENING_SEED)
    steps = generate(loaded.gpt, loaded.begin(request)) if n_new > 0 else ()
    text = ids + [step.token_id for step in steps if step.token_id != loaded.eos_token_id]
    head = most_selective_head(loaded.trace(text).attention)
    return Opening(settings_of(request, prompt), text, len(ids), head)


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
