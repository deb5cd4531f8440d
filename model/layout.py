"""The folder layout of a GPT-2 checkpoint: what its files hold, and how they are written.

``config.json``, ``model.safetensors`` (GPT-2's tensor names, linear weights stored ``(in, out)``) and
``tokenizer.json`` with ``tokenizer_config.json``: the layout that transformers, vLLM and others open as it is.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from .config import GPTConfig
from .errors import BadValue, Mismatch
from .tokenizer import END_OF_TEXT, Tokenizer

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
SHARD_INDEX, TOKENIZER_CONFIG = "model.safetensors.index.json", "tokenizer_config.json"
SNAPSHOTS = "steps"  # folder of weights kept while training

TRANSPOSED = re.compile(r"h\.\d+\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight")
MASK_BUFFER = re.compile(r"h\.\d+\.attn\.(masked_)?bias")  # in the oldest files; the mask is made, not read

# gelu_pytorch_tanh is another name for the same function.
ACTIVATIONS = ("gelu_new", "gelu_pytorch_tanh")
SIZES = {
    "n_layer": "n_layer",
    "n_head": "n_head",
    "n_embd": "n_embd",
    "vocab_size": "vocab_size",
    "n_positions": "context_length",
}
SWITCHES = (
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
# Keys that change what the model computes in a way this one does not: only these values are the same thing.
NEUTRAL: dict[str, Any] = {
    "add_cross_attention": False,
    "quantization_config": None,
    "pruned_heads": {},
    "is_encoder_decoder": False,
}


def config_from_json(content: Any) -> tuple[GPTConfig, int | None, int | None]:
    """The config, bos and eos token ids of a ``config.json``; raises ``Mismatch`` that names what is wrong."""
    if not isinstance(content, dict):
        raise Mismatch("no JSON object", "the config of a GPT-2 model")
    if content.get("model_type") != "gpt2":
        raise BadValue("model_type", content.get("model_type"), "'gpt2'")
    if content.get("activation_function", "gelu_new") not in ACTIVATIONS:
        raise BadValue("activation_function", content["activation_function"], "'gelu_new'")
    for name, neutral in NEUTRAL.items():
        if content.get(name, neutral) not in (neutral, None):
            raise BadValue(name, content[name], json.dumps(neutral))
    missing = [name for name in SIZES if name not in content]
    if missing:
        raise Mismatch(f"no {' and no '.join(missing)}", f"each of {', '.join(SIZES)}")
    sizes = {field: content[name] for name, field in SIZES.items()}
    config = GPTConfig(**sizes, **{name: content[name] for name in SWITCHES if name in content})
    return config, end_token(content, "bos_token_id", config), end_token(content, "eos_token_id", config)


def end_token(content: Mapping[str, Any], name: str, config: GPTConfig) -> int | None:
    """The token id that ``name`` gives. One at or beyond ``vocab_size`` never comes up and counts as none:
    transformers writes 50256 into the config of every small vocabulary unless told otherwise."""
    token_id = content.get(name)
    if token_id is not None and (type(token_id) is not int or token_id < 0):
        raise BadValue(name, token_id, "null or a token id")
    return token_id if token_id is not None and token_id < config.vocab_size else None


def config_to_json(config: GPTConfig, bos_token_id: int | None, eos_token_id: int | None) -> dict[str, Any]:
    """The content of a ``config.json`` that transformers reads as the same model, computed in float32."""
    sizes = {name: getattr(config, field) for name, field in SIZES.items()}
    switches = {name: getattr(config, name) for name in SWITCHES}
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": "gelu_new",
        "dtype": "float32",
        "bos_token_id": bos_token_id,
        "eos_token_id": eos_token_id,
        **sizes,
        **switches,
    }


def tokenizer_config(tokenizer: Tokenizer, context_length: int) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``. Without the class named, transformers takes any GPT-2 folder for one
    with GPT-2's own tokenizer."""
    content: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context_length,
        "clean_up_tokenization_spaces": False,
    }
    if END_OF_TEXT in tokenizer.special_tokens:
        content |= dict.fromkeys(("bos_token", "eos_token", "unk_token"), END_OF_TEXT)
    return content


def file_tensors(config: GPTConfig, state: Mapping[str, Tensor], dtype: torch.dtype | None) -> dict[str, Tensor]:
    """The tensors of ``model.safetensors`` for a GPT's state dict, in ``dtype`` or as they are."""
    tensors = {}
    for name, tensor in state.items():
        if name == "lm_head.weight":
            if not config.tie_word_embeddings:
                tensors[name] = tensor
            continue
        tensors["transformer." + name] = tensor.t() if TRANSPOSED.fullmatch(name) else tensor
    if not config.qkv_bias:  # transformers' GPT-2 always has this bias
        for layer in range(config.n_layer):
            tensors[f"transformer.h.{layer}.attn.c_attn.bias"] = torch.zeros(3 * config.n_embd)
    return {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in tensors.items()}


def write_checkpoint(
    folder: str | Path,
    config: GPTConfig,
    state: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    *,
    bos_token_id: int | None = None,
    eos_token_id: int | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a checkpoint folder that a reader never sees half written.

    A new folder appears at once. In one that exists each file is replaced whole, the weights last; where the new
    weights belong to another config or vocabulary the old weights go first, snapshots too, and what went comes back
    if the writing fails. Other files stay. Raises ``ValueError`` for weights that are NaN or infinite, or would be
    in ``dtype``.
    """
    folder = Path(os.path.realpath(folder))  # a link stays one, and the files are made on the disk it leads to
    folder.parent.mkdir(parents=True, exist_ok=True)
    texts = {
        CONFIG: to_json(config_to_json(config, bos_token_id, eos_token_id)),
        TOKENIZER: to_json(tokenizer.spec),
        TOKENIZER_CONFIG: to_json(tokenizer_config(tokenizer, config.context_length)),
    }
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, text in texts.items():
            (beside / name).write_text(text, encoding="utf-8")
        tensors = file_tensors(config, state, dtype)
        broken = [name for name, tensor in tensors.items() if not tensor.isfinite().all()]
        if broken:
            raise ValueError(f"NaN or infinity in {broken[0]}, where only finite weights can be saved")
        save_file(tensors, beside / WEIGHTS, metadata={"format": "pt"})
        for path in beside.iterdir():
            sync(path)
        beside.chmod(0o755)
        if not folder.exists():
            beside.rename(folder)
            return
        same = all((folder / n).is_file() and (folder / n).read_bytes() == t.encode() for n, t in texts.items())
        if same:
            (beside / WEIGHTS).replace(folder / WEIGHTS)
            (folder / SHARD_INDEX).unlink(missing_ok=True)
        else:
            exchange(beside, folder, (*texts, WEIGHTS))
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def check_writable(folder: Path) -> None:
    """Raise ``ValueError`` where no checkpoint can be written into ``folder``; leaves nothing behind."""
    target = Path(os.path.realpath(folder))
    try:
        for path in (target.parent, target):  # a new checkpoint is made beside the folder, then moved
            existing = next(place for place in (path, *path.parents) if place.exists())
            os.rmdir(tempfile.mkdtemp(prefix=".", dir=existing))
    except OSError as error:
        raise ValueError(f"{folder}: no checkpoint can be written there ({error.strerror})") from None


def write_snapshot(folder: Path, step: int, config: GPTConfig, state: Mapping[str, Tensor]) -> None:
    """Keep the weights after ``step`` training steps beside the checkpoint in ``folder``, in half precision."""
    path = folder / SNAPSHOTS / f"{step:06d}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = file_tensors(config, state, torch.float16)
    write_atomic(path, lambda beside: save_file(tensors, beside, metadata={"format": "pt"}))


def exchange(beside: Path, folder: Path, names: Sequence[str]) -> None:
    """Move the files ``names`` from one folder into the other, the last one first away and last in."""
    old = beside / "old"
    old.mkdir()
    try:
        for name in (*reversed(names), SHARD_INDEX, SNAPSHOTS):
            if (folder / name).exists():
                (folder / name).replace(old / name)
        for name in names:
            (beside / name).replace(folder / name)
    except BaseException:
        for name in names:
            if not (beside / name).exists():
                (folder / name).unlink(missing_ok=True)
        for path in sorted(old.iterdir(), key=lambda path: path.name in (WEIGHTS, SHARD_INDEX)):
            path.replace(folder / path.name)
        raise


def write_atomic(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` make a file beside ``path``, then move it there: ``path`` is always whole, old or new."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(beside)
        sync(beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """See a file on the disk, so that a rename after it never names an empty one."""
    path.chmod(0o644)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def to_json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
