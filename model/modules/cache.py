"""The keys and values of the tokens read so far."""

from typing import Protocol

import torch
from torch import Tensor

from ..config import GPTConfig


class Cache(Protocol):
    """What attention needs from a cache."""

    @property
    def start(self) -> int | Tensor:
        """The position of the first new token, the same for all texts or one for each, ``(B,)``."""

    def mask(self, window: int | None) -> Tensor | None:
        """Which keys a layer with this ``window`` may attend to (bool, broadcast to ``(B, n_head, T, S)``).

        None means the layer's own mask, in which the last query is the last key.
        """

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store ``key`` and ``value`` ``(B, n_kv_head, T, head_dim)``; return all so far, ``(..., S, head_dim)``."""


class KVCache:
    """Preallocated keys and values of one request, ``(n_layer, B, n_kv_head, capacity, head_dim)`` each.

    The request owns it and passes it to every forward pass; the model itself keeps no state. ``length`` is the number
    of positions filled. Raises ``ValueError`` unless ``capacity`` is between 1 and the model's context_length.
    """

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
        shape = (config.n_layer, batch_size, config.n_kv_head, self.capacity, config.head_dim)
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty(shape, dtype=dtype, device=device)
        self.length = 0

    @property
    def start(self) -> int:
        return self.length

    def mask(self, _window: int | None) -> None:
        """All texts of the batch have the same length."""

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append ``key`` and ``value`` ``(B, n_kv_head, T, head_dim)`` to the filled part of ``layer``.

        Returns views of all keys and values so far, ``(B, n_kv_head, length + T, head_dim)``. Every layer writes at the
        same positions, so ``length`` grows only once per forward pass, in ``advance``. Raises ``ValueError`` if
        they do not fit.
        """
        end = self.length + key.shape[2]
        if end > self.capacity:
            raise ValueError(f"{end} positions do not fit into a cache of capacity {self.capacity}")
        self.keys[layer, :, :, self.length : end] = key
        self.values[layer, :, :, self.length : end] = value
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def advance(self, n_tokens: int) -> None:
        """Mark the next ``n_tokens`` positions as filled."""
        self.length += n_tokens


def attention_dtype(like: Tensor) -> torch.dtype:
    """The precision in which a model with weights ``like`` computes attention.

    On a CPU it is float32, because attention in bfloat16 slows down there as the context grows (tenfold at 1,000 keys);
    on other devices it is the precision of the weights.
    """
    return torch.float32 if like.device.type == "cpu" else like.dtype
