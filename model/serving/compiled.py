"""Reading many texts in one compiled forward pass, on a CPU."""

import functools
import math
import random
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ..kernels.compiled import CompiledGPT, Row
from ..sampling import SamplingSettings, raise_not_finite
from .parts import Part, Reading


class CompiledReader:
    """Reads with a `CompiledGPT`: the logits of a text are the same to the last bit whatever is read beside it."""

    def __init__(self, gpt: CompiledGPT) -> None:
        self.gpt = gpt

    def read(self, parts: Sequence[Part]) -> list[Reading]:
        rows = [
            Row(token, part.slot, part.n_read + i, wanted, part.record)
            for part in parts
            for i, (token, wanted) in enumerate(zip(part.ids, part.wanted, strict=True))
        ]
        logits, attention = self.gpt.read(rows, self.mask(parts))
        readings, n_wanted, n_recorded = [], 0, 0
        for part in parts:
            first, n_wanted = n_wanted, n_wanted + sum(part.wanted)
            weights = None
            if attention is not None and part.record:
                first_recorded, n_recorded = n_recorded, n_recorded + len(part.ids)
                weights = attention[:, :, first_recorded:n_recorded, : part.n_read + len(part.ids)]
            readings.append(Reading(logits[first:n_wanted], weights, functools.partial(self.choose, n_wanted - 1)))
        return readings

    def mask(self, parts: Sequence[Part]) -> NDArray[np.float32] | None:
        """The head masks of all rows, ``(n_layer, rows, n_head)``; None if no text has one."""
        if all(part.head_mask is None for part in parts):
            return None
        config = self.gpt.config
        whole = torch.ones(config.n_layer, config.n_head)
        masks = [whole if part.head_mask is None else part.head_mask for part in parts]
        return torch.stack(masks, 1).repeat_interleave(torch.tensor([len(part.ids) for part in parts]), 1).numpy()

    def choose(self, row: int, sampling: SamplingSettings, generator: random.Random) -> tuple[int, float]:
        """The next token drawn from row ``row`` of the newest logits, and its log-probability."""
        token_id, most, log_sum_exp = self.gpt.summary[row].tolist()
        if not math.isfinite(log_sum_exp):
            raise_not_finite()
        if sampling.temperature == 0:
            return int(token_id), most - log_sum_exp
        drawn = self.gpt.draw(row, sampling.temperature, generator.random())
        return drawn, float(self.gpt.logits[row, drawn]) - log_sum_exp

    def clear(self, slot: int, length: int) -> None:
        """Nothing: no text reads beyond what it wrote into its slot."""

    def close(self) -> None:
        self.gpt.close()
