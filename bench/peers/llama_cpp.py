"""llama.cpp, from the package ``xllamacpp``: weights in bfloat16 and in 8-bit blocks (Q8_0), written as GGUF."""

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from bench.peers.folder import converted

FILE_TYPES = {"bfloat16": 32, "Q8_0": 7}  # llama.cpp's numbers for the types of most tensors in a file
GPT2_NAMES = {
    "wte.weight": "token_embd.weight",
    "wpe.weight": "position_embd.weight",
    "ln_f": "output_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
LLAMA_NAMES = {
    "embed_tokens.weight": "token_embd.weight",
    "norm": "output_norm",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


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
    """Write a checkpoint folder of GPT-2's or Llama's shape as GGUF, with a vocabulary of made-up words."""
    import gguf

    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    family = config["model_type"]
    writer = gguf.GGUFWriter(str(target), family)
    writer.add_file_type(FILE_TYPES[precision])
    if family == "gpt2":
        n_embd, n_layer, n_head = config["n_embd"], config["n_layer"], config["n_head"]
        writer.add_context_length(config["n_positions"])
        writer.add_feed_forward_length(config["n_inner"] or 4 * n_embd)
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    else:
        n_embd, n_layer = config["hidden_size"], config["num_hidden_layers"]
        n_head = config["num_attention_heads"]
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_rope_dimension_count(n_embd // n_head)
        writer.add_rope_freq_base(rope_theta(config))
        writer.add_vocab_size(config["vocab_size"])
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layer)
    writer.add_head_count(n_head)
    add_vocabulary(writer, config["vocab_size"])
    for name, tensor in load_file(folder / "model.safetensors").items():
        stored, values = renamed(name, tensor.astype(np.float32), config)
        is_matrix = values.ndim == 2 and not stored.startswith("position")
        kind = gguf.GGMLQuantizationType["BF16" if precision == "bfloat16" else precision]
        if is_matrix:
            writer.add_tensor(stored, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(stored, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rope_theta(config: dict[str, Any]) -> float:
    return float(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])


def add_vocabulary(writer: Any, vocab_size: int) -> None:
    """Add words of four letters, because llama.cpp's server needs a vocabulary even for token ids."""
    words = ["".join(chr(97 + i // 26**place % 26) for place in range(4)) for i in range(vocab_size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    writer.add_token_types([1] * (vocab_size - 1) + [3])
    writer.add_token_merges(["a a"])
    writer.add_bos_token_id(vocab_size - 1)
    writer.add_eos_token_id(vocab_size - 1)


def renamed(name: str, values: NDArray[np.float32], config: dict[str, Any]) -> tuple[str, NDArray[np.float32]]:
    """A tensor's name and layout in GGUF, from those in ``model.safetensors``."""
    is_gpt2 = config["model_type"] == "gpt2"
    names = GPT2_NAMES if is_gpt2 else LLAMA_NAMES
    name = name.removeprefix("transformer.").removeprefix("model.")
    if name == "lm_head.weight":
        return "output.weight", values
    block = ""
    if name.startswith(("h.", "layers.")):
        _, number, name = name.split(".", 2)
        block = f"blk.{number}."
    if name in names:
        return names[name], values
    part, kind = name.rsplit(".", 1)
    if is_gpt2 and values.ndim == 2:  # GPT-2 stores (in, out)
        values = values.T
    if part.endswith(("q_proj", "k_proj")):  # llama.cpp rotates neighbouring numbers, not halves of a head
        n_head = config["num_attention_heads" if part.endswith("q_proj") else "num_key_value_heads"]
        values = values.reshape(n_head, 2, -1, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
    return f"{block}{names[part]}.{kind}", np.ascontiguousarray(values)
