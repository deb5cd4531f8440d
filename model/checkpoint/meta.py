"""A GPT on PyTorch's meta device: all modules and shapes, no values."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ..config import GPTConfig
from ..gpt import GPT


def gpt_on_meta(config: GPTConfig) -> GPT:
    """A GPT whose weights have only shapes: to be asked for them, or to have weights assigned to it."""
    with torch.device("meta"), NothingDrawn():
        return GPT(config)


class NothingDrawn(TorchFunctionMode):
    """Initialise no embeddings: on the meta device that would import ``torch._dynamo``, most of a second's work."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if function is nn.init.normal_:
            return args[0] if args else given["tensor"]
        return function(*args, **given)
