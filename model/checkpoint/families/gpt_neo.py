"""GPT-Neo (Black et al. 2021), whose scores are not scaled and some of whose layers see a window only."""

import re
from collections.abc import Iterator

from ...config import GPTConfig, check_int
from ...errors import Mismatch
from .family import Family, Fields, Json, Stored, layer, parts_of_rows, unsupported

SIZES = {
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "hidden_size": "n_embd",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "context_length",
}
OPTIONS = {
    "intermediate_size": "n_inner",
    "layer_norm_epsilon": "layer_norm_epsilon",
    "tie_word_embeddings": "tie_word_embeddings",
    "embed_dropout": "embd_pdrop",
    "attention_dropout": "attn_pdrop",
    "resid_dropout": "resid_pdrop",
}
FIELDS = Fields(SIZES, OPTIONS, "activation_function")
LOCAL, GLOBAL = "local", "global"
DEFAULTS: Json = {
    "max_position_embeddings": 2_048,
    "attention_types": [[[GLOBAL, LOCAL], 12]],
    "window_size": 256,
    "activation_function": "gelu_new",
    "intermediate_size": None,
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
    "bos_token_id": 50_256,
    "eos_token_id": 50_256,
}


def config_from(content: Json) -> GPTConfig:
    def others(sizes: Json) -> Json:
        check_int("window_size", content["window_size"], 10**9)
        windows = {LOCAL: content["window_size"], GLOBAL: None}
        of_layers = tuple(windows[kind] for kind in kinds_of(content, sizes["n_layer"]))
        return {"windows": of_layers, "qkv_bias": False, "scale_attn_weights": False}

    return FIELDS.read(content, others)


def kinds_of(content: Json, n_layer: int) -> list[str]:
    """Which layers are local: by ``attention_layers``, or else ``attention_types``, which has them with repetitions.

    Raises ``InvalidValue`` or ``Mismatch``.
    """
    name = "attention_layers" if content.get("attention_layers") is not None else "attention_types"
    kinds = found = content[name]
    expected = f"'{GLOBAL}' or '{LOCAL}' for each of the {n_layer} layers"
    if name == "attention_types":
        try:
            kinds = [kind for repeated, times in found for kind in repeated * min(int(times), n_layer + 1)]
        except (TypeError, ValueError, OverflowError):
            raise unsupported(name, found, expected) from None
    if not isinstance(kinds, list) or any(kind not in (GLOBAL, LOCAL) for kind in kinds):
        raise unsupported(name, found, expected)
    if len(kinds) != n_layer:
        raise Mismatch(f"{name} for {len(kinds)} layers with num_layers {n_layer}", "one for each layer")
    return kinds


def config_to(config: GPTConfig) -> Json:
    kinds = [LOCAL if config.window(layer) else GLOBAL for layer in range(config.n_layer)]
    window = next((window for window in config.windows if window), None)
    return {
        **FIELDS.write(config),
        "attention_types": [[kinds, 1]],
        **({"window_size": window} if window else {}),
    }


def tensors(config: GPTConfig) -> Iterator[tuple[str, Stored]]:
    for name in ("wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias", "lm_head.weight"):
        yield name, Stored(name)
    for i in range(config.n_layer):
        at = f"h.{i}"
        for name in ("ln_1", "ln_2", "mlp.c_fc", "mlp.c_proj"):
            yield from layer(f"{at}.{name}", f"{at}.{name}", True)
        for part, place in parts_of_rows(config).items():
            yield from layer(f"{at}.attn.attention.{part}_proj", f"{at}.attn.c_attn", False, **place)
        yield from layer(f"{at}.attn.attention.out_proj", f"{at}.attn.c_proj", True)


GPT_NEO = Family(
    model_type="gpt_neo",
    architecture="GPTNeoForCausalLM",
    prefix="transformer.",
    defaults=DEFAULTS,
    ignored=re.compile(r"h\.\d+\.attn\.attention\.(masked_)?bias"),  # the causal mask, in older files
    config_from=config_from,
    config_to=config_to,
    tensors=tensors,
)
