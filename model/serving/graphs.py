"""Reading on an NVIDIA GPU: a step of many texts as one CUDA graph, since launching its kernels takes longer than they.

A graph has fixed shapes. So every step computes all slots; one with nothing to read reads a token at a place of the
cache that no text has. There is a graph for each of a few lengths of the longest text, captured when first needed.
"""

import math
import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..gpt import GPT, Block
from ..sampling import SamplingSettings, raise_not_finite
from .batch import TorchReader
from .parts import Part, Reading

SHORTEST = 128  # the first length for which there is a graph; each other is twice as long
WARM_UP = 3  # steps before one is captured, in which libraries set themselves up


class GraphReading:
    """See `Reading`; ``summary`` holds the most probable token, its logit and log-sum-exp."""

    attention = None

    def __init__(self, logits: Tensor, summary: tuple[float, float, float]) -> None:
        self.logits, self.summary = logits, summary

    def last_logits(self) -> Tensor:
        return self.logits[-1].clone()

    def choose(self, sampling: SamplingSettings, _generator: random.Random) -> tuple[int, float] | None:
        best, most, log_sum_exp = self.summary
        if not math.isfinite(log_sum_exp):
            raise_not_finite()
        return (int(best), most - log_sum_exp) if sampling.temperature == 0 else None


class GraphReader(TorchReader):
    """Texts that are being written are read by graphs; prompts, recorded texts and head masks by torch's modules."""

    is_compiled = True

    def __init__(self, gpt: GPT, n_slots: int, *, capture: bool = True) -> None:
        """Without ``capture``, the steps run as they are: on a CPU, to be tested."""
        super().__init__(gpt, n_slots, spare=1)
        device = gpt.wte.weight.device
        self.capture = capture
        self.nowhere = gpt.config.context_length  # a place of the cache that no text has
        self.slots = torch.arange(n_slots, device=device)
        self.tokens = torch.zeros(n_slots, dtype=torch.long, device=device)
        self.positions = torch.full((n_slots,), self.nowhere, dtype=torch.long, device=device)
        self.logits = torch.zeros(n_slots, gpt.config.vocab_size, device=device)
        self.summary = torch.zeros(n_slots, 3, dtype=torch.float64, device=device)
        self.steps: dict[int, Callable[[], None]] = {}  # by the length of the longest text

    @torch.inference_mode()
    def read(self, parts: Sequence[Part]) -> list[Reading]:
        written = [part for part in parts if len(part.ids) == 1 and not part.record and part.head_mask is None]
        others = [part for part in parts if part not in written]
        found: dict[int, Reading] = {}
        if others:
            found |= zip((part.slot for part in others), super().read(others), strict=True)
        if written:
            self.place(written)
            self.step_for(max(part.n_read for part in written) + 1)()
            summary = self.summary.tolist()
            found |= {part.slot: GraphReading(self.logits[part.slot, None], summary[part.slot]) for part in written}
        return [found[part.slot] for part in parts]

    def place(self, parts: Sequence[Part]) -> None:
        """Say what every slot reads."""
        tokens, positions = [0] * len(self.slots), [self.nowhere] * len(self.slots)
        for part in parts:
            tokens[part.slot], positions[part.slot] = part.ids[0], part.n_read
        self.tokens.copy_(torch.tensor(tokens), non_blocking=True)
        self.positions.copy_(torch.tensor(positions), non_blocking=True)

    def step_for(self, length: int) -> Callable[[], None]:
        """A step for texts of at most ``length`` tokens."""
        n_keys = SHORTEST
        while n_keys < length:
            n_keys *= 2
        n_keys = min(n_keys, self.nowhere)
        if n_keys not in self.steps:
            self.steps[n_keys] = self.captured(n_keys) if self.capture else lambda: self.step(n_keys)
        return self.steps[n_keys]

    def captured(self, n_keys: int) -> Callable[[], None]:
        """A step as a graph, which is replayed."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UP):
                self.step(n_keys)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step(n_keys)
        return graph.replay

    def step(self, n_keys: int) -> None:
        """One token of every slot: from ``tokens`` and ``positions`` to ``logits`` and ``summary``, all in place."""
        gpt, cache = self.gpt, self.cache
        mask = (torch.arange(n_keys, device=self.slots.device) <= self.positions[:, None])[:, None, None]

        def attend(block: Block, x: Tensor) -> Tensor:
            attention = block.attn
            qkv = attention.c_attn(x).to(cache.keys.dtype)
            query, key, value = qkv.view(len(x), 3, attention.n_head, attention.head_dim).unbind(1)
            keys, values = cache.keys[block.layer], cache.values[block.layer]
            keys[self.slots, :, self.positions] = key
            values[self.slots, :, self.positions] = value
            context = F.scaled_dot_product_attention(
                query[:, :, None], keys[:, :, :n_keys], values[:, :, :n_keys], attn_mask=mask, scale=attention.scale
            )
            return attention.c_proj(context.flatten(1).to(x.dtype))

        places = self.positions.clamp(max=self.nowhere - 1)
        x = gpt.run_blocks(gpt.wte(self.tokens) + gpt.wpe(places), attend)
        self.logits.copy_(gpt.lm_head(gpt.ln_f(x)))
        most, best = self.logits.max(-1)
        self.summary.copy_(torch.stack([best.double(), most.double(), self.logits.logsumexp(-1).double()], 1))
