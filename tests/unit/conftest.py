"""What the tests of training share."""

from pathlib import Path

import pytest
from helpers import TRAINING_TEXT


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TRAINING_TEXT)
    return path
