"""Writing on ZeroGPU, where a GPU is available only inside one function, called from a Gradio event.

The function runs in a process forked from this one: it has the models that are loaded here, and its results come back
pickled. The rest of the app computes on the CPU, including the API, whose routes are not Gradio events.
"""

import contextvars
import copy
import os
import time
from collections.abc import Callable, Generator, Hashable
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from model import GenerationRequest, LoadedModel, Step
from model.serving.engine import Engine
from model.serving.sequence import Cut, Event, Failure, Listener, TextSequence, is_last
from model.serving.text_engine import SteppedEngine

from ..settings import is_zero_gpu

T = TypeVar("T", bound=Callable[..., Any])

SECONDS = 20  # for starting, in addition to the time for the tokens
TOKENS_PER_SECOND = 30  # the slowest that a GPU is expected to write
MAX_SECONDS = 120
GATHER_SECONDS = 0.05  # between batches of events, which are sent through a pipe
MODELS: dict[str, LoadedModel] = {}  # on the CPU; the forked process has them as well
ON_GPU: dict[str, LoadedModel] = {}  # filled only in the forked process


def seconds_for(_name: str, request: GenerationRequest, *_: Any) -> int:
    """For how many seconds the GPU may be needed at most; they are charged to the visitor's quota in advance."""
    return min(MAX_SECONDS, SECONDS + request.max_new_tokens // TOKENS_PER_SECOND)


def on_gpu(function: T) -> T:
    """The function wrapped by ``spaces``, or unchanged if this is not ZeroGPU."""
    if not is_zero_gpu(os.environ):
        return function
    import spaces  # patches torch, and so must come before CUDA is used

    decorated: T = spaces.GPU(duration=seconds_for)(function)
    return decorated


@on_gpu
def write(name: str, request: GenerationRequest, head_mask: list[list[float]] | None) -> Generator[list[Event]]:
    """The events of one text, as a local engine reports them, but with NumPy arrays instead of tensors."""
    loaded = loaded_on_gpu(name)
    request = replace(request, head_mask=loaded.parse_head_mask(head_mask))
    engine = Engine(loaded, max_batch=1)
    events: list[Event] = []
    engine.submit(TextSequence(request, loaded, events.append))
    sent_at = 0.0
    while engine.active or engine.queue:
        engine.step()
        if events and (is_last(events[-1]) or time.monotonic() - sent_at >= GATHER_SECONDS):
            yield [with_arrays(event) for event in events]
            events.clear()
            sent_at = time.monotonic()


def loaded_on_gpu(name: str) -> LoadedModel:
    """A copy of a model on this process's GPU."""
    if name not in ON_GPU:
        torch.set_num_threads(1)  # the parent's threads were not forked
        device = "cuda" if torch.cuda.is_available() else "cpu"
        loaded = MODELS[name]
        ON_GPU[name] = replace(loaded, gpt=copy.deepcopy(loaded.gpt).to(device))
    return ON_GPU[name]


def with_arrays(event: Event) -> Event:
    """The event with NumPy arrays instead of tensors: arrays are pickled by value."""
    return changed(event, Tensor, lambda tensor: tensor.cpu().numpy())


def with_tensors(event: Event) -> Event:
    return changed(event, np.ndarray, torch.from_numpy)


def changed(event: Event, kind: type[Any], change: Callable[[Any], Any]) -> Event:
    """The event with ``change`` applied to all its fields of type ``kind``."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    changes: Any = {name: change(value) for name, value in values.items() if isinstance(value, kind)}
    return replace(event, **changes)


class GpuText(TextSequence):
    """A text that is written in the forked process, with the Gradio event that requested it."""

    def __init__(
        self, request: GenerationRequest, loaded: LoadedModel, listener: Listener, client: Hashable, deadline: float
    ) -> None:
        super().__init__(request, loaded, listener, client, deadline)
        self.context = contextvars.copy_context()
        self.stopping = False

    def stop_soon(self) -> None:
        self.stopping = True
        super().stop_soon()


class ZeroGpuEngine(SteppedEngine[GpuText]):
    """Writes the texts of one model one at a time: each has the GPU to itself, charged to its visitor's quota."""

    def __init__(self, loaded: LoadedModel, *, max_waiting: int = 64) -> None:
        super().__init__(loaded, max_batch=1, max_waiting=max_waiting)
        MODELS[loaded.name] = loaded

    def new_sequence(
        self, request: GenerationRequest, listener: Listener, client: Hashable, deadline: float
    ) -> GpuText:
        return GpuText(request, self.loaded, listener, client, deadline)

    def step(self) -> None:
        """Write one text from its beginning to its end."""
        with self.changed:
            self.drop_ended()
            self.admit()
        for sequence in self.active:
            self.write(sequence)

    def write(self, sequence: GpuText) -> None:
        """Report the events from the forked process, and end the text."""
        asked = sequence.request
        mask = None if asked.head_mask is None else asked.head_mask.tolist()
        batches = write(self.loaded.name, replace(asked, head_mask=None), mask)
        last: Event | None = None
        try:
            while last is None and (events := sequence.context.run(next, batches, None)) is not None:
                last = self.take_events(sequence, [with_tensors(event) for event in events])
            last = last or Failure(RuntimeError("the GPU process ended before the text was complete"))
        except Exception as error:  # for example, the quota is used up
            last = Failure(error)
        finally:
            sequence.context.run(batches.close)
        with self.changed:
            self.end(sequence, last)

    def take_events(self, sequence: GpuText, events: list[Event]) -> Event | None:
        """Report events. Returns the one that ends the text, perhaps because the client left or the time is up."""
        for event in events:
            if isinstance(event, Step):
                sequence.written.append(event.token_id)
                self.tokens_written += 1
            if is_last(event):
                return event
            sequence.report(event)
        if sequence.cancelled:
            return Cut("cancelled", "")
        if time.monotonic() >= sequence.deadline:
            return Cut("deadline", "")
        return Cut("stop", "") if sequence.stopping else None
