"""Fixtures that every test may use."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
import torch
from helpers import TRAINING_TEXT

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


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A file that a small model learns in no time."""
    path = tmp_path / "text.txt"
    path.write_text(TRAINING_TEXT)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI is set everything can be installed: a test skipped for want of anything but the texts has failed."""
    report = yield
    wanting = report.skipped and not hasattr(report, "wasxfail") and "HEADSCOPE_DATA" not in str(report.longrepr)
    if wanting and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be missing: {report.longrepr}"
    return report
