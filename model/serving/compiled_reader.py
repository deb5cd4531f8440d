"""Reading many texts in one compiled forward pass, on a CPU."""

import math
import random
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.compiled import NOT_RECORDED, CompiledGPT, Row, copied
from ..sampling import SamplingSettings, raise_not_finite
from .reader import Part, Reading, head_masks


class CompiledReading:
    """A ``Reading``; ``summary`` belongs to its last logits, and ``is_alone`` says that one row was recorded in all."""

    __slots__ = ("end", "gpt", "is_alone", "start", "summary", "weights")

    def __init__(
        self,
        gpt: CompiledGPT,
        start: int,
        end: int,
        weights: NDArray[np.float32] | None,
        summary: tuple[float, float, float],
        *,
        is_alone: bool,
    ) -> None:
        self.gpt, self.start, self.end = gpt, start, end
        self.weights, self.summary, self.is_alone = weights, summary, is_alone

    @property
    def logits(self) -> Tensor:
        return self.gpt.logits[self.start : self.end]

    @property
    def attention(self) -> Tensor | None:
        return None if self.weights is None else torch.from_numpy(self.weights)

    # Copies are made on one thread: torch's would compete for cores with our waiting threads. The attention weights of
    # a row that was recorded alone are not copied.

    def last_logits(self) -> NDArray[np.float32]:
        return self.gpt.rows_of_logits[self.end - 1].copy()

    def last_attention(self, _n_keys: int) -> NDArray[np.float32] | None:
        if self.weights is None:
            return None
        last = self.weights[:, :, -1]
        return last if self.is_alone else copied(last)

    def choose(self, sampling: SamplingSettings, generator: random.Random, n_drawable: int) -> tuple[int, float]:
        best, most, log_sum_exp = self.summary
        if not math.isfinite(log_sum_exp):
            raise_not_finite()
        if best >= n_drawable:
            logits = self.gpt.rows_of_logits[self.end - 1, :n_drawable]
            best = int(logits.argmax())
            most = float(logits[best])
        if sampling.temperature == 0:
            return int(best), most - log_sum_exp
        drawn = self.gpt.draw(self.end - 1, most, sampling.temperature, generator.random(), n_drawable)
        return drawn, float(self.gpt.rows_of_logits[self.end - 1, drawn]) - log_sum_exp


class CompiledReader:
    """Reads with a ``CompiledGPT``: the logits of a text are bit-identical for any batch."""

    is_compiled = True

    def __init__(self, gpt: CompiledGPT) -> None:
        self.gpt = gpt
        self.products = gpt.products

    def read(self, parts: Sequence[Part]) -> list[Reading]:
        rows: list[Row] = []
        n_recorded = 0
        for part in parts:
            for position, (token, wanted) in enumerate(zip(part.ids, part.wanted, strict=True), part.n_read):
                rows.append((token, part.slot, position, wanted, n_recorded if part.record else NOT_RECORDED))
                n_recorded += part.record
        recorded = self.gpt.read(rows, self.mask(parts))
        summary = self.gpt.summary[: len(rows)].tolist()
        readings: list[Reading] = []
        is_alone = n_recorded == 1
        end = end_recorded = 0
        for part in parts:
            start, end = end, end + sum(part.wanted)
            weights = None
            if recorded is not None and part.record:
                n = len(part.ids)
                weights = recorded[:, :, end_recorded : end_recorded + n, : part.n_read + n]
                end_recorded += n
            readings.append(CompiledReading(self.gpt, start, end, weights, summary[end - 1], is_alone=is_alone))
        return readings

    def mask(self, parts: Sequence[Part]) -> NDArray[np.float32] | None:
        """The head masks of all rows, ``(n_layer, rows, n_head)``; None if no text has one."""
        masks = head_masks(parts, self.gpt.config, torch.device("cpu"))
        if masks is None:
            return None
        return masks.repeat_interleave(torch.tensor([len(part.ids) for part in parts]), 1).numpy()

    def copy(self, source: int, target: int, length: int) -> None:
        self.gpt.copy(source, target, length)

    def clear(self, slot: int, length: int) -> None:
        """Do nothing: no text reads beyond what it wrote into its slot."""

    def close(self) -> None:
        self.gpt.close()
