"""The optimizers: Muon for the matrices inside the blocks, AdamW for everything else."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from ..gpt import GPT, Block
from .settings import TrainSettings


class BlockMuon(Muon):
    """Muon (Jordan et al. 2024) for the matrices inside the blocks.

    The fused projection contains three matrices, for queries, keys and values. Each is orthogonalised separately;
    otherwise the one with the largest gradient would dominate the update of the other two.
    """

    def __init__(self, gpt: GPT, lr: float, weight_decay: float) -> None:
        fused = [cast(Block, block).attn.c_attn.weight for block in gpt.h]
        # Separate parameters that share memory with the fused ones.
        self.fused = [(weight, [nn.Parameter(part) for part in weight.detach().chunk(3)]) for weight in fused]
        whole = [p for p in gpt.h.parameters() if p.dim() == 2 and not any(p is weight for weight in fused)]
        parts = [part for _, parts in self.fused for part in parts]
        super().__init__([*whole, *parts], lr=lr, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # covers both overloads
        for weight, parts in self.fused:
            gradients: tuple[Tensor | None, ...] = (None,) * 3 if weight.grad is None else weight.grad.chunk(3)
            for part, gradient in zip(parts, gradients, strict=True):
                part.grad = gradient
        loss: float | None = super().step(closure)  # type: ignore[no-untyped-call]
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for weight, _ in self.fused:
            weight.grad = None


def make_optimizers(gpt: GPT, settings: TrainSettings) -> list[Optimizer]:
    """Muon for the matrices inside the blocks; AdamW for embeddings (with weight decay), biases and norms (without)."""
    matrices = {id(p) for p in gpt.h.parameters() if p.dim() == 2}
    others = [p for p in gpt.parameters() if id(p) not in matrices]
    groups = [
        {"params": [p for p in others if p.dim() == 2], "weight_decay": settings.embd_decay},
        {"params": [p for p in others if p.dim() < 2], "weight_decay": 0.0},
    ]
    return [
        BlockMuon(gpt, lr=settings.muon_lr, weight_decay=settings.weight_decay),
        AdamW(groups, lr=settings.adamw_lr, betas=(0.9, 0.95)),
    ]
