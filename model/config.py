"""The configuration of a GPT: one frozen dataclass, validated on construction."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from .errors import InvalidValue, Mismatch

# Larger values are rejected before anything is allocated. Every published GPT-2-shaped model is within these bounds.
MAX_N_LAYER = 512
MAX_N_HEAD = 512
MAX_N_EMBD = 65_536
MAX_VOCAB_SIZE = 4_000_000
MAX_CONTEXT_LENGTH = 1_048_576
MAX_PARAMETERS = 20_000_000_000

Activation = Literal["gelu_new", "gelu"]  # the tanh form of GELU, as in GPT-2, or the exact one, as in nanoGPT


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Sizes and switches of a GPT-2-shaped transformer, named as in a GPT-2 ``config.json``.

    ``context_length`` is called ``n_positions`` there. Raises ``ValueError`` naming the field, what was found and
    what is allowed.
    """

    n_layer: int
    n_head: int
    n_embd: int
    vocab_size: int
    context_length: int
    n_inner: int | None = None  # width of the MLP; None means 4 * n_embd
    activation_function: Activation = "gelu_new"
    layer_norm_epsilon: float = 1e-5
    qkv_bias: bool = True
    tie_word_embeddings: bool = True  # the output head is the token embedding
    scale_attn_weights: bool = True  # divide the attention scores by sqrt(head_dim)
    scale_attn_by_inverse_layer_idx: bool = False  # also divide the scores by layer + 1
    embd_pdrop: float = 0.0
    attn_pdrop: float = 0.0
    resid_pdrop: float = 0.0

    def __post_init__(self) -> None:
        check_int("n_layer", self.n_layer, MAX_N_LAYER)
        check_int("n_head", self.n_head, MAX_N_HEAD)
        check_int("n_embd", self.n_embd, MAX_N_EMBD)
        check_int("vocab_size", self.vocab_size, MAX_VOCAB_SIZE)
        check_int("context_length (n_positions)", self.context_length, MAX_CONTEXT_LENGTH)
        if self.n_inner is not None:
            check_int("n_inner", self.n_inner, 16 * MAX_N_EMBD)
        if self.n_embd % self.n_head:
            raise Mismatch(f"n_embd {self.n_embd} with n_head {self.n_head}", "an n_embd divisible by n_head")
        if self.activation_function not in get_args(Activation):
            raise InvalidValue("activation_function", self.activation_function, "'gelu_new' or 'gelu'")
        for name in ("qkv_bias", "tie_word_embeddings", "scale_attn_weights", "scale_attn_by_inverse_layer_idx"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidValue(name, getattr(self, name), "true or false")
        for name in ("embd_pdrop", "attn_pdrop", "resid_pdrop"):
            if not is_number(getattr(self, name)) or not 0 <= getattr(self, name) < 1:
                raise InvalidValue(name, getattr(self, name), "a number of at least 0 and below 1")
        if not is_number(self.layer_norm_epsilon) or not 0 < self.layer_norm_epsilon < 1:
            raise InvalidValue("layer_norm_epsilon", self.layer_norm_epsilon, "a number between 0 and 1")
        if self.n_parameters > MAX_PARAMETERS:
            raise Mismatch(f"sizes that add up to {self.n_parameters:,} weights", f"at most {MAX_PARAMETERS:,}")

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def inner_dim(self) -> int:
        return self.n_inner or 4 * self.n_embd

    @property
    def n_parameters(self) -> int:
        """The number of weights; a tied output head is counted once."""
        n, m = self.n_embd, self.inner_dim
        attention = n * 3 * n + (3 * n if self.qkv_bias else 0) + n * n + n
        block = attention + (n * m + m) + (m * n + n) + 4 * n
        embeddings = 1 if self.tie_word_embeddings else 2
        return embeddings * self.vocab_size * n + self.context_length * n + self.n_layer * block + 2 * n

    def attention_scale(self, layer: int) -> float:
        """The factor by which ``layer`` (counted from 0) multiplies its attention scores."""
        scale = self.head_dim**-0.5 if self.scale_attn_weights else 1.0
        return scale / (layer + 1) if self.scale_attn_by_inverse_layer_idx else scale


def is_number(value: object) -> bool:
    """Whether ``value`` is a finite int or float; booleans do not count as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def check_int(name: str, value: object, most: int, least: int = 1) -> None:
    """Raise ``ValueError`` unless ``value`` is an integer from ``least`` to ``most``."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidValue(name, value, f"an integer from {least} to {most:,}")
