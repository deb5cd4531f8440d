"""Checkpoints in repositories on the Hugging Face Hub."""

import re
from pathlib import Path

from ..errors import CheckpointError
from .gpt2_format import CONFIG, SHARD_INDEX, TOKENIZER

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)


def download(repo_id: str) -> Path:
    """The local folder of a Hub repository, from the cache if there is no network.

    Raises ``CheckpointError`` if the repository cannot be downloaded.
    """
    from huggingface_hub import snapshot_download

    patterns = [CONFIG, TOKENIZER, SHARD_INDEX, "*.safetensors"]
    try:
        return Path(snapshot_download(repo_id, allow_patterns=patterns, ignore_patterns=["*/*"]))
    except Exception as error:  # the Hub's client raises unrelated types: offline, missing, gated, private
        reason = str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
        raise CheckpointError(repo_id, f"no such folder (on the Hub: {reason})", "a checkpoint folder") from error
