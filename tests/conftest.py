"""Fixtures that every test may use."""

import os
from pathlib import Path

import pytest
import torch

# The models here are tiny: on a busy machine a second thread costs far more than it gives.
torch.set_num_threads(1)
# Before transformers or huggingface_hub is imported: no test asks another host for anything.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of the real texts and vocabularies; a test that needs it is skipped where it is not named."""
    folder = os.environ.get("HEADSCOPE_DATA")
    if not folder:
        pytest.skip(
            "HEADSCOPE_DATA is not set: it names the folder with tinyshakespeare.txt, the-verdict.txt, gpt2-vocab/"
        )
    return Path(folder)
