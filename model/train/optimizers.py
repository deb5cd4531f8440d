"""What moves the weights in training: Muon for the matrices inside the blocks, AdamW for all else."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from ..gpt import GPT, Block
from .settings import TrainSettings


class BlockMuon(Muon):
    """Muon (Jordan et al. 2024) for the matrices of the blocks.

    The fused projection holds three matrices, those of the queries, the keys and the values. Each is orthogonalised
    by itself: together the largest of their gradients would take the others' share.
    """

    def __init__(self, gpt: GPT, **settings: Any) -> None:
        fused = [cast(Block, block).attn.c_attn.weight for block in gpt.h]
        # Parameters of their own that share the memory of the whole.
        self.fused = [(weight, [nn.Parameter(part) for part in weight.detach().chunk(3)]) for weight in fused]
        whole = [p for p in gpt.h.parameters() if p.dim() == 2 and not any(p is weight for weight in fused)]
        super().__init__([*whole, *(part for _, parts in self.fused for part in parts)], **settings)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for weight, parts in self.fused:
            gradients: tuple[Tensor | None, ...] = (None,) * 3 if weight.grad is None else weight.grad.chunk(3)
            for part, gradient in zip(parts, gradients, strict=True):
                part.grad = gradient
        return super().step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for weight, _ in self.fused:
            weight.grad = None


def make_optimizers(gpt: GPT, settings: TrainSettings) -> list[Optimizer]:
    """Muon for the matrices inside the blocks, AdamW for the embeddings, which decay too, and for biases and norms."""
    inside = {id(p) for p in gpt.h.parameters() if p.dim() == 2}
    others = [p for p in gpt.parameters() if id(p) not in inside]
    groups = [
        {"params": [p for p in others if p.dim() == 2], "weight_decay": settings.embd_decay},
        {"params": [p for p in others if p.dim() < 2], "weight_decay": 0.0},
    ]
    return [
        BlockMuon(gpt, lr=settings.muon_lr, weight_decay=settings.weight_decay),
        AdamW(groups, lr=settings.adamw_lr, betas=(0.9, 0.95)),
    ]
