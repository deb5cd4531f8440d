"""What is in an HTML file."""

import gzip
import json
import re
import struct
from base64 import b64decode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.drawing.metrics import FRAME_MEASURES


def content(document: str) -> dict[str, Any]:
    """The data in a document, whose element ends at the first "</script"."""
    found = re.search(r'<script type="application/json" id="hs-saved">(.*?)</script', document, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def numbers(text: str, dtype: str) -> NDArray[Any]:
    """What ``pack_numbers`` packed."""
    planes = np.frombuffer(gzip.decompress(b64decode(text)), np.uint8).reshape(np.dtype(dtype).itemsize, -1)
    return planes.T.copy().view(dtype).reshape(-1)


def frame_of(data: dict[str, Any]) -> tuple[dict[str, Any], NDArray[Any], NDArray[Any]]:
    """The header, the measures ``(pictures, measures)`` and the thumbnails of the frame in a document."""
    frame = gzip.decompress(b64decode(data["frame"]))
    (length,) = struct.unpack_from("<I", frame)
    header: dict[str, Any] = json.loads(frame[4 : 4 + length])
    rest, size = frame[4 + length :], 4 * header["pictures"] * len(FRAME_MEASURES)
    measures = np.frombuffer(rest[:size], "<f4").reshape(header["pictures"], -1)
    return header, measures, np.frombuffer(rest[size:], np.uint8)
