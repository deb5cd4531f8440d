"""OpenVINO, with weights in float32 and int8, exported by ``optimum-intel``.

The exporter needs an older ``huggingface_hub`` than Headscope and gets an environment of its own. The exported model is
run by ``openvino`` alone.
"""

import os
import sys
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import CACHE
from bench.peers.folder import converted, run

PRECISIONS = {"float32": "fp32", "int8": "int8"}  # our names, and the exporter's


def openvino_writers(
    folder: Path, prompts: list[list[int]], n_tokens: int, threads: int
) -> dict[str, Callable[[], None]]:
    """Greedy decoding of all prompts in one batch, in the precision of arithmetic that OpenVINO chooses."""
    import openvino

    core, writers = openvino.Core(), {}
    for precision in PRECISIONS:
        stored = converted(folder, f"openvino-{precision}", partial(export, folder, precision))
        model = core.read_model(str(stored / "openvino_model.xml"))
        predict_last_only(model)
        options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
        request = core.compile_model(model, "CPU", options).create_infer_request()
        writers[f"openvino {precision}"] = partial(write, request, np.array(prompts), n_tokens)
    return writers


def write(request: Any, prompts: Any, n_tokens: int) -> None:
    request.reset_state()
    ids, n_read, n_texts = prompts, 0, len(prompts)
    for _ in range(n_tokens):
        end = n_read + ids.shape[1]
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones((n_texts, end), np.int64),
            "position_ids": np.tile(np.arange(n_read, end), (n_texts, 1)),
            "beam_idx": np.arange(n_texts, dtype=np.int32),
        }
        wanted = {name for port in request.model_inputs for name in port.names}
        found = request.infer({name: value for name, value in inputs.items() if name in wanted}, share_outputs=True)
        ids, n_read = found[0][:, -1:].argmax(-1), end


def predict_last_only(model: Any) -> None:
    """Compute logits for the last token only, as OpenVINO's own pipelines do."""
    from openvino import opset13

    (logits,) = (result for result in model.get_results() if "logits" in result.input_value(0).names)
    product = logits.input_value(0).get_node()
    numbers = [np.array([number], np.int64) for number in (-1, np.iinfo(np.int64).max, 1, 1)]  # start, end, step, axis
    last = opset13.slice(product.input_value(0), *numbers)
    product.input(0).replace_source_output(last.output(0))
    model.validate_nodes_and_infer_types()


def export(folder: Path, precision: str, target: Path) -> None:
    command = [exporter(), "export", "openvino", "--model", folder, "--task", "text-generation-with-past",
               "--weight-format", PRECISIONS[precision], "--disable-convert-tokenizer", target]  # fmt: skip
    run(*command)


def exporter() -> Path:
    """The command of ``optimum-intel``, installed once."""
    home = CACHE / "optimum"
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    if not (scripts / "optimum-cli").exists():
        print("installing optimum-intel, once, to export models for OpenVINO ...", file=sys.stderr)
        venv.create(home, clear=True, with_pip=True)
        run(scripts / "python", "-m", "pip", "install", "--quiet", "optimum-intel[openvino]==2.*")
    return scripts / "optimum-cli"
