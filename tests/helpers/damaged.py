"""A checkpoint whose files are damaged, and what may become of it."""

import json
import struct
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import model
from helpers.models import tiny_bpe, tiny_model

FILES = ("config.json", "tokenizer.json", "model.safetensors")
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from([0, 1, 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


class Damaged:
    """A checkpoint whose files can be replaced, and are put back afterwards."""

    def __init__(self, folder: Path, bpe: bool) -> None:
        tokenizer = tiny_bpe(258) if bpe else None
        tiny_model(tokenizer=tokenizer, n_layer=1, n_embd=4, context_length=8).save(folder)
        self.folder = folder
        self.content = {name: (folder / name).read_bytes() for name in FILES}

    def check(self, name: str, content: bytes) -> str:
        """Try with ``content`` in the file: "refused" or "loaded"; anything else that is raised fails the test."""
        (self.folder / name).write_bytes(content)
        try:
            loaded = model.load(self.folder, device="cpu")
            try:
                assert len(list(loaded.generate([0], 3, seed=0))) >= 1
            except FloatingPointError:  # finite weights, but so large that the logits are not
                assert max(p.abs().max() for p in loaded.gpt.parameters()) > 1e6
            assert loaded.trace([0, 1]).logits.shape == (2, loaded.config.vocab_size)
            loaded.tokenizer.encode(loaded.tokenizer.decode(range(loaded.tokenizer.vocab_size)))
            return "loaded"
        except model.CheckpointError as error:
            assert error.file == str(self.folder / name) or name != "model.safetensors"
            assert error.found and error.expected and len(str(error)) < 3000
            assert str(error).encode()
            return "refused"
        finally:
            (self.folder / name).write_bytes(self.content[name])


def paths_of(content: Any, path: tuple = ()) -> list[tuple]:
    """Every place in a JSON value, at most a few of each long list or vocabulary."""
    found = [path] if path else []
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items)[:40]:
        found += paths_of(value, (*path, key))
    return found


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]
