"""The compiled forward pass with weights in 16 bits, each of which takes long to compile."""

import numpy as np
import pytest
import torch

from helpers.models import max_difference, prompt_ids, tiny_gpt
from model.kernels.compiled import CompiledGPT

IDS = prompt_ids(20)


@torch.inference_mode()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_are_computed_in_float32(dtype: torch.dtype) -> None:
    gpt = tiny_gpt(n_embd=32).to(dtype).float()
    expected = gpt(torch.tensor([IDS])).logits[0]
    compiled = CompiledGPT(gpt, 1, 32)
    assert compiled.weights.panels.dtype == (np.int16 if dtype == torch.float16 else np.uint32)
    compiled.read([(token, 0, i, True, -1) for i, token in enumerate(IDS)])
    assert max_difference(compiled.logits[: len(IDS)], expected) < 1e-4
