"""A folder on disk or a repository on the Hub, read into a GPT and its tokenizer: all checked, nothing unpickled."""

import os
import re
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import CheckpointError
from ..gpt import GPT
from ..kernels.int8 import quantize
from ..tokenizer.tokenizer import Tokenizer
from .gpt2_format import CONFIG, SHARD_INDEX, SNAPSHOTS, TOKENIZER, TRANSPOSED
from .precision import choose_device, choose_dtype
from .read import file_hash, read_config, read_tokenizer, read_weights, weight_files

SNAPSHOT = re.compile(r"(.+)@(\d{6,})", re.ASCII)
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)


class Checkpoint(NamedTuple):
    """What a folder holds. ``sha256`` is that of the weights as stored."""

    name: str
    gpt: GPT
    tokenizer: Tokenizer
    bos_token_id: int | None
    eos_token_id: int | None
    sha256: str


def load_checkpoint(source: str | Path, device: str = "auto", dtype: str = "auto") -> Checkpoint:
    """Open the checkpoint in the folder ``source``, or in the Hub repository of that id where no such folder is.

    ``FOLDER@NNNNNN`` opens the weights that training kept after that step, ``FOLDER/steps/NNNNNN.safetensors``.
    ``device`` is "auto" (cuda where usable, else the CPU) or a torch device; ``dtype`` is "auto" (float32 below 50 M
    weights, bfloat16 above where the processor has it), "float32", "bfloat16", or on a CPU "int8", whose matrices are
    rounded. Raises ``CheckpointError`` for whatever is wrong with the checkpoint, ``ValueError`` for another device or
    dtype.
    """
    folder, step, name = Path(source), None, Path(os.path.abspath(source)).name
    if not os.path.isdir(folder):
        if snapshot := SNAPSHOT.fullmatch(str(source)):
            folder, step = Path(snapshot[1]), snapshot[2]
        elif HUB_ID.fullmatch(str(source)):
            folder, name = download(str(source)), str(source)
    before = stamps(folder)
    config, bos, eos = read_config(folder)
    tokenizer = read_tokenizer(folder, config)
    target = choose_device(device)
    precision = choose_dtype(dtype, config, target)
    with torch.device("meta"):
        gpt = GPT(config)
    paths = weight_files(folder) if step is None else [folder / SNAPSHOTS / f"{step}.safetensors"]
    state = read_weights(paths, config, {name: t.shape for name, t in gpt.state_dict().items()})
    sha256 = file_hash(paths)
    if stamps(folder) != before:  # the weights may belong to another config or vocabulary
        raise CheckpointError(folder, "files replaced while they were read", "a checkpoint at rest: load it again")
    stored = torch.float32 if precision == torch.int8 else precision
    state = {name: placed(name, tensor.to(target, stored)) for name, tensor in state.items()}
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["wte.weight"]
    gpt.load_state_dict(state, assign=True)
    gpt.tie_weights()  # assigning made two parameters of one
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


def stamps(folder: Path) -> list[tuple[int, int]]:
    """What changes when the config or the vocabulary is replaced."""
    paths = (folder / name for name in (CONFIG, TOKENIZER))
    found = (os.stat(path) for path in paths if os.path.isfile(path))
    return [(stat.st_ino, stat.st_mtime_ns) for stat in found]


def placed(name: str, tensor: Tensor) -> Tensor:
    """A weight as it lies best in memory: the CPU multiplies one float32 row a third faster by a matrix that lies
    ``(in, out)``, as the file has it; everything else wants ``(out, in)``."""
    keep = tensor.device.type == "cpu" and tensor.dtype == torch.float32 and TRANSPOSED.fullmatch(name)
    return tensor if keep else tensor.contiguous()


def download(repo_id: str) -> Path:
    """The folder of a Hub repository, from the cache where there is no network."""
    from huggingface_hub import snapshot_download

    patterns = [CONFIG, TOKENIZER, SHARD_INDEX, "*.safetensors"]
    try:
        return Path(snapshot_download(repo_id, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except Exception as error:  # the Hub's client raises from many families: offline, missing, gated, private
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise CheckpointError(repo_id, f"no such folder (on the Hub: {reason})", "a checkpoint folder") from error
