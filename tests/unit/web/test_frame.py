"""The frame between server and page: the fixture that the browser's decoder is tested with is what the server sends.

``tests/js/frame.test.mjs`` decodes the same fixture. When the format changes, this writes it again:
``PYTHONPATH=.:tests python tests/unit/web/test_frame.py``.
"""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.models import tiny_bpe, tiny_model
from model.drawing.metrics import FRAME_MEASURES
from model.lens.text_pass import TextPass
from web.page.pointers import SentTokens
from web.runs.run import Run

FIXTURES = Path(__file__).parents[2] / "fixtures"
START, TEXT = 2, "To be\n"
FLOAT = 4  # bytes


def encoded() -> bytes:
    """A frame of a run whose weights and log-probabilities are given, so that it is the same on every machine."""
    loaded = tiny_model(0)
    run = Run("frame", loaded, loaded.parse_prompt(TEXT), capacity=len(TEXT))
    n_layer, n_head, T = loaded.config.n_layer, loaded.config.n_head, len(TEXT)
    scores = torch.randint(1, 9, (n_layer, n_head, T, T), generator=torch.Generator().manual_seed(0)).tril()
    run.recording.extend(scores / scores.sum(-1, keepdim=True))
    run.logprobs[1:] = [-0.5, -1.25, -3.0, -0.125, -7.5]
    return run.frame(START)


def split(content: bytes) -> tuple[dict[str, Any], np.ndarray, bytes]:
    """Header, metrics ``(P, M)`` and thumbnails, as the specification of the frame has them."""
    (length,) = struct.unpack("<I", content[:4])
    header = json.loads(content[4 : 4 + length])
    end = 4 + length + FLOAT * header["pictures"] * len(FRAME_MEASURES)
    return header, np.frombuffer(content[4 + length : end], "<f4").reshape(-1, len(FRAME_MEASURES)), content[end:]


def described(content: bytes) -> dict[str, Any]:
    header, metrics, thumbnails = split(content)
    names = {"metric_order": list(FRAME_MEASURES)}
    return names | {"header": header, "metrics": metrics.tolist(), "thumbnails": list(thumbnails)}


def test_the_fixture_is_what_the_server_sends() -> None:
    content, golden = encoded(), (FIXTURES / "frame.bin").read_bytes()
    (_, metrics, _), (_, golden_metrics, _) = split(content), split(golden)
    # Logarithms differ in their last bit from one processor to another; everything else is equal byte for byte.
    np.testing.assert_allclose(metrics, golden_metrics, rtol=1e-6, atol=1e-7)
    assert content.replace(metrics.tobytes(), golden_metrics.tobytes()) == golden


def test_the_fixture_says_what_it_decodes_to() -> None:
    golden = (FIXTURES / "frame.bin").read_bytes()
    assert described(golden) == json.loads((FIXTURES / "frame.json").read_text(encoding="utf-8"))


def test_a_frame_from_the_newest_row_on_has_its_token_alone() -> None:
    loaded = tiny_model(0)
    run = Run("frame", loaded, loaded.parse_prompt("ab"), capacity=2)
    run.recording.extend(torch.eye(2).expand(loaded.config.n_layer, loaded.config.n_head, 2, 2))
    header, _, thumbnails = split(run.frame(1))
    assert header["tokens"] == ["b"] and header["rows"] == 2 and header["first"] == 1
    assert len(thumbnails) == 2 * header["pictures"]


@pytest.mark.parametrize("start", [0, 6])
def test_every_part_has_the_length_that_the_header_says(start: int) -> None:
    loaded = tiny_model(0)
    run = Run("frame", loaded, loaded.parse_prompt(TEXT), capacity=len(TEXT))
    run.recording.extend(torch.eye(len(TEXT)).expand(loaded.config.n_layer, loaded.config.n_head, -1, -1))
    header, metrics, thumbnails = split(run.frame(start))
    side = header["rows"]  # one cell for each row of a short text
    cells = sum(row + 1 for row in range(header["first"], side))
    assert len(metrics) == header["pictures"] and len(thumbnails) == header["pictures"] * cells
    assert len(header["tokens"]) == len(header["ids"]) == len(header["logprobs"]) == len(TEXT) - start


def test_characters_of_several_tokens_stand_on_the_last_of_them() -> None:
    loaded = tiny_model(0, tiny_bpe(300), context_length=64)
    ids = loaded.parse_prompt("\u0416\u0438 “a” \U0001f600!")
    run, sent = Run("frame", loaded, ids[:1], capacity=len(ids)), SentTokens()
    tokens = sent.take(run)
    for token_id in ids[1:]:
        run.ids.append(token_id)
        run.logprobs.append(None)
        tokens += sent.take(run)
    expected = loaded.text_tokens(ids)
    assert [(token["text"], token.get("bytes", "")) for token in tokens] == [
        (token.text, token.byte_text) for token in expected
    ]
    run.fill(TextPass(loaded.gpt, ids))
    header = split(run.frame(0))[0]
    assert header["tokens"] == [token.text for token in expected]
    assert header["bytes"] == {str(i): token.byte_text for i, token in enumerate(expected) if token.byte_text}
    assert split(run.frame(2))[0]["tokens"] == header["tokens"][2:]
    trace = loaded.trace(ids)
    assert trace.text == "\u0416\u0438 “a” \U0001f600!" and trace.tokens == expected


if __name__ == "__main__":
    (FIXTURES / "frame.bin").write_bytes(encoded())
    (FIXTURES / "frame.json").write_text(json.dumps(described(encoded())) + "\n", encoding="utf-8")
