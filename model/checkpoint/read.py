"""Reading the files of a checkpoint folder: everything is checked before it is used, and nothing is unpickled."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..config import GPTConfig
from ..errors import CheckpointError
from .files import checkpoint_errors, parse_json, read_json, read_text
from .gpt2_format import (
    CHAT_TEMPLATE,
    CONFIG,
    MASK_BUFFER,
    OLDER_WEIGHTS,
    SHARD_INDEX,
    TOKENIZER_CONFIG,
    TRANSPOSED,
    WEIGHTS,
    config_from_json,
)
from .pickled import read_pickled

MAX_CONFIG_BYTES = 1_000_000
MAX_INDEX_BYTES = 16_000_000
MAX_TEMPLATE_BYTES = 64_000
STORED_DTYPES = ("F32", "F16", "BF16")
TORCH_DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def read_config(folder: Path) -> tuple[GPTConfig, int | None, int | None]:
    """The config, bos token id and eos token id of the checkpoint in ``folder``. Raises ``CheckpointError``."""
    path = folder / CONFIG
    content = read_json(path, MAX_CONFIG_BYTES)
    with checkpoint_errors(path, "the config of a GPT-2 model"):
        return config_from_json(content)


def read_chat_template(folder: Path) -> str:
    """The template, in Jinja, that turns a conversation into a prompt; "" where the folder has none.

    It is a file of its own, or part of ``tokenizer_config.json``, where several may have names. Raises
    ``CheckpointError``.
    """
    path = folder / CHAT_TEMPLATE
    if path.is_file():
        return read_text(path, "a chat template", MAX_TEMPLATE_BYTES)
    path = folder / TOKENIZER_CONFIG
    if not path.is_file():
        return ""
    content = read_json(path, MAX_CONFIG_BYTES)
    template = content.get("chat_template") if isinstance(content, dict) else None
    if isinstance(template, list):
        named = (each for each in template if isinstance(each, dict) and each.get("name") == "default")
        template = next(named, {}).get("template")
    if template is not None and (not isinstance(template, str) or len(template.encode()) > MAX_TEMPLATE_BYTES):
        raise CheckpointError(path, "a chat_template of another kind", f"text of at most {MAX_TEMPLATE_BYTES:,} bytes")
    return template or ""


def weight_files(folder: Path) -> list[Path]:
    """The weights of a folder: one safetensors file, the shards listed in an index, or transformers' older file."""
    single, index, older = folder / WEIGHTS, folder / SHARD_INDEX, folder / OLDER_WEIGHTS
    if single.is_file() or not index.is_file():
        return [older if older.is_file() and not single.is_file() else single]
    content = read_json(index, MAX_INDEX_BYTES)
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(index, "no weight_map", "a map of tensor names to files")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise CheckpointError(index, f"the file name {name!r}", "names of safetensors files in the same folder")
    return [folder / name for name in names]


def read_weights(paths: list[Path], config: GPTConfig, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    """The state dict of a GPT with these parameter ``shapes``, on the CPU, in the dtypes of the file."""
    state: dict[str, Tensor] = {}
    layers = () if config.qkv_bias else range(config.n_layer)
    zero_biases = {f"h.{layer}.attn.c_attn.bias": torch.Size([3 * config.n_embd]) for layer in layers}
    for path in paths:
        for stored, tensor in checked_tensors(path, shapes | zero_biases):
            name = stored.removeprefix("transformer.")
            if name in state:
                raise CheckpointError(path, f"the tensor {name} twice", "each tensor once")
            if name in zero_biases:
                if tensor.any():
                    raise CheckpointError(path, f"a {stored} that is not zero", "zeros, because qkv_bias is false")
                continue
            # Copied out of the mapped file: overwriting that must not change or crash a model in use.
            copy = tensor.clone()
            state[name] = copy.t() if TRANSPOSED.fullmatch(name) else copy
    if config.tie_word_embeddings:
        # Older files store the tied head too. One that differs must not be dropped silently.
        head = state.pop("lm_head.weight", None)
        if head is not None and "wte.weight" in state and not torch.equal(head, state["wte.weight"]):
            raise CheckpointError(
                paths[0],
                "an lm_head.weight that differs from wte.weight",
                "equal tensors, because config.json ties them",
            )
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    missing = sorted(shapes.keys() - state.keys() - tied)
    if missing:
        raise CheckpointError(paths[0], f"no tensor {missing[0]} ({len(missing)} missing)", f"{len(shapes)} tensors")
    return state


def checked_tensors(path: Path, shapes: dict[str, torch.Size]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a file of weights, checked before reading (name, dtype, shape) and after (values)."""
    if path.suffix != ".safetensors":
        for stored, tensor in read_pickled(path).items():
            if not isinstance(tensor, Tensor):
                raise CheckpointError(path, f"{stored}, which is not a tensor", "only tensors")
            if is_expected(path, stored, TORCH_DTYPES.get(tensor.dtype, str(tensor.dtype)), list(tensor.shape), shapes):
                yield stored, with_finite_values(path, stored, tensor)
        return
    if not os.path.isfile(path):  # unlike Path.is_file, never raises
        raise CheckpointError(path, "no file", "the weights as safetensors")
    try:
        with path.open("rb") as raw, safe_open(path, framework="pt") as file:
            check_header(path, raw)
            for stored in file.keys():  # noqa: SIM118 - not a dict: it cannot be iterated
                header = file.get_slice(stored)
                if is_expected(path, stored, header.get_dtype(), list(header.get_shape()), shapes):
                    yield stored, with_finite_values(path, stored, file.get_tensor(stored))
    except SafetensorError as error:
        with path.open("rb") as raw:
            start = raw.read(4)
        pickled = start.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"))
        found = "a pickle, which is never opened" if pickled else f"invalid safetensors ({error})"
        raise CheckpointError(path, found, "the weights as safetensors") from None
    except OSError as error:
        raise CheckpointError(path, f"an unreadable file ({error})", "the weights as safetensors") from None


def check_header(path: Path, raw: BinaryIO) -> None:
    """Raise ``CheckpointError`` where a tensor is described twice; safetensors would take the last."""
    n_bytes = int.from_bytes(raw.read(8), "little")
    if n_bytes > MAX_INDEX_BYTES:
        raise CheckpointError(path, f"a header of {n_bytes:,} bytes", f"at most {MAX_INDEX_BYTES:,}")
    parse_json(path, raw.read(n_bytes).decode())


def is_expected(path: Path, stored: str, dtype: str, shape: list[int], shapes: dict[str, torch.Size]) -> bool:
    """Whether to read a tensor, or False for a mask buffer. Raises ``CheckpointError`` for one that does not fit."""
    name = stored.removeprefix("transformer.")
    if name not in shapes:
        if MASK_BUFFER.fullmatch(name):
            return False
        raise CheckpointError(path, f"the tensor {stored}", "only the tensors that config.json implies")
    if dtype not in STORED_DTYPES:
        raise CheckpointError(path, f"{stored} of dtype {dtype}", f"one of {', '.join(STORED_DTYPES)}")
    expected = list(shapes[name])[:: -1 if TRANSPOSED.fullmatch(name) else 1]
    if shape != expected:
        raise CheckpointError(path, f"{stored} of shape {shape}", f"{expected}, as config.json implies")
    return True


def with_finite_values(path: Path, stored: str, tensor: Tensor) -> Tensor:
    if not tensor.isfinite().all():
        raise CheckpointError(path, f"NaN or infinity in {stored}", "finite numbers")
    return tensor


def file_hash(paths: list[Path]) -> str:
    """The SHA-256 of the concatenated files."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise CheckpointError(path, f"an unreadable file ({error})", "the weights as safetensors") from None
    return digest.hexdigest()
