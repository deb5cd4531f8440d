"""The keys and values of the tokens that were already read."""

from typing import Protocol

import torch
from torch import Tensor

from .config import GPTConfig


class Cache(Protocol):
    """What attention asks of a cache."""

    @property
    def mask(self) -> Tensor | None:
        """Which keys may be looked at, bool, to be broadcast to ``(B, n_head, T, S)``; None where causality decides."""

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``key`` and ``value`` ``(B, n_head, T, head_dim)``; all so far are ``(B, n_head, S, head_dim)``."""


class KVCache:
    """Preallocated keys and values of one request, ``(n_layer, B, n_head, capacity, head_dim)`` each.

    It belongs to the request and is handed to every forward pass; the model keeps no state of its own.
    ``length`` is the number of positions filled. Raises ``ValueError`` when ``capacity`` is outside the context.
    """

    mask = None  # the texts of a batch are of one length

    def __init__(
        self,
        config: GPTConfig,
        *,
        capacity: int | None = None,
        batch_size: int = 1,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        self.capacity = config.context_length if capacity is None else capacity
        if not 1 <= self.capacity <= config.context_length:
            raise ValueError(f"capacity must be from 1 to {config.context_length}, found {self.capacity}")
        shape = (config.n_layer, batch_size, config.n_head, self.capacity, config.head_dim)
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty(shape, dtype=dtype, device=device)
        self.length = 0

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``key`` and ``value`` ``(B, n_head, T, head_dim)`` behind the filled part of ``layer``.

        Returns all keys and values so far, ``(B, n_head, length + T, head_dim)``, as views. ``length`` itself grows
        once per forward pass, by :meth:`advance`, since every layer writes at the same positions. Raises
        ``ValueError`` when they do not fit.
        """
        end = self.length + key.shape[2]
        if end > self.capacity:
            raise ValueError(f"{end} positions do not fit into a cache of capacity {self.capacity}")
        self.keys[layer, :, :, self.length : end] = key
        self.values[layer, :, :, self.length : end] = value
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def advance(self, n_tokens: int) -> None:
        """Count ``n_tokens`` positions as filled."""
        self.length += n_tokens


def attention_dtype(like: Tensor) -> torch.dtype:
    """The precision in which a model with weights ``like`` attends: on a CPU float32, since attention in bfloat16 is
    the slower there the longer the context (ten times at 1,000 keys); elsewhere that of the weights."""
    return torch.float32 if like.device.type == "cpu" else like.dtype
