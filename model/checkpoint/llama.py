"""Llama (Touvron et al. 2023) and the families that differ from it in a few choices: Mistral, Qwen 2 and Qwen 3."""

import re
from collections.abc import Iterator
from functools import partial

from ..config import GPTConfig
from ..errors import InvalidValue
from .family import (
    NEUTRAL,
    SILU,
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
    unsupported,
)

SIZES = {
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "context_length",
}
OPTIONS = {"rms_norm_eps": "layer_norm_epsilon", "attention_dropout": "attn_pdrop"}
DEFAULTS: Json = {"rms_norm_eps": 1e-6, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False}


def config_from(content: Json, qkv_bias: bool | None = None, qk_norm: bool = False) -> GPTConfig:
    """``qkv_bias`` is the family's value, which its ``config.json`` may leave out."""
    content = DEFAULTS | content
    function = activation(content, "hidden_act", SILU)
    check_off(content, NEUTRAL)
    check_window(content)
    size = sizes(content, SIZES)
    head_dim = content.get("head_dim")
    if head_dim is None and not size["n_embd"] % size["n_head"]:
        head_dim = size["n_embd"] // size["n_head"]
    bias = content["attention_bias"]
    return GPTConfig(
        **size,
        **options(content, OPTIONS),
        tie_word_embeddings=content["tie_word_embeddings"],
        n_kv_head=content.get("num_key_value_heads") or 0,
        head_dim=head_dim or 0,
        rotary=rotary(content, head_dim if isinstance(head_dim, int) else 0),
        norm="RMSNorm",
        qk_norm=qk_norm,
        activation_function=function,
        gated_mlp=True,
        qkv_bias=bias if qkv_bias is None else qkv_bias,
        attn_proj_bias=bias if qkv_bias is None else False,
        mlp_bias=content["mlp_bias"],
    )


def check_window(content: Json) -> None:
    """Raise ``InvalidValue`` if a layer's attention sees fewer than all earlier tokens."""
    window, context_length = content.get("sliding_window"), content.get("max_position_embeddings")
    if window is None or content.get("use_sliding_window") is False:
        return
    if not isinstance(window, int) or not isinstance(context_length, int):
        raise InvalidValue("sliding_window", window, "null or a number of tokens")
    if window < context_length:
        raise unsupported("sliding_window", window, f"null, or at least max_position_embeddings {context_length}")


def config_to(config: GPTConfig) -> Json:
    assert config.rotary is not None
    return {
        **names(config, SIZES),
        **names(config, OPTIONS),
        "intermediate_size": config.inner_dim,
        "num_key_value_heads": config.n_kv_head,
        "head_dim": config.head_dim,
        "hidden_act": config.activation_function,
        "attention_bias": config.qkv_bias,
        "mlp_bias": config.mlp_bias,
        "tie_word_embeddings": config.tie_word_embeddings,
        "rope_theta": config.rotary.theta,
        "rope_scaling": rope_scaling(config.rotary),
    }


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    yield "embed_tokens.weight", Stored("wte.weight")
    yield "norm.weight", Stored("ln_f.weight")
    yield "lm_head.weight", Stored("lm_head.weight")
    queries, keys, m = config.n_head * config.head_dim, config.n_kv_head * config.head_dim, config.inner_dim
    rows = {"q": (0, queries), "k": (queries, queries + keys), "v": (queries + keys, config.qkv_dim)}
    for i in range(config.n_layer):
        theirs, ours = f"layers.{i}", f"h.{i}"
        yield f"{theirs}.input_layernorm.weight", Stored(f"{ours}.ln_1.weight")
        yield f"{theirs}.post_attention_layernorm.weight", Stored(f"{ours}.ln_2.weight")
        for part, (start, stop) in rows.items():
            name = f"{theirs}.self_attn.{part}_proj"
            yield from layer(name, f"{ours}.attn.c_attn", config.qkv_bias, start=start, stop=stop)
        for part in "qk" if config.qk_norm else "":
            yield f"{theirs}.self_attn.{part}_norm.weight", Stored(f"{ours}.attn.{part}_norm.weight")
        yield from layer(f"{theirs}.self_attn.o_proj", f"{ours}.attn.c_proj", config.attn_proj_bias)
        yield from layer(f"{theirs}.mlp.gate_proj", f"{ours}.mlp.c_fc", config.mlp_bias, start=0, stop=m)
        yield from layer(f"{theirs}.mlp.up_proj", f"{ours}.mlp.c_fc", config.mlp_bias, start=m, stop=2 * m)
        yield from layer(f"{theirs}.mlp.down_proj", f"{ours}.mlp.c_proj", config.mlp_bias)


LLAMA = Family(
    model_type="llama",
    architecture="LlamaForCausalLM",
    prefix="model.",
    ignored=re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq"),
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
)
MISTRAL = LLAMA._replace(
    model_type="mistral", architecture="MistralForCausalLM", config_from=partial(config_from, qkv_bias=False)
)
QWEN2 = LLAMA._replace(
    model_type="qwen2", architecture="Qwen2ForCausalLM", config_from=partial(config_from, qkv_bias=True)
)
QWEN3 = LLAMA._replace(
    model_type="qwen3", architecture="Qwen3ForCausalLM", config_from=partial(config_from, qk_norm=True)
)
