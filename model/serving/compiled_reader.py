"""Reading many texts in one compiled forward pass, on a CPU."""

import math
import random
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..kernels.compiled import NOT_RECORDED, CompiledGPT, RecordedWeights, Row, copied
from ..sampling import SamplingSettings, raise_not_finite
from .reader import Part, Reading, head_masks


class CompiledRecord:
    """What was recorded of a token, which becomes tensors only when someone looks."""

    __slots__ = ("raw_logits", "weights")

    def __init__(self, raw_logits: bytearray, weights: RecordedWeights | NDArray[np.float32]) -> None:
        self.raw_logits, self.weights = raw_logits, weights

    @property
    def logits(self) -> Tensor:
        return torch.frombuffer(self.raw_logits, dtype=torch.float32)

    @property
    def attention(self) -> Tensor:
        weights = self.weights
        return torch.from_numpy(weights.array()[:, :, 0] if isinstance(weights, RecordedWeights) else weights)

    @property
    def nbytes(self) -> int:
        return len(self.raw_logits) + self.weights.nbytes


class CompiledReading:
    """A ``Reading`` of ``part``, whose requested logits end before row ``end``, and ``summary`` belongs to the last.

    Its attention weights begin at row ``first`` of those of the whole pass.
    """

    __slots__ = ("end", "first", "gpt", "part", "summary", "weights")

    def __init__(
        self,
        gpt: CompiledGPT,
        part: Part,
        end: int,
        weights: RecordedWeights | None,
        first: int,
        summary: tuple[float, float, float],
    ) -> None:
        self.gpt, self.part, self.end, self.weights, self.first, self.summary = gpt, part, end, weights, first, summary

    @property
    def logits(self) -> Tensor:
        return self.gpt.logits[self.end - sum(self.part.wanted) : self.end]

    @property
    def attention(self) -> Tensor | None:
        if self.weights is None:
            return None
        n = len(self.part.ids)
        return torch.from_numpy(self.weights.array()[:, :, self.first : self.first + n, : self.part.n_read + n])

    def record(self, n_keys: int) -> CompiledRecord:
        weights, logits = self.weights, self.gpt.logits_of(self.end - 1)
        assert weights is not None, "only parts that are recorded"
        if weights.n_rows == 1:
            return CompiledRecord(logits, weights)
        # A copy, so that no text keeps what is recorded of others. It is made on one thread: torch's would compete for
        # cores with our waiting threads.
        last = self.first + len(self.part.ids) - 1
        return CompiledRecord(logits, copied(weights.array()[:, :, last, :n_keys]))

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

    writes_compiled = True

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
        weights = self.gpt.read(rows, self.mask(parts))
        summary = self.gpt.summary[: len(rows)].tolist()
        readings: list[Reading] = []
        end = first = 0
        for part in parts:
            end += sum(part.wanted)
            recorded = weights if part.record else None
            readings.append(CompiledReading(self.gpt, part, end, recorded, first, summary[end - 1]))
            if part.record:
                first += len(part.ids)
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
