"""The weights with which a training begins."""

from torch import nn


def init_weights(gpt: nn.Module, n_layer: int) -> None:
    """Initialise as GPT-2: std 0.02, divided by sqrt(2 * n_layer) for the projections into the residual stream."""
    for name, parameter in gpt.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        elif name.endswith("c_proj.weight"):
            nn.init.normal_(parameter, std=0.02 * (2 * n_layer) ** -0.5)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
