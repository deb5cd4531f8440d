"""A checkpoint as one GGUF file, the format of llama.cpp: its tensors in float32, its vocabulary and its sizes."""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import Mismatch
from ..tokenizer import BPETokenizer
from .families.gpt2 import GPT2
from .families.llama import LLAMA
from .files import checkpoint_errors
from .folder_format import family_of, file_tensors
from .source import Source, read_source
from .write import write_atomic

ROTATED = re.compile(r".*\.([qk])_proj\.(weight|bias)")


def write_gguf(source: str, path: Path) -> str:
    """Write the checkpoint ``source`` as ``path`` and return a line that describes it.

    Raises ``CheckpointError`` for a checkpoint that cannot be read, or whose model or vocabulary llama.cpp would not
    read as it is here, and ``ValueError`` if the package ``gguf`` is not installed.
    """
    checkpoint = read_source(source)
    with checkpoint_errors(Path(source), "a model that GGUF can hold"):
        check_supported(checkpoint)
    try:
        import gguf
    except ImportError:
        raise ValueError("the package gguf is not installed; install it with `pip install gguf`") from None
    arch = gguf.MODEL_ARCH.GPT2 if family_of(checkpoint.config) is GPT2 else gguf.MODEL_ARCH.LLAMA
    writer = gguf.GGUFWriter(None, gguf.MODEL_ARCH_NAMES[arch])
    add_sizes(writer, checkpoint)
    add_vocabulary(writer, checkpoint, gguf.TokenType)
    names = gguf.get_tensor_name_map(arch, checkpoint.config.n_layer)
    for name, tensor in file_tensors(checkpoint.config, checkpoint.state, torch.float32).items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert theirs is not None, name
        writer.add_tensor(theirs, arranged(name, tensor, checkpoint).contiguous().numpy())

    def write(new: Path) -> None:
        writer.write_header_to_file(new)
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    write_atomic(path, write)
    return f"{path}: {checkpoint.config.n_parameters:,} weights in float32, {checkpoint.config.vocab_size:,} tokens"


def check_supported(source: Source) -> None:
    """Raise ``Mismatch`` unless llama.cpp computes the same model from a GGUF file."""
    config, family = source.config, family_of(source.config)
    if family not in (GPT2, LLAMA):
        raise Mismatch(f"the family {family.model_type}", "gpt2 or llama; llama.cpp has a converter for the others")
    if family is GPT2 and config.activation_function != "gelu_new":
        raise Mismatch(f"the activation function {config.activation_function}", "gelu_new, the only one of its GPT-2")
    if config.scale_attn_by_inverse_layer_idx or not config.scale_attn_weights:
        raise Mismatch("a different scale of the attention scores", "one over the square root of the head's size")
    if config.rotary and config.rotary.scaling:
        raise Mismatch("scaled rotary positions", "plain ones; llama.cpp has a converter for the others")
    if not isinstance(source.tokenizer, BPETokenizer):
        raise Mismatch(
            "a vocabulary of single characters"
            if source.tokenizer.kind == "char"
            else "a tokenizer other than GPT-2's",
            "GPT-2's byte-level pieces, which have a token for every byte",
        )
    if max(source.tokenizer.spec["model"]["vocab"].values()) >= config.vocab_size:
        raise Mismatch("tokens without a row in the model", "a row for each token")
    if source.eos_token_id is None:  # llama.cpp would use token 11 instead
        raise Mismatch("no end token", "one, since llama.cpp requires an end token")


def arranged(name: str, tensor: Tensor, source: Source) -> Tensor:
    """A tensor as GGUF stores it: ``(out, in)``, and the numbers of a rotated pair next to each other."""
    if family_of(source.config) is GPT2:
        return tensor.t() if tensor.dim() == 2 and name.startswith("transformer.h.") else tensor
    if is_rotated := ROTATED.fullmatch(name):
        n_head = source.config.n_head if is_rotated[1] == "q" else source.config.n_kv_head
        return tensor.unflatten(0, (n_head, 2, -1)).transpose(1, 2).reshape(tensor.shape)
    return tensor


def add_sizes(writer: Any, source: Source) -> None:
    """The keys that describe the model."""
    config = source.config
    writer.add_name(source.name)
    writer.add_block_count(config.n_layer)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.n_embd)
    writer.add_feed_forward_length(config.inner_dim)
    writer.add_head_count(config.n_head)
    if config.rotary is None:
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_head_count_kv(config.n_kv_head)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.rotary.n_dim)
    writer.add_rope_freq_base(config.rotary.theta)
    writer.add_vocab_size(config.vocab_size)


def add_vocabulary(writer: Any, source: Source, kinds: Any) -> None:
    """The keys that describe the tokenizer. Rows of the vocabulary without a token are marked as unused."""
    spec = source.tokenizer.spec
    token_of = {token_id: token for token, token_id in spec["model"]["vocab"].items()}
    special = {token_id: token for token, token_id in source.tokenizer.special_tokens.items()}
    ids = range(source.config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([special.get(i) or token_of.get(i) or f"<unused {i}>" for i in ids])
    writer.add_token_types(
        [kinds.CONTROL if i in special else kinds.NORMAL if i in token_of else kinds.UNUSED for i in ids]
    )
    merges = spec["model"].get("merges") or []
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_eos_token_id(source.eos_token_id)
    for add, token_id in zip((writer.add_eot_token_id, writer.add_eom_token_id), source.other_end_ids, strict=False):
        add(token_id)
    if source.bos_token_id is not None:
        writer.add_bos_token_id(source.bos_token_id)
    writer.add_add_bos_token(False)
    if source.chat_template:
        writer.add_chat_template(source.chat_template)
