"""llama.cpp, from the package ``xllamacpp``: weights in bfloat16 and in 8-bit blocks (Q8_0), written as GGUF."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.peers.folder import converted
from model.checkpoint.folder_format import file_tensors
from model.checkpoint.gguf import add_sizes, arranged
from model.checkpoint.source import read_source

FILE_TYPES = {"bfloat16": 32, "Q8_0": 7}  # llama.cpp's numbers for the types of most tensors in a file


def llama_cpp_writers(
    folder: Path, prompts: list[list[int]], n_tokens: int, threads: int
) -> dict[str, Callable[[], None]]:
    """A request for each prompt, all at once, to a server in this process."""
    import xllamacpp

    def run(server: Any) -> None:
        def complete(prompt: list[int]) -> None:
            found = server.handle_completions(
                {"prompt": prompt, "max_tokens": n_tokens, "ignore_eos": True, "cache_prompt": False,
                 "temperature": 0, "samplers": ["temperature"]}
            )  # fmt: skip
            assert found["usage"]["completion_tokens"] == n_tokens, found

        with ThreadPoolExecutor(len(prompts)) as clients:
            list(clients.map(complete, prompts))

    writers = {}
    for precision in FILE_TYPES:
        params = xllamacpp.CommonParams()
        params.model.path = str(converted(folder, f"{precision}.gguf", partial(write_gguf, folder, precision)))
        params.n_parallel = len(prompts)
        params.n_ctx = len(prompts) * (len(prompts[0]) + n_tokens + 8)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.warmup, params.verbosity = False, -1
        with silent_output():
            writers[f"llama.cpp {precision}"] = partial(run, xllamacpp.Server(params))
    return writers


@contextmanager
def silent_output() -> Iterator[None]:
    """Drop what C++ code prints."""
    kept, nothing = [os.dup(1), os.dup(2)], os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    try:
        yield
    finally:
        for number, copy in enumerate(kept, 1):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nothing)


def write_gguf(folder: Path, precision: str, target: Path) -> None:
    """Write a checkpoint of GPT-2's or Llama's shape with rounded matrices, and a vocabulary of made-up words."""
    import gguf

    checkpoint = read_source(folder)
    arch = gguf.MODEL_ARCH.LLAMA if checkpoint.config.rotary else gguf.MODEL_ARCH.GPT2
    writer = gguf.GGUFWriter(str(target), gguf.MODEL_ARCH_NAMES[arch])
    writer.add_file_type(FILE_TYPES[precision])
    add_sizes(writer, checkpoint)
    add_vocabulary(writer, checkpoint.config.vocab_size)
    kind = gguf.GGMLQuantizationType["BF16" if precision == "bfloat16" else precision]
    names = gguf.get_tensor_name_map(arch, checkpoint.config.n_layer)
    for name, tensor in file_tensors(checkpoint.config, checkpoint.state, torch.float32).items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert theirs is not None, name
        values = arranged(name, tensor, checkpoint).contiguous().numpy()
        if values.ndim == 2 and not theirs.startswith("position"):
            writer.add_tensor(theirs, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_vocabulary(writer: Any, vocab_size: int) -> None:
    """Add words of four letters, because llama.cpp's server needs a vocabulary even for token ids."""
    words = ["".join(chr(97 + i // 26**place % 26) for place in range(4)) for i in range(vocab_size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([1] * vocab_size)
    writer.add_token_merges(["a a"])
    writer.add_eos_token_id(vocab_size - 1)
