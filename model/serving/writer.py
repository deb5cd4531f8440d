"""Writing many texts from Python, in the batches and with the forward pass of the server."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..generate import GenerationRequest, Prompt, Step
from ..loaded import HeadMask, LoadedModel
from ..sampling import SamplingSettings
from .choose_reader import choose_reader
from .engine import Engine
from .sequence import Cut, Event, Failure, TextSequence


class BatchWriter:
    """Writes texts with ``loaded``, up to ``n_streams`` at the same time; one thread at a time may use it.

    Creating one compiles the forward pass, which takes a few seconds, most of them only the first time if ``cache`` is
    a writable folder. Afterwards a large model shares its weights with the compiled pass. Without a compiler for this
    machine, torch runs the forward pass.
    """

    def __init__(self, loaded: LoadedModel, n_streams: int = 16, cache: str | Path | None = None) -> None:
        self.loaded, self.n_streams = loaded, n_streams
        self.reader = choose_reader(loaded.gpt, n_streams, None if cache is None else Path(cache).expanduser())

    def write(
        self,
        prompts: Iterable[Prompt],
        max_new_tokens: int = 100,
        *,
        stop: str | Iterable[str] = (),
        seed: int | None = None,
        head_mask: HeadMask | None = None,
        **sampling: Any,
    ) -> list[str]:
        """The continuations of the ``prompts``, which are text or token ids.

        Options and errors are those of ``LoadedModel.generate``; all errors are raised before the first text is
        started. With a ``seed``, the texts are those of a request for the same list of prompts over HTTP.
        """
        requests = [
            self.loaded.request(
                prompt,
                max_new_tokens,
                sampling=SamplingSettings(**sampling),
                stop=stop,
                seed=seed,
                head_mask=head_mask,
                choice=(index, 0),
            )
            for index, prompt in enumerate(prompts)
        ]
        texts: list[list[str]] = [[] for _ in requests]
        for index, text in self.stream(requests):
            texts[index].append(text)
        return list(map("".join, texts))

    def stream(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, str]]:
        """Carry out all ``requests`` and yield ``(index of the request, new text)`` as text is written."""
        heard: list[tuple[int, Event]] = []

        def hear(index: int, event: Event) -> None:
            heard.append((index, event))

        engine = Engine(self.loaded, max_batch=self.n_streams, max_waiting=len(requests), reader=self.reader)
        engine.submit(*(TextSequence(each, self.loaded, partial(hear, index)) for index, each in enumerate(requests)))
        while engine.queue or engine.active:
            engine.step()
            for index, event in heard:
                if isinstance(event, Failure):
                    raise event.error
                if isinstance(event, Step | Cut) and event.text:
                    yield index, event.text
            heard.clear()
