"""Weights of other implementations of GPT-2, renamed to the modules of ``model.gpt.GPT``.

Two are recognised by their tensor names, once those are ``unwrapped``: nanoGPT (or any other that uses GPT-2's names
with ``nn.Linear`` weights), and the GPT of "Build a Large Language Model From Scratch".
"""

import re
from collections.abc import Mapping

import torch
from torch import Tensor

from ..config import Activation, GPTConfig
from ..errors import Mismatch
from .families.gpt2 import GPT2
from .weights import Keep, is_finite

State = dict[str, Tensor]

BOOK_NAMES = {
    "tok_emb.weight": "wte.weight",
    "pos_emb.weight": "wpe.weight",
    "final_norm.scale": "ln_f.weight",
    "final_norm.shift": "ln_f.bias",
    "out_head.weight": "lm_head.weight",
}
BOOK_BLOCK_NAMES = {
    "norm1.scale": "ln_1.weight",
    "norm1.shift": "ln_1.bias",
    "norm2.scale": "ln_2.weight",
    "norm2.shift": "ln_2.bias",
    "att.out_proj.weight": "attn.c_proj.weight",
    "att.out_proj.bias": "attn.c_proj.bias",
    "ff.layers.0.weight": "mlp.c_fc.weight",
    "ff.layers.0.bias": "mlp.c_fc.bias",
    "ff.layers.2.weight": "mlp.c_proj.weight",
    "ff.layers.2.bias": "mlp.c_proj.bias",
}
BOOK_BLOCK = re.compile(r"trf_blocks\.(\d+)\.(.+)", re.ASCII)
BOOK_MASK = re.compile(r"trf_blocks\.\d+\.att\.mask", re.ASCII)
BLOCK = re.compile(r"h\.(\d+)\..+", re.ASCII)


def unwrapped(stored: Mapping[str, Tensor]) -> State:
    """The tensors under their names without wrappers and without GPT-2's prefix. Raises ``Mismatch``."""
    state: State = {}
    for name, tensor in stored.items():
        short = GPT2.short(name)
        if short in state:
            raise Mismatch(f"the tensor {short} twice", "each tensor once")
        state[short] = tensor
    return state


def is_book(stored: Mapping[str, Tensor]) -> bool:
    """Whether these are the weights of the book's ``GPTModel``."""
    return "tok_emb.weight" in stored


def from_book(stored: Mapping[str, Tensor]) -> State:
    """The book's weights under the names of ``GPT``. Raises ``Mismatch`` for a tensor that the book's model lacks."""
    state: State = {}
    projections: dict[str, dict[str, Tensor]] = {}  # "h.0.attn.c_attn.weight" -> {"query": ..., ...}
    for name, tensor in stored.items():
        block = BOOK_BLOCK.fullmatch(name)
        if BOOK_MASK.fullmatch(name):
            continue
        if name in BOOK_NAMES:
            state[BOOK_NAMES[name]] = tensor
        elif block and block[2] in BOOK_BLOCK_NAMES:
            state[f"h.{int(block[1])}.{BOOK_BLOCK_NAMES[block[2]]}"] = tensor
        elif block and (part := re.fullmatch(r"att\.W_(query|key|value)\.(weight|bias)", block[2])):
            projections.setdefault(f"h.{int(block[1])}.attn.c_attn.{part[2]}", {})[part[1]] = tensor
        else:
            raise Mismatch(f"the tensor {name}", "only the tensors of the book's GPTModel")
    for name, parts in projections.items():
        if len(parts) != 3:
            raise Mismatch(f"only W_{' and W_'.join(sorted(parts))} for {name}", "W_query, W_key and W_value")
        state[name] = torch.cat([parts["query"], parts["key"], parts["value"]])
    return state


def from_nanogpt(stored: Mapping[str, Tensor]) -> State:
    """nanoGPT's weights, named as in ``GPT``, without mask buffers."""
    return {name: tensor for name, tensor in stored.items() if not GPT2.ignored.fullmatch(name)}


def config_of(state: Mapping[str, Tensor], n_head: int, activation: Activation) -> GPTConfig:
    """The config implied by the shapes of ``state``, and by the arguments that shapes do not determine. Raises
    ``Mismatch``.
    """
    for name in ("wte.weight", "wpe.weight", "h.0.mlp.c_fc.weight"):
        if name not in state or state[name].ndim != 2:
            raise Mismatch(f"no matrix {name}", "the weights of a GPT-2-shaped model")
    vocab_size, n_embd = state["wte.weight"].shape
    layers = {int(match[1]) for name in state if (match := BLOCK.fullmatch(name))}
    head = state.get("lm_head.weight")
    return GPTConfig(
        n_layer=len(layers),
        n_head=n_head,
        n_embd=n_embd,
        vocab_size=vocab_size,
        context_length=state["wpe.weight"].shape[0],
        n_inner=state["h.0.mlp.c_fc.weight"].shape[0],
        activation_function=activation,
        qkv_bias=any(name.endswith("attn.c_attn.bias") for name in state),
        tie_word_embeddings=head is None or torch.equal(head, state["wte.weight"]),
    )


def complete(state: State, config: GPTConfig, shapes: Mapping[str, torch.Size], keep: Keep) -> State:
    """``state`` checked against the ``shapes`` of a GPT, passed through ``keep``, with zeros for missing biases.

    Raises ``Mismatch``.
    """
    state = dict(state)
    if config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for name, tensor in state.items():
        if name not in shapes:
            raise Mismatch(f"the tensor {name}", "only the tensors of a GPT-2-shaped model")
        if tensor.shape != shapes[name]:
            raise Mismatch(f"{name} of shape {list(tensor.shape)}", f"{list(shapes[name])}")
        if not tensor.is_floating_point():
            raise Mismatch(f"{name} of dtype {tensor.dtype}", "floating-point numbers")
        if not is_finite(tensor):
            raise Mismatch(f"NaN or infinity in {name}", "finite numbers")
    for name, shape in shapes.items():
        if name in state or (name == "lm_head.weight" and config.tie_word_embeddings):
            continue
        if not name.endswith(".bias"):
            raise Mismatch(f"no tensor {name}", f"{len(shapes)} tensors")
        state[name] = torch.zeros(shape)
    # Copied out of the mapped file, because overwriting the file must not change or crash a model in use.
    return {name: keep(name, tensor.clone()) for name, tensor in state.items()}
