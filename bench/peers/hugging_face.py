"""transformers' ``generate``, in float32, and in bfloat16 where the processor multiplies it natively."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from model.checkpoint.load import has_bfloat16


def transformers_writers(
    folder: Path, prompts: list[list[int]], n_tokens: int, threads: int, device: str = "cpu"
) -> dict[str, Callable[[], None]]:
    """``generate`` with its own cache, without stopping early."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    precisions = [torch.float32, torch.bfloat16] if has_bfloat16(torch.device(device)) else [torch.float32]
    if device == "cuda":  # where we, too, write in bfloat16
        precisions = precisions[-1:]

    def run(peer: Any) -> None:
        torch.set_num_threads(threads)
        ids = torch.tensor(prompts, device=device)
        options = {"max_new_tokens": n_tokens, "min_new_tokens": n_tokens, "do_sample": False, "pad_token_id": 0}
        with torch.inference_mode():
            written = peer.generate(ids, attention_mask=torch.ones_like(ids), **options)
        assert written.shape[1] == ids.shape[1] + n_tokens

    writers = {}
    for dtype in precisions:
        peer = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(device).eval()
        writers[f"transformers {str(dtype).removeprefix('torch.')}"] = partial(run, peer)
    return writers
