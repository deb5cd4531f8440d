"""Loading a checkpoint, from a folder or from the Hub, as a GPT and its tokenizer."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import CheckpointError
from ..gpt import GPT
from ..kernels.int8 import quantize
from ..tokenizer import Tokenizer
from .gpt2_format import CONFIG, SNAPSHOTS, TOKENIZER, TRANSPOSED
from .hub import HUB_ID, download
from .precision import choose_device, choose_dtype
from .read import file_hash, read_config, read_tokenizer, read_weights, weight_files

SNAPSHOT = re.compile(r"(.+)@(\d{6,})", re.ASCII)  # FOLDER@NNNNNN


class Checkpoint(NamedTuple):
    """A checkpoint in memory. ``sha256`` is the hash of its weight files."""

    name: str
    gpt: GPT
    tokenizer: Tokenizer
    bos_token_id: int | None
    eos_token_id: int | None
    sha256: str


def load_checkpoint(source: str | Path, device: str = "auto", dtype: str = "auto") -> Checkpoint:
    """Load what ``model.load`` wraps in a ``LoadedModel``: the arguments and the errors raised are the same."""
    folder, step, name = Path(source), None, Path(os.path.abspath(source)).name
    if not os.path.isdir(folder):
        if snapshot := SNAPSHOT.fullmatch(str(source)):
            folder, step = Path(snapshot[1]), snapshot[2]
        elif HUB_ID.fullmatch(str(source)):
            folder, name = download(str(source)), str(source)
    before = file_versions(folder)
    config, bos, eos = read_config(folder)
    tokenizer = read_tokenizer(folder, config)
    target = choose_device(device)
    precision = choose_dtype(dtype, config, target)
    with torch.device("meta"):
        gpt = GPT(config)
    paths = weight_files(folder) if step is None else [folder / SNAPSHOTS / f"{step}.safetensors"]
    state = read_weights(paths, config, {name: t.shape for name, t in gpt.state_dict().items()})
    sha256 = file_hash(paths)
    if file_versions(folder) != before:  # the weights may belong to another config or vocabulary
        raise CheckpointError(
            folder, "files replaced while they were read", "a checkpoint that is not being written: load it again"
        )
    stored = torch.float32 if precision == torch.int8 else precision
    state = {name: in_fastest_layout(name, tensor.to(target, stored)) for name, tensor in state.items()}
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["wte.weight"]
    gpt.load_state_dict(state, assign=True)
    gpt.tie_weights()  # assigning split the shared parameter in two
    gpt.eval().requires_grad_(False)
    if precision == torch.int8:
        quantize(gpt)
    return Checkpoint(
        name=name,
        gpt=gpt,
        tokenizer=tokenizer,
        bos_token_id=bos,
        eos_token_id=eos,
        sha256=sha256,
    )


def file_versions(folder: Path) -> list[tuple[int, int]]:
    """Inode and modification time of the config and the vocabulary, which change if either is replaced."""
    paths = (folder / name for name in (CONFIG, TOKENIZER))
    stats = (os.stat(path) for path in paths if os.path.isfile(path))
    return [(stat.st_ino, stat.st_mtime_ns) for stat in stats]


def in_fastest_layout(name: str, tensor: Tensor) -> Tensor:
    """A weight in the memory layout that multiplies fastest.

    On a CPU, the product of one float32 row and a matrix is a third faster if the matrix is stored ``(in, out)``, as in
    the file; in every other case ``(out, in)`` is best.
    """
    keep = tensor.device.type == "cpu" and tensor.dtype == torch.float32 and TRANSPOSED.fullmatch(name)
    return tensor if keep else tensor.contiguous()
