"""What a family of models calls its config fields and tensors, and how its files hold the parameters of ``GPT``."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..config import MAX_VOCAB_SIZE, Activation, GPTConfig, Llama3Scaling, RotaryConfig, check_int, is_number
from ..errors import InvalidValue, Mismatch

OPENS = "models of the types gpt2, gpt_neox, llama, mistral, qwen2 and qwen3 open"
# The names of activation functions in a ``config.json``; several name the same function.
GELU: dict[object, Activation] = {
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu": "gelu",
}
SILU: dict[object, Activation] = {"silu": "silu", "swish": "silu"}
# Keys for features that no family has here: only these values, which turn the feature off, are accepted.
NEUTRAL: dict[str, object] = {
    "add_cross_attention": False,
    "quantization_config": None,
    "pruned_heads": {},
    "is_encoder_decoder": False,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "num_experts": None,
    "num_local_experts": None,
}
LLAMA3 = {
    "factor": "factor",
    "low_freq_factor": "low_freq_factor",
    "high_freq_factor": "high_freq_factor",
    "original_max_position_embeddings": "original_context_length",
}
Json = dict[str, Any]  # from an untrusted file: ``GPTConfig`` checks the values


class Stored(NamedTuple):
    """A stored tensor is the rows ``start`` to ``stop - 1`` of a ``parameter`` of ``GPT``, in another arrangement."""

    parameter: str
    start: int = 0
    stop: int | None = None
    to_file: Callable[[Tensor], Tensor] = lambda tensor: tensor
    from_file: Callable[[Tensor], Tensor] = lambda tensor: tensor


class Family(NamedTuple):
    """One family of models."""

    model_type: str
    architecture: str  # transformers' class
    prefix: str  # of the names of all tensors except the output head's
    ignored: re.Pattern[str]  # names of stored buffers, which a model computes itself
    config_from: Callable[[Json], GPTConfig]  # from a config.json
    config_to: Callable[[GPTConfig], Json]  # without model type and token ids
    tensors: Callable[[GPTConfig], Iterator[tuple[str, Stored]]]  # by their names without the prefix
    zeros: Callable[[GPTConfig], dict[str, torch.Size]] = lambda _config: {}  # stored or not, if ``GPT`` lacks them

    def short(self, stored: str) -> str:
        """A tensor's name without the prefix, which files of a model without an output head lack."""
        return stored.removeprefix(self.prefix)


def unsupported(name: str, value: object, allowed: str) -> InvalidValue:
    """The error for a feature that is not supported."""
    return InvalidValue(name, value, f"{allowed} ({OPENS})")


def check_off(content: Json, features: Mapping[str, object]) -> None:
    """Raise ``InvalidValue`` unless each of the ``features`` in ``content`` is null or has the value given here."""
    for name, off in features.items():
        if content.get(name, off) not in (off, None):
            raise unsupported(name, content[name], json.dumps(off))


def activation(content: Json, name: str, known: Mapping[object, Activation]) -> Activation:
    """The activation function, the first of the ``known`` ones if none is named. Raises ``InvalidValue``."""
    value = content.get(name, next(iter(known)))
    if not isinstance(value, str) or value not in known:
        raise unsupported(name, value, " or ".join(map(repr, dict.fromkeys(known.values()))))
    return known[value]


def required(content: Json, fields: Mapping[str, str]) -> Json:
    """The required fields, under their names in the config. Raises ``Mismatch`` naming those that are missing."""
    missing = [name for name in fields if name not in content]
    if missing:
        raise Mismatch(f"no {' and no '.join(missing)}", f"each of {', '.join(fields)}")
    return {field: content[name] for name, field in fields.items()}


def sizes(content: Json, fields: Mapping[str, str]) -> Json:
    """The required sizes, under their names in ``GPTConfig``."""
    numbers = required(content, fields)
    for name, field in fields.items():
        if name != field:  # otherwise ``GPTConfig`` names it
            check_int(name, content[name], MAX_VOCAB_SIZE)
    return numbers


def options(content: Json, fields: Mapping[str, str]) -> Json:
    """The optional fields that are present, under their names in ``GPTConfig``."""
    return {field: content[name] for name, field in fields.items() if name in content}


def names(config: GPTConfig | Llama3Scaling, fields: Mapping[str, str]) -> Json:
    """The reverse: the values of ``config`` under their names in a ``config.json``."""
    return {name: getattr(config, field) for name, field in fields.items()}


def rotary(content: Json, head_dim: int, fraction: Any = 1.0) -> RotaryConfig:
    """The rotation of a ``config.json``, as transformers 4 or 5 writes it. Raises ``InvalidValue``.

    ``fraction`` is the part of each head that is rotated unless the content says otherwise.
    """
    field = "rope_parameters" if content.get("rope_parameters") else "rope_scaling"
    rope = content.get(field) or {}
    if not isinstance(rope, dict):
        raise InvalidValue(field, rope, "an object")
    if any(isinstance(value, dict) for value in rope.values()):  # in transformers 5, one for each kind of attention
        raise unsupported(field, rope, "one rotation for all layers")
    rope = {"rope_theta": 10_000.0, "partial_rotary_factor": fraction, **content, **rope}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ("default", "llama3"):
        raise unsupported("rope_type", kind, "'default' or 'llama3'")
    fraction = rope["partial_rotary_factor"]
    if not is_number(fraction) or not 0 < fraction <= 1:
        raise InvalidValue("partial_rotary_factor", fraction, "a number above 0 and at most 1")
    scaling = Llama3Scaling(**required(rope, LLAMA3)) if kind == "llama3" else None
    return RotaryConfig(n_dim=int(head_dim * fraction), theta=rope["rope_theta"], scaling=scaling)


def rope_scaling(config: RotaryConfig) -> Json | None:
    """The ``rope_scaling`` of a ``config.json``."""
    if config.scaling is None:
        return None
    return {"rope_type": "llama3"} | names(config.scaling, LLAMA3)


def layer(name: str, parameter: str, has_bias: bool, **place: Any) -> Iterator[tuple[str, Stored]]:
    """A layer's weight, and its bias if it has one."""
    for part in ("weight", "bias") if has_bias else ("weight",):
        yield f"{name}.{part}", Stored(f"{parameter}.{part}", **place)
