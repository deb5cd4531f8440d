"""The MLP of a block."""

from torch import Tensor, nn
from torch.nn import functional as F

from ..config import GPTConfig
from .hooks import NO_HOOKS, Hooks


class MLP(nn.Module):
    """Two linear layers with an activation between them: ``(B, T, C) -> (B, T, C)``.

    In a gated MLP (Shazeer 2020) the first layer has twice as many outputs, and the second half multiplies the
    activations of the first.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.is_gated, self.activation = config.gated_mlp, config.activation_function
        self.c_fc = nn.Linear(config.n_embd, config.inner_dim * (2 if self.is_gated else 1), bias=config.mlp_bias)
        self.c_proj = nn.Linear(config.inner_dim, config.n_embd, bias=config.mlp_bias)

    def forward(self, x: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        return self.output(self.neurons(x, hooks))

    def neurons(self, x: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The neurons after the activation function, ``(B, T, inner_dim)``."""
        return hooks.at("hook_post", self.activate(self.c_fc(x), hooks))

    def output(self, neurons: Tensor) -> Tensor:
        """What the MLP adds to the residual stream: ``(..., inner_dim)`` to ``(..., C)``."""
        return self.c_proj(neurons)

    def activate(self, hidden: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The input of the second layer ``(..., inner_dim)`` from the output of the first."""
        if self.is_gated:
            gate, up = hidden.chunk(2, dim=-1)
            return self.nonlinear(hooks.at("hook_pre", gate)) * hooks.at("hook_pre_linear", up)
        return self.nonlinear(hooks.at("hook_pre", hidden))

    def nonlinear(self, x: Tensor) -> Tensor:
        """SiLU, ReLU, or GELU (Hendrycks & Gimpel 2016), exact or in its tanh form."""
        if self.activation == "silu":
            return F.silu(x)
        if self.activation == "relu":
            return F.relu(x)
        return F.gelu(x, approximate="tanh" if self.activation == "gelu_new" else "none")
