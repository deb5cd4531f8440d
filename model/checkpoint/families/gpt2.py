"""GPT-2 (Radford et al. 2019), whose module names are those of ``GPT``. Its linear weights are stored ``(in, out)``."""

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from ...config import GPTConfig
from .family import Family, Fields, Json, Stored, layer

SIZES = {name: name for name in ("n_layer", "n_head", "n_embd", "vocab_size")} | {"n_positions": "context_length"}
OPTIONS = {
    name: name
    for name in (
        "n_inner",
        "layer_norm_epsilon",
        "qkv_bias",
        "tie_word_embeddings",
        "scale_attn_weights",
        "scale_attn_by_inverse_layer_idx",
        "embd_pdrop",
        "attn_pdrop",
        "resid_pdrop",
    )
}
FIELDS = Fields(SIZES, OPTIONS, "activation_function")
DEFAULTS: Json = {
    "activation_function": "gelu_new",
    "n_positions": 1_024,
    "bos_token_id": 50_256,
    "eos_token_id": 50_256,
}


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias", "lm_head.weight"):
        yield name, Stored(name)
    for i in range(config.n_layer):
        for norm in (f"h.{i}.ln_1", f"h.{i}.ln_2"):
            yield from layer(norm, norm, True)
        for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
            weight, bias = f"h.{i}.{name}.weight", f"h.{i}.{name}.bias"
            yield weight, Stored(weight, to_file=Tensor.t, from_file=Tensor.t)
            if config.qkv_bias or name != "attn.c_attn":
                yield bias, Stored(bias)


def zeros(config: GPTConfig) -> dict[str, torch.Size]:
    """transformers always has a bias of queries, keys and values."""
    layers = () if config.qkv_bias else range(config.n_layer)
    return {f"h.{i}.attn.c_attn.bias": torch.Size([config.qkv_dim]) for i in layers}


GPT2 = Family(
    model_type="gpt2",
    architecture="GPT2LMHeadModel",
    prefix="transformer.",
    defaults=DEFAULTS,
    ignored=re.compile(r"h\.\d+\.attn\.(masked_)?bias"),  # the causal mask, in the oldest files
    config_from=FIELDS.read,
    config_to=FIELDS.write,
    tensors=tensors,
    zeros=zeros,
)
