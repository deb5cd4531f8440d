"""The norms of a layer: what attention and the MLP read of the residual stream, and what they add to it."""

from torch import Tensor, nn

from ..config import GPTConfig
from .hooks import NO_HOOKS, Hooks
from .norm import LayerNorm, NoNorm, RMSNorm, held, make_norm, normalise

Norm = LayerNorm | RMSNorm | NoNorm


def norms_around(config: GPTConfig) -> tuple[Norm, Norm]:
    """The norms before and after attention, or before and after the MLP."""
    before, after = config.norm_place != "after", config.norm_place != "before"
    return make_norm(config) if before else NoNorm(), make_norm(config) if after else NoNorm()


def name_after(name: str, before: Norm) -> str:
    """The name that points give the norm after a part: that of the one ``before`` it, unless there is one."""
    return f"{name}." if isinstance(before, NoNorm) else f"{name}_post."


class LayerNorms(nn.Module):
    """The norms before and after attention and the MLP, of which a layer has some.

    A norm after attention divides by a number that depends on the outputs of all heads. For what one head adds to the
    residual stream, or any other part of that output, this divisor is held as it is for the whole output: then the
    parts add up to what attention adds, as they do in a model without such norms (Elhage et al. 2021).
    """

    ln_1: Norm
    ln_1_post: Norm
    ln_2: Norm
    ln_2_post: Norm

    def attention_input(self, x: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The input of attention: the residual stream ``(..., C)``, normalised if the model does so."""
        return normalise(self.ln_1, x, hooks.within("ln1."))

    def attention_output(self, output: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """What attention adds to the residual stream: its ``output`` ``(..., C)``, normalised if the model does so."""
        return normalise(self.ln_1_post, output, hooks.within(name_after("ln1", self.ln_1)))

    def mlp_output(self, output: Tensor, hooks: Hooks = NO_HOOKS) -> Tensor:
        """The same for the MLP."""
        return normalise(self.ln_2_post, output, hooks.within(name_after("ln2", self.ln_2)))

    def fold_norm(self, rows: Tensor, *, centred: bool = True) -> Tensor:
        """Convert ``rows`` ``(..., C)`` that act on attention's input into rows that act on the residual stream."""
        return self.ln_1.fold(rows, centred=centred)

    def attention_adds(self, part: Tensor, output: Tensor | None = None) -> Tensor:
        """What a ``part`` ``(..., C)`` of attention's ``output`` ``(..., C)`` adds to the residual stream.

        The part of a head with the context vector ``z`` is ``z @ W_O``. Without an ``output``, the division is left
        out, which changes the length of a vector and not its direction.
        """
        return held(self.ln_1_post, part, output)

    def mlp_adds(self, part: Tensor, output: Tensor | None = None) -> Tensor:
        """The same for the MLP."""
        return held(self.ln_2_post, part, output)

    def divided(self, x: Tensor, output: Tensor) -> Tensor:
        """``x`` ``(..., T, n)``, divided as a norm after attention divides attention's ``output`` ``(T, C)``."""
        return x / self.ln_1_post.divisor(output)[..., None]
