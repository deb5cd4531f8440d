"""A GPT on the meta device, which has shapes only."""

import subprocess
import sys

import pytest
import torch

from helpers.files import ROOT
from model.checkpoint.weights import gpt_on_meta
from model.config import GPTConfig
from model.gpt import GPT

LOADS_AND_WRITES = """
import sys, model
list(model.load("checkpoints/two-layer-steps", device="cpu").generate("Once", 2))
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("tied", [True, False])
def test_meta_model_has_the_shapes_of_a_gpt(tied: bool) -> None:
    config = GPTConfig(
        vocab_size=11, context_length=5, n_layer=2, n_head=2, n_embd=8, qkv_bias=True, tie_word_embeddings=tied
    )
    on_meta, real = gpt_on_meta(config).state_dict(), GPT(config).state_dict()
    assert {name: tensor.shape for name, tensor in on_meta.items()} == {
        name: tensor.shape for name, tensor in real.items()
    }
    assert {tensor.device for tensor in on_meta.values()} == {torch.device("meta")}


@pytest.mark.release
def test_loading_and_writing_need_no_compiler_of_torch() -> None:
    """Its import would make every start most of a second longer."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS_AND_WRITES], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "False", done.stderr
