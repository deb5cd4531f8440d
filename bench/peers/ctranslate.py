"""CTranslate2, in float32 and int8."""

import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers.folder import converted


def ctranslate2_writers(
    folder: Path, prompts: list[list[int]], n_tokens: int, threads: int
) -> dict[str, Callable[[], None]]:
    """All prompts in one batch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ctranslate2

    def run(generator: Any, tokens: list[list[str]]) -> None:
        results = generator.generate_batch(tokens, min_length=n_tokens, max_length=n_tokens, sampling_topk=1,
                                           include_prompt_in_result=False)  # fmt: skip
        assert all(len(result.sequences_ids[0]) == n_tokens for result in results)

    writers = {}
    for name in ("float32", "int8"):
        stored = converted(folder, f"ct2-{name}", partial(convert, folder, name))
        vocabulary = json.loads((stored / "vocabulary.json").read_text())
        generator = ctranslate2.Generator(str(stored), compute_type=name, intra_threads=threads)
        writers[f"ctranslate2 {name}"] = partial(
            run, generator, [[vocabulary[i] for i in prompt] for prompt in prompts]
        )
    return writers


def convert(folder: Path, quantization: str, target: Path) -> None:
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(folder)).convert(str(target), quantization=quantization)
    # CTranslate2 requires strings here, but a character vocabulary has no special tokens.
    config = json.loads((target / "config.json").read_text())
    config |= {name: config.get(name) or "<none>" for name in ("bos_token", "eos_token", "unk_token")}
    (target / "config.json").write_text(json.dumps(config))
