"""The configuration of a GPT: one frozen dataclass, validated on construction."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from .errors import InvalidValue, Mismatch, NotMultiple

# Larger values are rejected before anything is allocated. Every published GPT-2-shaped model is within these bounds.
MAX_N_LAYER = 512
MAX_N_HEAD = 512
MAX_N_EMBD = 65_536
MAX_VOCAB_SIZE = 4_000_000
MAX_CONTEXT_LENGTH = 1_048_576
MAX_PARAMETERS = 20_000_000_000

# The tanh form of GELU, as in GPT-2; the exact one, as in nanoGPT; x * sigmoid(x), as in Llama; max(x, 0).
Activation = Literal["gelu_new", "gelu", "silu", "relu"]
Norm = Literal["LayerNorm", "RMSNorm"]
# Of a layer: what attention and the MLP read of the residual stream, what they add to it, or both.
NormPlace = Literal["before", "after", "both"]


@dataclass(frozen=True, kw_only=True)
class Llama3Scaling:
    """Llama 3.1's change of the rotation's frequencies, for texts longer than the ``original_context_length``.

    Wavelengths, in positions, above ``original_context_length / low_freq_factor`` become ``factor`` times longer, those
    below ``original_context_length / high_freq_factor`` stay, and in between the change is interpolated.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context_length: int

    def __post_init__(self) -> None:
        for name in ("factor", "low_freq_factor", "high_freq_factor"):
            check_positive(name, getattr(self, name))
        check_int("original_max_position_embeddings", self.original_context_length, MAX_CONTEXT_LENGTH)
        if self.low_freq_factor >= self.high_freq_factor:
            found = f"low_freq_factor {self.low_freq_factor} with high_freq_factor {self.high_freq_factor}"
            raise Mismatch(found, "the low one below the high one")


@dataclass(frozen=True, kw_only=True)
class LinearScaling:
    """All frequencies divided by ``factor`` (Chen et al. 2023, position interpolation)."""

    factor: float

    def __post_init__(self) -> None:
        check_positive("factor", self.factor)


@dataclass(frozen=True, kw_only=True)
class DynamicScaling:
    """Frequencies that change with the length of texts longer than the context, and of no others."""

    factor: float

    def __post_init__(self) -> None:
        check_positive("factor", self.factor)


@dataclass(frozen=True, kw_only=True)
class YarnScaling:
    """YaRN (Peng et al. 2023): slow planes turn ``factor`` times slower, fast ones as before, others in between.

    Planes that turn less than ``beta_slow`` times in ``original_context_length`` positions are slow, those that turn
    more than ``beta_fast`` times fast; with ``truncate``, up to whole planes. Queries and keys are multiplied by
    ``attention_factor``, which here is part of the scale of the scores.
    """

    factor: float
    attention_factor: float
    beta_fast: float
    beta_slow: float
    truncate: bool
    original_context_length: int

    def __post_init__(self) -> None:
        for name in ("factor", "attention_factor", "beta_fast", "beta_slow"):
            check_positive(name, getattr(self, name))
        if not isinstance(self.truncate, bool):
            raise InvalidValue("truncate", self.truncate, "true or false")
        check_int("original_max_position_embeddings", self.original_context_length, MAX_CONTEXT_LENGTH)


Scaling = Llama3Scaling | LinearScaling | DynamicScaling | YarnScaling


@dataclass(frozen=True, kw_only=True)
class RotaryConfig:
    """Positions as rotations of queries and keys (Su et al. 2021), by frequencies from 1 down to about ``1 / theta``.

    The first ``n_dim`` numbers of each head are rotated in pairs; the others have no position.
    """

    n_dim: int
    theta: float = 10_000.0
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        check_positive("rope_theta", self.theta)
        if isinstance(self.scaling, YarnScaling) and self.theta <= 1:
            raise InvalidValue("rope_theta", self.theta, "a number above 1 with yarn")

    @property
    def score_factor(self) -> float:
        """The factor of the attention scores that a scaling brings."""
        return self.scaling.attention_factor**2 if isinstance(self.scaling, YarnScaling) else 1.0


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Sizes and choices of a transformer, named as in a GPT-2 ``config.json``; the defaults are GPT-2's choices.

    ``context_length`` is called ``n_positions`` there. Raises ``ValueError`` naming the field, what was found and
    what is allowed.
    """

    n_layer: int
    n_head: int
    n_embd: int
    vocab_size: int
    context_length: int
    n_kv_head: int = 0  # heads of keys and values, each shared by a group of query heads; 0 means n_head
    head_dim: int = 0  # 0 means n_embd / n_head
    n_inner: int | None = None  # width of the MLP; None means 4 * n_embd
    rotary: RotaryConfig | None = None  # None: a learned embedding for each position
    rotaries: tuple[RotaryConfig, ...] = ()  # of each layer, where these differ from each other
    windows: tuple[int | None, ...] = ()  # of each layer: how many tokens a query sees, itself included; None: all
    norm: Norm = "LayerNorm"
    norm_place: NormPlace = "before"
    layer_norm_epsilon: float = 1e-5
    qk_norm: bool = False  # RMSNorm of each query and key, before the rotation (Henry et al. 2020)
    joint_qk_norm: bool = False  # the queries of all heads are one vector for that norm, and so are the keys
    activation_function: Activation = "gelu_new"
    gated_mlp: bool = False  # a second product of the MLP's input multiplies the activations (Shazeer 2020)
    parallel: bool = False  # the MLP reads the same residual stream as attention (Wang & Komatsuzaki 2021)
    qkv_bias: bool = True
    attn_proj_bias: bool = True
    mlp_bias: bool = True
    tie_word_embeddings: bool = True  # the output head is the token embedding
    scale_embeddings: bool = False  # multiply those of tokens by sqrt(n_embd), but not the output head
    scale_attn_weights: bool = True  # divide the attention scores by sqrt(head_dim)
    query_pre_attn_scalar: float | None = None  # in place of head_dim there
    scale_attn_by_inverse_layer_idx: bool = False  # also divide the scores by layer + 1
    embd_pdrop: float = 0.0
    attn_pdrop: float = 0.0
    resid_pdrop: float = 0.0

    def __post_init__(self) -> None:
        check_int("n_layer", self.n_layer, MAX_N_LAYER)
        check_int("n_head", self.n_head, MAX_N_HEAD)
        check_int("n_embd", self.n_embd, MAX_N_EMBD)
        check_int("vocab_size", self.vocab_size, MAX_VOCAB_SIZE)
        check_int("context_length", self.context_length, MAX_CONTEXT_LENGTH)
        if self.n_inner is not None:
            check_int("n_inner", self.n_inner, 16 * MAX_N_EMBD)
        if self.head_dim:
            check_int("head_dim", self.head_dim, MAX_N_EMBD)
        elif self.n_embd % self.n_head:
            raise NotMultiple("n_embd", self.n_embd, "n_head", self.n_head)
        check_int("n_kv_head", self.n_kv_head, self.n_head, least=0)
        object.__setattr__(self, "head_dim", self.head_dim or self.n_embd // self.n_head)
        object.__setattr__(self, "n_kv_head", self.n_kv_head or self.n_head)
        if self.n_head % self.n_kv_head:
            raise NotMultiple("n_head", self.n_head, "n_kv_head", self.n_kv_head)
        if self.rotary is not None:
            check_int("the number of rotated dimensions", self.rotary.n_dim, self.head_dim, least=2)
            if self.rotary.n_dim % 2:
                raise Mismatch(f"{self.rotary.n_dim} rotated dimensions", "an even number")
            if self.rotary.score_factor != 1 and self.rotary.n_dim != self.head_dim:
                found = f"an attention_factor of yarn with {self.rotary.n_dim} rotated dimensions"
                raise Mismatch(found, f"all {self.head_dim} rotated, or the factor 1")
        if self.rotaries:
            self.check_rotaries()
        if self.norm_place not in get_args(NormPlace) or (self.parallel and self.norm_place != "before"):
            raise InvalidValue("norm_place", self.norm_place, "'before', or in sequential blocks 'after' or 'both'")
        if self.norm_place != "before" and self.norm != "RMSNorm":
            raise Mismatch(f"{self.norm} after attention", "RMSNorm")
        if self.joint_qk_norm and not self.qk_norm:
            raise Mismatch("joint_qk_norm without qk_norm", "both")
        if self.query_pre_attn_scalar is not None:
            check_positive("query_pre_attn_scalar", self.query_pre_attn_scalar)
        if self.activation_function not in get_args(Activation):
            raise InvalidValue("activation_function", self.activation_function, "'gelu_new', 'gelu', 'silu' or 'relu'")
        if self.norm not in get_args(Norm):
            raise InvalidValue("norm", self.norm, "'LayerNorm' or 'RMSNorm'")
        if self.windows:
            self.check_windows()
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise InvalidValue(name, getattr(self, name), "true or false")
        for name in ("resid_pdrop", "attn_pdrop", "embd_pdrop"):
            if not is_number(getattr(self, name)) or not 0 <= getattr(self, name) < 1:
                raise InvalidValue(name, getattr(self, name), "a number of at least 0 and below 1")
        if not is_number(self.layer_norm_epsilon) or not 0 < self.layer_norm_epsilon < 1:
            raise InvalidValue("layer_norm_epsilon", self.layer_norm_epsilon, "a number between 0 and 1")
        if self.n_parameters > MAX_PARAMETERS:
            raise Mismatch(f"sizes that add up to {self.n_parameters:,} weights", f"at most {MAX_PARAMETERS:,}")

    def check_windows(self) -> None:
        """Raise ``ValueError`` for windows that are none; those that no text is longer than become None."""
        if len(self.windows) != self.n_layer:
            raise Mismatch(f"{len(self.windows)} windows for {self.n_layer} layers", "one for each layer")
        for window in self.windows:
            if window is not None:
                check_int("sliding_window", window, 10**9)
        used = [None if window is None or window >= self.context_length else window for window in self.windows]
        object.__setattr__(self, "windows", tuple(used) if any(used) else ())

    def check_rotaries(self) -> None:
        """Raise ``ValueError`` for rotations that do not fit the model; those that are all ``rotary`` are left out."""
        if self.rotary is None or len(self.rotaries) != self.n_layer:
            raise Mismatch(f"{len(self.rotaries)} rotations for {self.n_layer} layers", "one for each layer")
        if {each.n_dim for each in self.rotaries} != {self.rotary.n_dim}:
            raise Mismatch("rotations of different sizes", "one size")
        if {each.score_factor for each in self.rotaries} != {self.rotary.score_factor}:
            raise Mismatch("different attention factors of yarn", "one for all layers")
        if set(self.rotaries) == {self.rotary}:
            object.__setattr__(self, "rotaries", ())

    @property
    def has_loops(self) -> bool:
        """Whether the compiled loops know all of the model's choices. PyTorch's operations run any model."""
        return self.norm_place == "before" and not (self.rotaries or self.joint_qk_norm or self.scale_embeddings)

    @property
    def inner_dim(self) -> int:
        return self.n_inner or 4 * self.n_embd

    @property
    def qkv_dims(self) -> tuple[int, int, int]:
        """The dimensions of the queries, of the keys and of the values of all heads together."""
        return self.n_head * self.head_dim, self.n_kv_head * self.head_dim, self.n_kv_head * self.head_dim

    @property
    def qkv_dim(self) -> int:
        return sum(self.qkv_dims)

    @property
    def n_parameters(self) -> int:
        """The number of weights; a tied output head is counted once."""
        n, m, context = self.n_embd, self.inner_dim, self.n_head * self.head_dim
        norm = n if self.norm == "RMSNorm" else 2 * n
        attention = n * self.qkv_dim + context * n + self.qkv_bias * self.qkv_dim + self.attn_proj_bias * n
        mlp_in = 2 * m if self.gated_mlp else m
        mlp = n * mlp_in + m * n + self.mlp_bias * (mlp_in + n)
        qk_norms = (self.n_head + self.n_kv_head if self.joint_qk_norm else 2) * self.head_dim * self.qk_norm
        block = attention + mlp + (4 if self.norm_place == "both" else 2) * norm + qk_norms
        embeddings = self.vocab_size * (1 if self.tie_word_embeddings else 2)
        positions = 0 if self.rotary else self.context_length
        return (embeddings + positions) * n + self.n_layer * block + norm

    def window(self, layer: int) -> int | None:
        """How many tokens a query sees in ``layer``, itself included; None if it sees all so far."""
        return self.windows[layer] if self.windows else None

    def rotation(self, layer: int) -> RotaryConfig | None:
        """The rotation of queries and keys in ``layer``; None if positions are learned."""
        return self.rotaries[layer] if self.rotaries else self.rotary

    def attention_scale(self, layer: int) -> float:
        """The factor by which ``layer`` (counted from 0) multiplies its attention scores."""
        scale = (self.query_pre_attn_scalar or self.head_dim) ** -0.5 if self.scale_attn_weights else 1.0
        scale *= 1.0 if self.rotary is None else self.rotary.score_factor
        return scale / (layer + 1) if self.scale_attn_by_inverse_layer_idx else scale


SWITCHES = (
    "qk_norm",
    "joint_qk_norm",
    "gated_mlp",
    "parallel",
    "qkv_bias",
    "attn_proj_bias",
    "mlp_bias",
    "tie_word_embeddings",
    "scale_embeddings",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
)


def is_number(value: object) -> bool:
    """Whether ``value`` is a finite int or float; booleans do not count as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def check_int(name: str, value: object, most: int, least: int = 1) -> None:
    """Raise ``ValueError`` unless ``value`` is an integer from ``least`` to ``most``."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidValue(name, value, f"an integer from {least} to {most:,}")


def check_positive(name: str, value: object) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number above 0."""
    if not is_number(value) or not value > 0:  # type: ignore[operator]
        raise InvalidValue(name, value, "a number above 0")
