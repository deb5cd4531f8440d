"""What the page shows before anybody has written: a short text of each model, written once and shared by all."""

import threading
from dataclasses import dataclass
from typing import Any

from model import LoadedModel, PromptError
from model.reading import Reading
from model.trace import most_selective_head

from .runs import Run, Runs
from .settings import KNOWN_PROMPT, OPENING_PROMPTS, OPENING_SEED, OPENING_TEMPERATURE, OPENING_TOKENS
from .shelf import Shelf


@dataclass(frozen=True)
class Opening:
    """A text and the head that is open beside it."""

    settings: dict[str, Any]  # all that it was written from
    ids: list[int]
    n_prompt: int
    head: tuple[int, int]


class Openings:
    """The opening of each model, written when it is first asked for."""

    def __init__(self, shelf: Shelf, runs: Runs) -> None:
        self.shelf, self.runs = shelf, runs
        self.made: dict[str, Opening] = {}
        self.lock = threading.Lock()

    def write_all(self) -> None:
        """Write them before anybody asks."""
        for name in self.shelf.models:
            self.get(name)

    def get(self, name: str) -> tuple[Opening, Run]:
        """The opening of a model and its run, which is recomputed if others have pushed it out."""
        gpt = self.shelf.models[name]
        with self.lock:
            if name not in self.made:
                self.made[name] = write_opening(gpt)
            opening = self.made[name]
        return opening, self.runs.reread(gpt, opening.ids, opening.n_prompt)


def write_opening(gpt: LoadedModel) -> Opening:
    prompt, ids = opening_prompt(gpt)
    n_new = min(OPENING_TOKENS, gpt.config.context_length - len(ids))
    steps = gpt.generate(ids, n_new, temperature=OPENING_TEMPERATURE, seed=OPENING_SEED) if n_new > 0 else ()
    written = [step.token_id for step in steps if step.token_id != gpt.eos_token_id]
    text = ids + written
    settings = {"prompt": prompt, "seed": OPENING_SEED, "temperature": OPENING_TEMPERATURE}
    settings |= {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "max_new_tokens": max(n_new, 1)}
    return Opening(settings, text, len(ids), most_selective_head(gpt.trace(text).attention))


def opening_prompt(gpt: LoadedModel) -> tuple[str, list[int]]:
    """The first of the opening prompts that looks like what this model was trained on.

    If none does: the first that it can read; if there is none, its first token.
    """
    readable = []
    for prompt in OPENING_PROMPTS:
        try:
            readable.append((prompt, gpt.read_prompt(prompt)))
        except PromptError:
            continue
    for prompt, ids in readable:
        if len(ids) > 1 and -sum(Reading(gpt.gpt, ids).logprobs()) <= KNOWN_PROMPT * len(prompt):
            return prompt, ids
    return readable[0] if readable else (gpt.tokens([0])[0].text, [0])
