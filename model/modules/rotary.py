"""Rotary positions: queries and keys turn with their positions, so that a score depends on the distance alone."""

import math

import torch
from torch import Tensor

from ..config import GPTConfig, LinearScaling, Llama3Scaling, RotaryConfig, YarnScaling


class Rotary:
    """Rotates queries and keys by their positions (Su et al. 2021, section 3.2).

    Numbers ``i`` and ``i + n_dim / 2`` of a head are a point in a plane, which position ``p`` rotates by the angle
    ``p * frequencies[i]``. Layers of a model share these objects.
    """

    def __init__(self, config: RotaryConfig, context_length: int) -> None:
        self.config, self.context_length = config, context_length
        self.tables: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def frequencies(self) -> Tensor:
        """The angle between neighbouring positions in each plane, in radians, ``(n_dim / 2,)`` float32."""
        exponents = torch.arange(0, self.config.n_dim, 2, device="cpu").float() / self.config.n_dim
        frequencies = 1 / self.config.theta**exponents
        match scaling := self.config.scaling:
            case LinearScaling():
                return frequencies / scaling.factor
            case Llama3Scaling():
                rotations = scaling.original_context_length * frequencies / (2 * math.pi)  # in the original context
                kept = (rotations - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
                kept = kept.clamp(0, 1)
            case YarnScaling():
                kept = 1 - self.slowness(scaling)
            case _:
                return frequencies
        return kept * frequencies + (1 - kept) * frequencies / scaling.factor

    def slowness(self, scaling: YarnScaling) -> Tensor:
        """From 0 to 1, for each plane, how far its frequency is divided by the factor."""

        def plane(n_rotations: float) -> float:
            """The plane, between whole ones, that turns so often in the original context."""
            turns = scaling.original_context_length / (n_rotations * 2 * math.pi)
            return self.config.n_dim * math.log(turns) / (2 * math.log(self.config.theta))

        fast, slow = plane(scaling.beta_fast), plane(scaling.beta_slow)
        if scaling.truncate:
            fast, slow = math.floor(fast), math.ceil(slow)
        fast, slow = max(fast, 0), min(slow, self.config.n_dim - 1)
        width = slow - fast or 0.001
        return ((torch.arange(self.config.n_dim // 2, device="cpu").float() - fast) / width).clamp(0, 1)

    def table(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Cosine and sine of the angles at all positions, ``(context_length, n_dim / 2)`` float32 each."""
        if device not in self.tables:
            with torch.inference_mode(False):  # training may use the tables as well
                angles = torch.arange(self.context_length, device="cpu").float()[:, None] * self.frequencies()
                self.tables[device] = angles.cos().to(device), angles.sin().to(device)
        return self.tables[device]

    def rotate(self, x: Tensor, positions: int | slice | Tensor) -> Tensor:
        """``x`` ``(B, heads, T, head_dim)`` at its positions: one, ``T``, or one for each text ``(B,)``."""
        cos, sin = (table[positions] for table in self.table(x.device))
        if isinstance(positions, Tensor):
            cos, sin = cos[:, None, None], sin[:, None, None]
        half = self.config.n_dim // 2
        a, b = x[..., :half], x[..., half : 2 * half]
        return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., 2 * half :]], -1).to(x.dtype)


def rotaries_of(config: GPTConfig) -> list[Rotary | None]:
    """The rotation of each layer; None where positions are learned. Layers with the same one share the object."""
    kinds = [config.rotation(layer) for layer in range(config.n_layer)]
    made = {kind: Rotary(kind, config.context_length) for kind in set(kinds) if kind}
    return [made[kind] if kind else None for kind in kinds]
