"""Only the forward pass, and what maps or packs weights, knows which modules a model is made of.

Whatever else looks inside a model asks ``MultiHeadAttention``, ``Block`` and ``GPT`` for what it needs, so that a model
of another family has to be made known in these files alone.
"""

import re

from helpers.files import ROOT

MODULES = re.compile(r"\b(c_attn|c_proj|c_fc|wpe|ln_1|ln_2|ln_f)\b")
KNOWN_TO = {
    "model/gpt.py",
    "model/attention.py",
    "model/modules/head_tensors.py",
    "model/modules/initial_weights.py",
    "model/modules/layer_norms.py",
    "model/modules/mlp.py",
    # The forward pass for many texts at once.
    "model/serving/torch_reader.py",
    "model/serving/graph_reader.py",
    "model/kernels/gpu.py",
    # Names of tensors in checkpoints.
    "model/checkpoint/families/gpt2.py",
    "model/checkpoint/families/gpt_neo.py",
    "model/checkpoint/families/gpt_neox.py",
    "model/checkpoint/families/opt.py",
    "model/checkpoint/families/llama.py",
    "model/checkpoint/layouts.py",
    "model/checkpoint/load.py",
    # Weights packed for the compiled loops; matrices that are optimised separately.
    "model/kernels/pack.py",
    "model/train/optimizers.py",
    # The forward pass step by step, for Learn.
    "model/ladder/block.py",
    "model/ladder/trainable_attention.py",
    # A GPT-2 put together without Headscope, in notebooks.
    "web/learn/notebooks/cells.py",
    "web/learn/notebooks/tasks_of_models.py",
}


def test_modules_of_a_model_are_used_in_listed_files_only() -> None:
    sources = [ROOT / "app.py", *(path for top in ("model", "web", "bench") for path in (ROOT / top).rglob("*.py"))]
    found = {str(path.relative_to(ROOT)) for path in sources if MODULES.search(path.read_text(encoding="utf-8"))}
    assert found <= KNOWN_TO, "ask attention, block and GPT instead"
    assert KNOWN_TO <= found, "no longer needed in the list"
