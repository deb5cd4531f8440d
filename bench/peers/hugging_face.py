"""transformers' ``generate``, in float32 and bfloat16."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch


def transformers_writers(
    folder: Path, prompts: list[list[int]], n_tokens: int, threads: int, device: str = "cpu"
) -> dict[str, Callable[[], None]]:
    """``generate`` with its own cache, without stopping early."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()

    def run(peer: Any) -> None:
        torch.set_num_threads(threads)
        ids = torch.tensor(prompts, device=device)
        options = {"max_new_tokens": n_tokens, "min_new_tokens": n_tokens, "do_sample": False, "pad_token_id": 0}
        with torch.inference_mode():
            written = peer.generate(ids, attention_mask=torch.ones_like(ids), **options)
        assert written.shape[1] == ids.shape[1] + n_tokens

    writers = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        peer = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
        writers[f"transformers {name}"] = partial(run, peer)
    return writers
