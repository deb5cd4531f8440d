"""Requests to an engine, and the events reported for them."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from model import LoadedModel, Step
from model.sampling import SamplingSettings
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.reader import Reader
from model.serving.sequence import Cut, Event, PromptPart, TextSequence

SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 1.0},
    {"temperature": 0.8, "top_k": 10, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 1.3, "presence_penalty": 0.7, "frequency_penalty": 0.4, "repetition_penalty": 1.4},
    {"temperature": 0.0, "frequency_penalty": 2.0, "logit_bias": {5: 4.0, 7: -100.0}},
]

MakeEngine = Callable[..., Engine]
KERNELS = Path(tempfile.gettempdir()) / "headscope-tests"  # code compiled for one test is reused by the next


def reader_for(loaded: LoadedModel, kind: str, n_slots: int) -> Reader | None:
    """The engine arguments for reading with "torch" or with "compiled" loops."""
    if kind == "torch":
        return None
    reader = choose_reader(loaded.gpt, n_slots, KERNELS)
    assert reader, "Numba serves every machine that runs these tests"
    return reader


class Asked:
    """A request, and all events reported for it."""

    def __init__(
        self,
        loaded: LoadedModel,
        prompt: Any,
        n: int,
        *,
        seed: int = 0,
        settings: Any = None,
        client: Any = None,
        deadline: float = float("inf"),
        **options: Any,
    ) -> None:
        self.events: list[Event] = []
        sampling = SamplingSettings(**({"temperature": 1.0} if settings is None else settings))
        request = loaded.request(prompt, n, sampling=sampling, seed=seed, **options)
        self.sequence = TextSequence(request, loaded, self.events.append, client, deadline)

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
    while engine.active or engine.queue:
        engine.step()


def alone(loaded: LoadedModel, prompt: Any, n: int, seed: int = 0, **settings: Any) -> list[Step]:
    return list(loaded.generate(prompt, n, seed=seed, **settings))


def ids_of(steps: list[Step]) -> list[int]:
    return [step.token_id for step in steps]


def recorded_events(
    loaded: LoadedModel, prompt: Any, n: int, seed: int = 1, context_shift: bool = False, **settings: Any
) -> Iterator[Any]:
    """The events from which the page records a text, while an engine writes it."""
    events: list[Event] = []
    engine = Engine(loaded, max_batch=1)
    sampling = SamplingSettings(**settings)
    options: dict[str, Any] = {"record": True, "prompt_logprobs": True, "context_shift": context_shift}
    request = loaded.request(prompt, n, sampling=sampling, seed=seed, **options)
    engine.submit(TextSequence(request, loaded, events.append))
    while engine.active or engine.queue:
        engine.step()
        yield from events
        events.clear()
