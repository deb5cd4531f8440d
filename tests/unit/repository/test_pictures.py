"""The README's pictures exist, have the right size, and are named in the README."""

import re
import struct
from pathlib import Path

import pytest
from PIL import Image

from helpers.serve_once import ROOT

PICTURES = re.findall(r'(?:src|srcset)="([^"]+\.png)"', (ROOT / "README.md").read_text(encoding="utf-8"))


def test_picture_exists_for_each_theme() -> None:
    assert sorted(Path(picture).stem for picture in PICTURES) == ["dark", "light"]


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_small_and_wide(picture: str) -> None:
    content = (ROOT / picture).read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n" and len(content) < 400_000
    assert struct.unpack(">I", content[16:20]) == (1440,)


def test_the_replay_loops_and_is_small() -> None:
    file = ROOT / "bench" / "readme" / "replay.webp"
    with Image.open(file) as picture:
        assert picture.n_frames > 10 and picture.info["loop"] == 0
    assert file.stat().st_size < 1_500_000
