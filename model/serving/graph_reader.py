"""Reading a token of many texts as one CUDA graph: launching kernels one by one takes longer than running them.

A graph has fixed shapes: every step computes all slots, and a slot with nothing to read reads a token at a position of
the cache that no text uses. Where Triton is installed, as it is with PyTorch for Linux, the graph consists of our own
kernels. Elsewhere it consists of torch's, and there is one graph for each of a few lengths of the longest text.
"""

import importlib.util
import logging
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..generate import Recorded, RecordedTensors
from ..gpt import GPT, Block
from ..sampling import SamplingSettings, raise_not_finite
from .reader import Part, Reading
from .torch_reader import TorchReader

log = logging.getLogger(__name__)

MIN_GRAPH_LENGTH = 128  # the first length for which there is a graph; each other is twice as long
WARM_UP = 3  # steps run before capturing one, in which libraries initialise themselves


@dataclass(slots=True, eq=False)
class GraphReading:
    """See ``Reading``; ``summary`` holds the most probable token, its logit and log-sum-exp."""

    all_logits: Tensor  # of every slot
    slot: int
    summary: tuple[float, float, float]
    attention: None = None

    @property
    def logits(self) -> Tensor:
        return self.all_logits[self.slot, None]

    def record(self, _n_keys: int) -> Recorded:
        return RecordedTensors(self.all_logits[self.slot].clone())

    def choose(
        self, sampling: SamplingSettings, _generator: random.Random, n_drawable: int
    ) -> tuple[int, float] | None:
        best, most, log_sum_exp = self.summary
        if not math.isfinite(log_sum_exp):
            raise_not_finite()
        return (int(best), most - log_sum_exp) if sampling.temperature == 0 and best < n_drawable else None


class GraphReader(TorchReader):
    """Texts that are being written are read by graphs; prompts, recorded texts and head masks by torch's modules."""

    writes_compiled = True

    def __init__(self, gpt: GPT, n_slots: int, *, capture: bool = True) -> None:
        """Without ``capture``, the steps run directly, which allows tests on a CPU.

        The cache has the whole context from the start: a graph reads and writes it where it was when captured.
        """
        super().__init__(gpt, n_slots, gpt.config.context_length + 1)
        device, on_gpu = gpt.device, gpt.device.type == "cuda"
        self.capture = capture
        self.nowhere = gpt.config.context_length  # a position of the cache that no text uses
        self.slots = torch.arange(n_slots, device=device)
        # The token of every slot and its position, and what is known of its logits, in memory that the GPU can access.
        self.written = torch.zeros(2, n_slots, dtype=torch.long, pin_memory=on_gpu)
        self.summary = torch.zeros(n_slots, 3, dtype=torch.float64, pin_memory=on_gpu)
        self.tokens, self.positions = self.written.numpy()
        self.positions[:] = self.nowhere
        self.inputs = torch.zeros(2, n_slots, dtype=torch.long, device=device)
        self.logits = torch.zeros(n_slots, gpt.config.vocab_size, device=device)
        self.steps: dict[int, Callable[[], None]] = {}  # by the length of the longest text
        self.fused_step = self.compiled_step() if self.has_kernels(on_gpu) else None

    def has_kernels(self, on_gpu: bool) -> bool:
        """Whether there are kernels of our own for this model: they attend to all keys."""
        config = self.gpt.config
        return on_gpu and config.has_loops and not config.windows and importlib.util.find_spec("triton") is not None

    def compiled_step(self) -> Callable[[], None] | None:
        """The step as kernels of our own, compiled; None if they cannot be compiled for this GPU."""
        from ..kernels.gpu import FusedStep

        try:
            step = FusedStep(self.gpt, self.written, self.cache.keys, self.cache.values, self.logits, self.summary)
            step()
            torch.cuda.current_stream().synchronize()
        except Exception:
            log.warning("the kernels of a step cannot be compiled for this GPU; torch's are used", exc_info=True)
            return None
        return step

    @torch.inference_mode()
    def read(self, parts: Sequence[Part]) -> list[Reading]:
        written: list[Part] = []
        others: list[Part] = []
        for part in parts:
            is_written = len(part.ids) == 1 and not part.record and part.head_mask is None
            (written if is_written else others).append(part)
        found: dict[int, Reading] = {}
        if others:
            found |= zip((part.slot for part in others), super().read(others), strict=True)
        if written:
            self.positions[:] = self.nowhere
            for part in written:
                self.tokens[part.slot], self.positions[part.slot] = part.ids[0], part.n_read
            self.step_for(max(part.n_read for part in written) + 1)()
            if self.logits.is_cuda:
                torch.cuda.current_stream().synchronize()
            summary = self.summary.tolist()
            found |= {part.slot: GraphReading(self.logits, part.slot, summary[part.slot]) for part in written}
        return [found[part.slot] for part in parts]

    def step_for(self, length: int) -> Callable[[], None]:
        """A step for texts of at most ``length`` tokens."""
        n_keys = self.nowhere if self.fused_step else MIN_GRAPH_LENGTH
        while n_keys < length:
            n_keys *= 2
        n_keys = min(n_keys, self.nowhere)
        if n_keys not in self.steps:
            step = self.fused_step or (lambda: self.step(n_keys))
            self.steps[n_keys] = captured(step) if self.capture else step
        return self.steps[n_keys]

    def step(self, n_keys: int) -> None:
        """One token of every slot: from ``written`` to ``logits`` and ``summary``, all in place."""
        gpt, cache = self.gpt, self.cache
        tokens, places = self.inputs.copy_(self.written, non_blocking=True)
        keys, last = torch.arange(n_keys, device=self.slots.device), places[:, None].clamp(max=n_keys - 1)
        masks: dict[int | None, Tensor] = {}
        for window in {gpt.config.window(block.layer) for block in gpt.blocks}:
            unseen = keys > last if window is None else (keys > last) | (keys <= last - window)
            # What is added to the scores. Fused attention would convert a mask of booleans in every layer.
            bias = torch.zeros(unseen.shape, dtype=cache.keys.dtype, device=unseen.device)
            masks[window] = bias.masked_fill_(unseen, -torch.inf)[:, None, None]

        def attend(block: Block, x: Tensor) -> Tensor:
            attention = block.attn
            # One token of N texts: (N, n_head, 1, head_dim) and (N, n_kv_head, 1, head_dim)
            query, key, value = attention.split(attention.c_attn(x)[:, None], positions)
            keys, values = cache.keys[block.layer], cache.values[block.layer]
            keys[self.slots, :, places] = key[:, :, 0]
            values[self.slots, :, places] = value[:, :, 0]
            context = attention.fused(query, keys[:, :, :n_keys], values[:, :, :n_keys], masks[attention.window])
            return attention.output(context[:, :, 0].to(x.dtype))

        positions = places.clamp(max=self.nowhere - 1)
        x = gpt.run_blocks(gpt.embeddings(tokens, positions), attend)
        # Transposed, because matrices with an odd number of columns, such as GPT-2's vocabulary, are multiplied slowly.
        self.logits.copy_((gpt.lm_head.weight @ gpt.head_input(x).mT).mT)
        most, best = self.logits.max(-1)
        found = torch.stack([best.double(), most.double(), self.logits.logsumexp(-1).double()], 1)
        self.summary.copy_(found, non_blocking=True)


def captured(step: Callable[[], None]) -> Callable[[], None]:
    """``step`` as a graph, which is replayed."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay
