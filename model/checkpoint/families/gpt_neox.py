"""GPT-NeoX (Black et al. 2022), the family of Pythia. Its fused projection holds one head after the other."""

import re
from collections.abc import Iterator

from torch import Tensor

from ...config import GPTConfig
from .family import Family, Fields, Json, Stored, layer, rope_scaling, rotary, rotation
from .llama import SIZES

OPTIONS = {
    "layer_norm_eps": "layer_norm_epsilon",
    "attention_dropout": "attn_pdrop",
    "hidden_dropout": "resid_pdrop",
    "use_parallel_residual": "parallel",
    "attention_bias": "qkv_bias",
    "tie_word_embeddings": "tie_word_embeddings",
}
FIELDS = Fields(SIZES, OPTIONS, "hidden_act")
DEFAULTS: Json = {
    "hidden_act": "gelu",
    "max_position_embeddings": 2_048,
    "layer_norm_eps": 1e-5,
    "rotary_pct": 0.25,
    "rotary_emb_base": 10_000.0,
    "attention_bias": True,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "use_parallel_residual": True,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 2,
}


def config_from(content: Json) -> GPTConfig:
    def others(sizes: Json) -> Json:
        return {
            "rotary": rotary(content, sizes["n_embd"] // sizes["n_head"], "rotary_emb_base", "rotary_pct"),
            "embd_pdrop": content["hidden_dropout"],
            "attn_proj_bias": content["attention_bias"],
        }

    return FIELDS.read(content, others)


def config_to(config: GPTConfig) -> Json:
    rope = rotation(config)
    return FIELDS.write(config) | {
        "intermediate_size": config.inner_dim,
        "rotary_pct": rope.n_dim / config.head_dim,
        "rotary_emb_base": rope.theta,
        "rope_scaling": rope_scaling(rope),
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
    defaults=DEFAULTS,
    ignored=re.compile(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)"),
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
    other_names={"lm_head.weight": "embed_out.weight"},
)
