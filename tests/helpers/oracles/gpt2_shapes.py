"""The GPT-2 shapes on which both implementations are compared: config keys of transformers' ``GPT2Config``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.files import write_json
from helpers.models import char_spec, randomise, wide_alphabet

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

SHAPES: dict[str, dict[str, object]] = {
    "plain": {},
    "head_dim 1": {"n_layer": 1, "n_head": 4, "n_embd": 4},
    "odd head_dim, narrow MLP": {"n_layer": 3, "n_head": 3, "n_embd": 15, "n_inner": 7},
    "deep, one head, large epsilon": {"n_layer": 6, "n_head": 1, "n_embd": 8, "layer_norm_epsilon": 1e-2},
    "scores not scaled": {"scale_attn_weights": False},
    "scaled by layer": {"n_layer": 4, "scale_attn_by_inverse_layer_idx": True},
    "scaled by layer alone": {"n_layer": 3, "scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
    "untied head": {"tie_word_embeddings": False},
    "wide vocabulary, long context": {"vocab_size": 5003, "n_positions": 200, "n_head": 6, "n_embd": 24},
    "one weight each": {"n_layer": 1, "n_head": 1, "n_embd": 1, "n_inner": 1},
    "exact GELU": {"activation_function": "gelu"},
    "dropout": {"attn_pdrop": 0.3, "resid_pdrop": 0.2, "embd_pdrop": 0.1},
}
DEFAULTS = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 65, "n_positions": 32}
FIELDS = {"n_positions": "context_length"}


def transformers_keys(name: str) -> dict[str, object]:
    """The arguments of a ``GPT2Config``."""
    return DEFAULTS | {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0} | SHAPES[name]


def our_keys(name: str) -> dict[str, object]:
    """The arguments of a ``GPTConfig`` for the same shape."""
    return {FIELDS.get(key, key): value for key, value in (DEFAULTS | SHAPES[name]).items()}


def reference(seed: int = 0, **keys: Any) -> "GPT2LMHeadModel":
    """A random GPT-2 of transformers, with explicit attention."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(bos_token_id=None, eos_token_id=None, **keys)
    config._attn_implementation = "eager"
    gpt = GPT2LMHeadModel(config)
    randomise(gpt, seed, std=0.25)
    return gpt.eval()


def write(gpt: "GPT2LMHeadModel", folder: Path, **options: Any) -> Path:
    """Save it with transformers' own function, with a character vocabulary."""
    gpt.save_pretrained(folder, **options)
    write_json(folder / "tokenizer.json", char_spec(wide_alphabet(gpt.config.vocab_size)))
    return folder
