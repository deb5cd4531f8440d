"""GPT-NeoX (Black et al. 2022), the family of Pythia. Its fused projection holds one head after the other."""

import re
from collections.abc import Iterator

from torch import Tensor

from ..config import GPTConfig
from .family import (
    GELU,
    NEUTRAL,
    Family,
    Json,
    Stored,
    activation,
    check_off,
    layer,
    names,
    options,
    rope_scaling,
    rotary,
    sizes,
)
from .llama import SIZES

OPTIONS = {"layer_norm_eps": "layer_norm_epsilon", "attention_dropout": "attn_pdrop", "hidden_dropout": "resid_pdrop"}
DEFAULTS: Json = {
    "hidden_act": "gelu",
    "attention_bias": True,
    "tie_word_embeddings": False,
    "use_parallel_residual": True,
    "rotary_pct": 0.25,
    "rotary_emb_base": 10_000.0,
}


def config_from(content: Json) -> GPTConfig:
    content = DEFAULTS | content
    function = activation(content, "hidden_act", GELU)
    check_off(content, NEUTRAL)
    size = sizes(content, SIZES)
    head_dim = size["n_embd"] // size["n_head"]
    rotated = rotary({"rope_theta": content["rotary_emb_base"]} | content, head_dim, content["rotary_pct"])
    return GPTConfig(
        **size,
        **options(content, OPTIONS),
        embd_pdrop=content.get("hidden_dropout", 0.0),
        tie_word_embeddings=content["tie_word_embeddings"],
        rotary=rotated,
        activation_function=function,
        parallel=content["use_parallel_residual"],
        qkv_bias=content["attention_bias"],
        attn_proj_bias=content["attention_bias"],
    )


def config_to(config: GPTConfig) -> Json:
    assert config.rotary is not None
    return {
        **names(config, SIZES),
        **names(config, OPTIONS),
        "intermediate_size": config.inner_dim,
        "hidden_act": config.activation_function,
        "attention_bias": config.qkv_bias,
        "tie_word_embeddings": config.tie_word_embeddings,
        "use_parallel_residual": config.parallel,
        "rotary_pct": config.rotary.n_dim / config.head_dim,
        "rotary_emb_base": config.rotary.theta,
        "rope_scaling": rope_scaling(config.rotary),
    }


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    def by_head(tensor: Tensor) -> Tensor:
        """From the queries of all heads, then keys, then values, to those of one head after the other."""
        return tensor.unflatten(0, (3, config.n_head, config.head_dim)).transpose(0, 1).flatten(0, 2)

    def by_part(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (config.n_head, 3, config.head_dim)).transpose(0, 1).flatten(0, 2)

    yield "embed_in.weight", Stored("wte.weight")
    yield from layer("final_layer_norm", "ln_f", True)
    yield "embed_out.weight", Stored("lm_head.weight")
    for i in range(config.n_layer):
        theirs, ours = f"layers.{i}", f"h.{i}"
        yield from layer(f"{theirs}.input_layernorm", f"{ours}.ln_1", True)
        yield from layer(f"{theirs}.post_attention_layernorm", f"{ours}.ln_2", True)
        fused, place = f"{theirs}.attention.query_key_value", {"to_file": by_head, "from_file": by_part}
        yield from layer(fused, f"{ours}.attn.c_attn", config.qkv_bias, **place)
        yield from layer(f"{theirs}.attention.dense", f"{ours}.attn.c_proj", config.attn_proj_bias)
        yield from layer(f"{theirs}.mlp.dense_h_to_4h", f"{ours}.mlp.c_fc", True)
        yield from layer(f"{theirs}.mlp.dense_4h_to_h", f"{ours}.mlp.c_proj", True)


GPT_NEOX = Family(
    model_type="gpt_neox",
    architecture="GPTNeoXForCausalLM",
    prefix="gpt_neox.",
    ignored=re.compile(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)"),
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
)
