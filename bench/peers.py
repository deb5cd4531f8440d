"""The engines that Headscope is measured against, each writing greedily from the same weights."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.harness import CACHE

Writer = Callable[[], None]


def transformers_writers(
    folder: Path, prompts: list[list[int]], n_tokens: int, threads: int, device: str = "cpu"
) -> dict[str, Writer]:
    """``generate`` with its own cache in float32 and bfloat16, without stopping early."""
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
        writers[f"transformers {name} {threads}t"] = partial(run, peer)
    return writers


def ctranslate2_writers(folder: Path, prompts: list[list[int]], n_tokens: int, threads: int) -> dict[str, Writer]:
    """CTranslate2 in float32 and int8, converted once and cached in the temporary folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ctranslate2

    def run(generator: Any, tokens: list[list[str]]) -> None:
        results = generator.generate_batch(tokens, min_length=n_tokens, max_length=n_tokens, sampling_topk=1,
                                           include_prompt_in_result=False)  # fmt: skip
        assert all(len(result.sequences_ids[0]) == n_tokens for result in results)

    writers = {}
    for name in ("float32", "int8"):
        converted = convert(folder, name)
        vocabulary = json.loads((converted / "vocabulary.json").read_text())
        generator = ctranslate2.Generator(str(converted), compute_type=name, intra_threads=threads)
        writers[f"ctranslate2 {name} {threads}t"] = partial(
            run, generator, [[vocabulary[i] for i in prompt] for prompt in prompts]
        )
    return writers


def convert(folder: Path, quantization: str) -> Path:
    """Convert a checkpoint folder for CTranslate2."""
    from ctranslate2.converters import TransformersConverter

    changed = int((folder / "model.safetensors").stat().st_mtime)
    target = CACHE / f"{folder.name}-{changed}-ct2-{quantization}"
    if not target.is_dir():
        partial = target.with_name(target.name + ".part")
        TransformersConverter(str(folder)).convert(str(partial), quantization=quantization, force=True)
        # CTranslate2 requires strings here, but a character vocabulary has no special tokens.
        config = json.loads((partial / "config.json").read_text())
        config |= {name: config.get(name) or "<none>" for name in ("bos_token", "eos_token", "unk_token")}
        (partial / "config.json").write_text(json.dumps(config))
        partial.rename(target)
    return target
