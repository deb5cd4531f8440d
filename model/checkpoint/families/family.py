"""What a family of models calls its config fields and tensors, and how its files hold the parameters of ``GPT``."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...config import (
    MAX_VOCAB_SIZE,
    Activation,
    DynamicScaling,
    GPTConfig,
    LinearScaling,
    Llama3Scaling,
    RotaryConfig,
    Scaling,
    YarnScaling,
    check_int,
    check_positive,
    is_number,
)
from ...errors import InvalidValue, Mismatch, NotMultiple

OPENS = "these types open: gemma3_text, gpt2, gpt_neo, gpt_neox, llama, mistral, olmo2, opt, qwen2, qwen3"
# Positions used of a model whose positions are rotary: a GPU's graphs need room for the whole context of every text at
# once, while a CPU's memory is taken only as texts become longer.
MAX_ROTARY_CONTEXT = 8_192
# The names of activation functions in a ``config.json``; several name the same function.
GELU: dict[object, Activation] = {
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu": "gelu",
}
SILU: dict[object, Activation] = {"silu": "silu", "swish": "silu"}
# Keys for features that no family has here: only these values, which turn the feature off, are accepted.
NEUTRAL: dict[str, tuple[object, str]] = {
    "add_cross_attention": (False, "a model with cross-attention"),
    "quantization_config": (None, "a model with quantised weights"),
    "pruned_heads": ({}, "a model with pruned heads"),
    "is_encoder_decoder": (False, "an encoder-decoder model"),
    "attn_logit_softcapping": (None, "a model that caps its attention scores"),
    "final_logit_softcapping": (None, "a model that caps its logits"),
    "num_experts": (None, "a mixture of experts"),
    "num_local_experts": (None, "a mixture of experts"),
}
ORIGINAL = "original_max_position_embeddings"
SCALINGS: dict[str, tuple[type[Scaling], dict[str, str]]] = {
    "linear": (LinearScaling, {"factor": "factor"}),
    "dynamic": (DynamicScaling, {"factor": "factor"}),
    "llama3": (
        Llama3Scaling,
        {name: name for name in ("factor", "low_freq_factor", "high_freq_factor")}
        | {ORIGINAL: "original_context_length"},
    ),
    "yarn": (
        YarnScaling,
        {name: name for name in ("factor", "attention_factor", "beta_fast", "beta_slow", "truncate")}
        | {ORIGINAL: "original_context_length"},
    ),
}
# What torch.compile and DistributedDataParallel add to the names of a model that they wrap, or of a part of it.
WRAPPERS = re.compile(r"(?<![^.])(?:_orig_mod|module)\.")
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
    defaults: Json  # transformers' values of the fields that a config.json may leave out
    ignored: re.Pattern[str]  # names of stored buffers, which a model computes itself
    config_from: Callable[[Json], GPTConfig]  # from a config.json with all fields
    config_to: Callable[[GPTConfig], Json]  # without model type and token ids
    tensors: Callable[[GPTConfig], Iterator[tuple[str, Stored]]]  # by their names without the prefix
    zeros: Callable[[GPTConfig], dict[str, torch.Size]] = lambda _config: {}  # stored or not, if ``GPT`` lacks them
    other_names: Mapping[str, str] = {}  # of the modules of transformers 5, where its files have older ones

    def short(self, stored: str) -> str:
        """A tensor's name without wrappers and without the prefix, which files of a model without a head lack."""
        name = WRAPPERS.sub("", stored).removeprefix(self.prefix)
        return self.other_names.get(name, name)


class Fields(NamedTuple):
    """What a family's ``config.json`` calls sizes and choices that its models have in common with ``GPTConfig``."""

    sizes: Mapping[str, str]  # which a file must have, by the names of ``GPTConfig``
    options: Mapping[str, str]
    activation: str
    activations: Mapping[object, Activation] = GELU  # by their names in the file

    def read(self, content: Json, others: Callable[[Json], Json] = lambda _sizes: {}) -> GPTConfig:
        """The config of a file. Its ``others`` are a function of the sizes. Raises ``InvalidValue`` or ``Mismatch``."""
        function = activation(content, self.activation, self.activations)
        check_off(content)
        found = sizes(content, self.sizes)
        chosen = options(content, self.options) | {"activation_function": function} | others(found)
        return build({**self.sizes, **self.options}, **found, **chosen)

    def write(self, config: GPTConfig) -> Json:
        """The reverse."""
        return names(config, {**self.sizes, **self.options, self.activation: "activation_function"})


def unsupported(name: str, value: object, allowed: str, kind: str = "") -> InvalidValue:
    """The error for a feature that is not supported, which makes a model one of this ``kind``."""
    return InvalidValue(name, value, f"{allowed} ({kind + ' does not open; ' if kind else ''}{OPENS})")


def check_off(content: Json) -> None:
    """Raise ``InvalidValue`` if a feature that no family has here is in use."""
    for name, (off, kind) in NEUTRAL.items():
        if content.get(name, off) not in (off, None):
            raise unsupported(name, content[name], json.dumps(off), kind)


def build(fields: Mapping[str, str], **choices: Any) -> GPTConfig:
    """A ``GPTConfig``. Raises ``Mismatch`` with the names in the file, which ``fields`` gives for those of ours."""
    theirs = {ours: name for name, ours in fields.items()}
    try:
        return GPTConfig(**choices)
    except InvalidValue as error:
        raise Mismatch(f"{theirs.get(error.field, error.field)} {error.value}", error.expected) from None
    except NotMultiple as error:
        field, unit = (theirs.get(name, name) for name in (error.field, error.unit))
        raise NotMultiple(field, error.value, unit, error.unit_value) from None


def activation(content: Json, name: str, known: Mapping[object, Activation]) -> Activation:
    """The activation function. Raises ``InvalidValue`` unless it is one of the ``known`` ones."""
    value = content[name]
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


def names(config: GPTConfig | Scaling, fields: Mapping[str, str]) -> Json:
    """The reverse: the values of ``config`` under their names in a ``config.json``."""
    return {name: getattr(config, field) for name, field in fields.items()}


def rotary(content: Json, head_dim: int, theta: str = "rope_theta", fraction: str | None = None) -> RotaryConfig:
    """The rotation of a ``config.json``, as transformers 4 or 5 writes it. Raises ``InvalidValue`` or ``Mismatch``.

    Outside ``rope_scaling`` and ``rope_parameters``, the fields ``theta`` and ``fraction`` give the base and the part
    of each head that is rotated; without ``fraction``, the family always rotates all of it.
    """
    field = "rope_scaling" if content.get("rope_scaling") else "rope_parameters"
    rope = content.get(field) or {}
    if not isinstance(rope, dict):
        raise InvalidValue(field, rope, "an object")
    if any(isinstance(value, dict) for value in rope.values()):  # in transformers 5, one for each kind of attention
        raise unsupported(field, rope, "one rotation for all layers")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default" and (not isinstance(kind, str) or kind not in SCALINGS):
        raise unsupported("rope_type", kind, f"'default', {', '.join(map(repr, SCALINGS))}")
    values = {"partial_rotary_factor": 1.0, ORIGINAL: content["max_position_embeddings"]} | content | rope
    values |= {name: content[name] for name in (ORIGINAL,) if name in content}  # outside, it has the last word
    theta = "rope_theta" if "rope_theta" in rope else theta
    check_positive(theta, values[theta])
    part = "partial_rotary_factor" if fraction is None or "partial_rotary_factor" in rope else fraction
    if not is_number(values[part]) or not 0 < values[part] <= 1:
        raise InvalidValue(part, values[part], "a number above 0 and at most 1")
    if fraction is None and values[part] != 1:
        raise unsupported(part, values[part], "1")
    return RotaryConfig(n_dim=int(head_dim * values[part]), theta=values[theta], scaling=scaling_of(kind, values))


def scaling_of(kind: str, values: Json) -> Scaling | None:
    """The scaling of this ``rope_type``, None for "default". Raises ``InvalidValue`` or ``Mismatch``."""
    if kind == "default":
        return None
    scaling, fields = SCALINGS[kind]
    if kind == "yarn":
        betas: Json = {"beta_fast": values.get("beta_fast") or 32.0, "beta_slow": values.get("beta_slow") or 1.0}
        values = {"truncate": values.get("truncate", True)} | values | betas
        if values.get("attention_factor") is None:
            values["attention_factor"] = attention_factor(values)
    return scaling(**required(values, fields))


def attention_factor(values: Json) -> float:
    """YaRN's factor of queries and keys, where a file does not give it."""
    factor = required(values, {"factor": "factor"})["factor"]
    check_positive("factor", factor)
    scales = [values.get(name) or 0.0 for name in ("mscale", "mscale_all_dim")]
    for name, scale in zip(("mscale", "mscale_all_dim"), scales, strict=True):
        if scale != 0:
            check_positive(name, scale)
    above, below = (0.1 * scale * math.log(max(factor, 1)) + 1 for scale in (scales if all(scales) else (1.0, 0.0)))
    return float(above / below)


def rotation(config: GPTConfig) -> RotaryConfig:
    """The rotation of a family that has one. Raises ``Mismatch`` if positions are learned."""
    if config.rotary is None:
        raise Mismatch("learned positions", "rotary ones")
    return config.rotary


def rope_scaling(config: RotaryConfig) -> Json | None:
    """The ``rope_scaling`` of a ``config.json``."""
    if config.scaling is None:
        return None
    kind, fields = next((kind, fields) for kind, (of, fields) in SCALINGS.items() if isinstance(config.scaling, of))
    return {"rope_type": kind} | names(config.scaling, fields)


def parts_of_rows(config: GPTConfig) -> dict[str, dict[str, int]]:
    """The rows of the fused projection that hold the queries, the keys and the values: ``start`` and ``stop``."""
    ends = list(itertools.accumulate(config.qkv_dims, initial=0))
    return {part: {"start": ends[i], "stop": ends[i + 1]} for i, part in enumerate("qkv")}


def layer(name: str, parameter: str, has_bias: bool, **place: Any) -> Iterator[tuple[str, Stored]]:
    """A layer's weight, and its bias if it has one."""
    for part in ("weight", "bias") if has_bias else ("weight",):
        yield f"{name}.{part}", Stored(f"{parameter}.{part}", **place)
