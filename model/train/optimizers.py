"""The optimizers: Muon for the matrices inside the blocks, AdamW for everything else."""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

from ..gpt import GPT
from ..seams.torch import between, move_towards, scale
from .settings import TrainSettings


class BlockMuon(Muon):
    """Muon (Jordan et al. 2024) for the matrices inside the blocks.

    The fused projection contains three matrices, for queries, keys and values, and the first layer of a gated MLP
    two. Each is orthogonalised separately; otherwise the one with the largest gradient would dominate the update of
    the others.
    """

    def __init__(self, gpt: GPT, lr: float, weight_decay: float) -> None:
        config, blocks = gpt.config, gpt.blocks
        fused: list[tuple[Tensor, Sequence[int]]] = [(block.attn.c_attn.weight, config.qkv_dims) for block in blocks]
        if config.gated_mlp:
            fused += [(block.mlp.c_fc.weight, (config.inner_dim, config.inner_dim)) for block in blocks]
        # Separate parameters that share memory with the fused ones.
        self.fused = [
            (weight, sizes, [nn.Parameter(part) for part in weight.detach().split(sizes)]) for weight, sizes in fused
        ]
        whole = [p for p in gpt.h.parameters() if p.dim() == 2 and not any(p is weight for weight, _ in fused)]
        parts = [part for _, _, parts in self.fused for part in parts]
        super().__init__([*whole, *parts], lr=lr, weight_decay=weight_decay)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step of Muon. Small matrices of one size are orthogonalised together, which is three times as fast."""
        assert closure is None
        for weight, sizes, parts in self.fused:
            gradients = [None] * len(parts) if weight.grad is None else weight.grad.split(sizes)
            for part, gradient in zip(parts, gradients, strict=True):
                part.grad = gradient
        (group,) = self.param_groups
        weights: list[Tensor] = [p for p in group["params"] if p.grad is not None]
        if not weights:
            return
        gradients_now = [cast(Tensor, p.grad) for p in weights]
        momenta = [self.state[p].setdefault("momentum_buffer", torch.zeros_like(p)) for p in weights]
        move_towards(momenta, gradients_now, 1 - group["momentum"])
        updates = between(gradients_now, momenta, group["momentum"])  # Nesterov's
        scale(weights, 1 - group["lr"] * group["weight_decay"])
        for places in same_size(updates).values():
            stacked = torch.stack([wide(updates[i]) for i in places])
            for i, update in zip(places, orthogonalise(stacked, group).to(weights[0].dtype), strict=True):
                rows, columns = weights[i].shape
                rate = group["lr"] * math.sqrt(max(1.0, rows / columns))
                weights[i].sub_(update if rows <= columns else update.mT, alpha=rate)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for weight, _, _ in self.fused:
            weight.grad = None


def wide(matrix: Tensor) -> Tensor:
    """The matrix itself, or its transpose if it has more rows than columns."""
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT


def same_size(matrices: Sequence[Tensor]) -> dict[torch.Size, list[int]]:
    """The indices of the matrices, grouped by their size once they are ``wide``."""
    places: dict[torch.Size, list[int]] = {}
    for i, matrix in enumerate(matrices):
        places.setdefault(wide(matrix).shape, []).append(i)
    return places


def orthogonalise(matrices: Tensor, group: dict[str, Any]) -> Tensor:
    """Bring all singular values of each of ``matrices`` ``(n, rows, columns)`` near 1, in bfloat16.

    The Newton-Schulz iteration of ``torch.optim.Muon``, with the coefficients of its ``group``, on all of them at once.
    """
    a, b, c = group["ns_coefficients"]
    x = matrices.bfloat16()
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=group["eps"])
    for _ in range(group["ns_steps"]):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


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
