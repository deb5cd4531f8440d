"""Writing many texts from Python, in the batches and with the forward pass of the server."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..generate import GenerationRequest, Prompt, Step
from ..gpt import GPT
from ..lens.float32 import check_unhooked
from ..loaded import HeadMask, LoadedModel
from ..sampling import SamplingSettings
from .choose_reader import choose_reader
from .engine import Engine
from .sequence import Cut, Event, Failure, TextSequence


class BatchWriter:
    """Writes texts with ``loaded``, up to ``n_streams`` at the same time; one thread at a time may use it.

    Creating one compiles the forward pass, which takes a few seconds, most of them only the first time if ``cache`` is
    a writable folder. The compiled pass has a copy of the weights, which follows edits of ``loaded.gpt``. Without a
    compiler for this machine, torch runs the forward pass.
    """

    def __init__(self, loaded: LoadedModel, n_streams: int = 16, cache: str | Path | None = None) -> None:
        self.loaded, self.n_streams = loaded, n_streams
        self.cache = None if cache is None else Path(cache).expanduser()
        self.use_weights()

    def use_weights(self) -> None:
        """Write with the weights that the model has at this moment."""
        self.reader = choose_reader(self.loaded.gpt, self.n_streams, self.cache, share=False)
        self.used = sums_of(self.loaded.gpt)

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
        check_unhooked(self.loaded.gpt)
        if self.reader and not are_equal(self.used, sums_of(self.loaded.gpt)):
            self.reader.close()
            self.use_weights()
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


def sums_of(gpt: GPT) -> list[Tensor]:
    """Sums over the rows and the columns of every weight, as integers: any edit changes some of them."""
    found = []
    for tensor in (*gpt.parameters(), *gpt.buffers()):
        rows = tensor.detach().reshape(len(tensor) if tensor.dim() > 1 else 1, -1).contiguous()
        is_whole = rows.shape[1] * rows.element_size() % 8 == 0  # sums of 64-bit integers take least time
        bits = rows.view(torch.int64 if is_whole else torch.uint8)
        found += [bits.sum(0), bits.sum(1)]
    return found


def are_equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))
