"""OPT (Zhang et al. 2022), which counts positions from 2. Its 350 M model, whose norms differ, does not open."""

import re
from collections.abc import Iterator

from torch import Tensor
from torch.nn import functional as F

from ...config import Activation, GPTConfig
from .family import GELU, Family, Fields, Json, Stored, layer, parts_of_rows, unsupported

SIZES = {
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "hidden_size": "n_embd",
    "ffn_dim": "n_inner",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "context_length",
}
OPTIONS = {
    "dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
    "enable_bias": "qkv_bias",
    "tie_word_embeddings": "tie_word_embeddings",
}
ACTIVATIONS: dict[object, Activation] = {"relu": "relu", **GELU}
FIELDS = Fields(SIZES, OPTIONS, "activation_function", ACTIVATIONS)
# The choices that open: norms before attention and the MLP and at the end, with gains and shifts.
ONLY = {"do_layer_norm_before": True, "layer_norm_elementwise_affine": True, "_remove_final_layer_norm": False}
UNUSED = 2  # rows of the table of positions before that of the first token
DEFAULTS: Json = {
    "activation_function": "relu",
    "max_position_embeddings": 2_048,
    "word_embed_proj_dim": None,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "enable_bias": True,
    "tie_word_embeddings": True,
    "bos_token_id": 2,
    "eos_token_id": 2,
} | ONLY


def config_from(content: Json) -> GPTConfig:
    def others(sizes: Json) -> Json:
        embedded, bias = content["word_embed_proj_dim"], content["enable_bias"]
        for name, only in (ONLY | ({} if embedded is None else {"word_embed_proj_dim": sizes["n_embd"]})).items():
            if content[name] != only:
                raise unsupported(name, content[name], str(only).lower())
        return {"attn_proj_bias": bias, "mlp_bias": bias}

    return FIELDS.read(content, others)


def config_to(config: GPTConfig) -> Json:
    return FIELDS.write(config) | {"ffn_dim": config.inner_dim, "word_embed_proj_dim": config.n_embd} | ONLY


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    def padded(positions: Tensor) -> Tensor:
        return F.pad(positions, (0, 0, UNUSED, 0))

    def used(positions: Tensor) -> Tensor:
        return positions[UNUSED:]

    has_bias = config.qkv_bias
    yield "decoder.embed_tokens.weight", Stored("wte.weight")
    yield "decoder.embed_positions.weight", Stored("wpe.weight", to_file=padded, from_file=used)
    yield from layer("decoder.final_layer_norm", "ln_f", True)
    yield "lm_head.weight", Stored("lm_head.weight")
    for i in range(config.n_layer):
        theirs, ours = f"decoder.layers.{i}", f"h.{i}"
        yield from layer(f"{theirs}.self_attn_layer_norm", f"{ours}.ln_1", True)
        yield from layer(f"{theirs}.final_layer_norm", f"{ours}.ln_2", True)
        for part, place in parts_of_rows(config).items():
            yield from layer(f"{theirs}.self_attn.{part}_proj", f"{ours}.attn.c_attn", has_bias, **place)
        yield from layer(f"{theirs}.self_attn.out_proj", f"{ours}.attn.c_proj", has_bias)
        yield from layer(f"{theirs}.fc1", f"{ours}.mlp.c_fc", has_bias)
        yield from layer(f"{theirs}.fc2", f"{ours}.mlp.c_proj", has_bias)


OPT = Family(
    model_type="opt",
    architecture="OPTForCausalLM",
    prefix="model.",
    defaults=DEFAULTS,
    ignored=re.compile(r"decoder\.version"),
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
)
