"""A request to an engine and what it is told, for the tests of the engine."""

from typing import Any

from model import LoadedModel, Step
from model.engine import Engine
from model.sampling import SamplingSettings
from model.ticket import Cut, Event, PromptPart, Ticket

SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 10, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 1.3, "presence_penalty": 0.7, "frequency_penalty": 0.4, "repetition_penalty": 1.4},
    {"temperature": 0.0, "frequency_penalty": 2.0, "logit_bias": {5: 4.0, 7: -100.0}},
]


class Asked:
    """A request, and all that was reported of it."""

    def __init__(
        self,
        gpt: LoadedModel,
        prompt: Any,
        n: int,
        *,
        seed: int = 0,
        stop: Any = (),
        settings: Any = None,
        **options: Any,
    ) -> None:
        self.events: list[Event] = []
        settings = SamplingSettings(**({"temperature": 1.0} if settings is None else settings))
        shift = options.pop("context_shift", False)
        draft = gpt.draft(prompt, n, settings, seed=seed, stop=stop, context_shift=shift)
        self.ticket = Ticket(draft, self.events.append, **options)

    @property
    def steps(self) -> list[Step]:
        return [event for event in self.events if isinstance(event, Step)]

    @property
    def parts(self) -> list[PromptPart]:
        return [event for event in self.events if isinstance(event, PromptPart)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Step | Cut))

    @property
    def ids(self) -> list[int]:
        return [step.token_id for step in self.steps]

    @property
    def end(self) -> str | None:
        last = self.events[-1]
        return last.finish_reason if isinstance(last, Step) else last.reason if isinstance(last, Cut) else None


def finish(engine: Engine) -> None:
    while engine.at_work or engine.line:
        engine.step()


def alone(gpt: LoadedModel, prompt: Any, n: int, seed: int = 0, **settings: Any) -> list[Step]:
    return list(gpt.generate(prompt, n, seed=seed, **settings))


def ids_of(steps: list[Step]) -> list[int]:
    return [step.token_id for step in steps]
