"""Attention weights of whole texts as the body of an answer; a long one goes out layer by layer."""

import json
import struct
from collections.abc import Iterator, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray
from torch import Tensor

from model import LoadedModel
from model.lens.residuals import Residuals

JSON_BYTES = 12  # of one weight


def head_weights(loaded: LoadedModel, ids: Sequence[int], layer: int, head: int) -> bytes:
    """The tokens of a text and the attention weights of one head, ``[query][key]``, in JSON."""
    weights = Residuals(loaded.gpt, ids).attention(layer)[head].numpy()
    answer = {"tokens": [token.text for token in loaded.tokens(ids)], "attention": weights}
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


class AttentionAnswer:
    """The attention weights of some heads as the body of an answer, in pieces of one layer."""

    def __init__(
        self, loaded: LoadedModel, ids: list[int], layers: list[int], heads: list[int], head_mask: Tensor | None
    ) -> None:
        self.loaded, self.ids, self.layers, self.heads, self.head_mask = loaded, ids, layers, heads, head_mask
        tokens = [token._asdict() for token in loaded.tokens(ids)]
        self.n_weights = len(layers) * len(heads) * len(ids) ** 2
        self.header: dict[str, object] = {"model": loaded.name, "tokens": tokens, "layers": layers, "heads": heads}

    def layer_bytes(self, *, as_json: bool) -> int:
        """About the size of the largest piece."""
        return self.n_weights // len(self.layers) * (JSON_BYTES if as_json else 4)

    def weights(self) -> Iterator[NDArray[np.float32]]:
        """Each layer's ``(heads, T, T)`` float32, as a NumPy array."""
        residuals = Residuals(self.loaded.gpt, self.ids, self.head_mask)
        for layer in self.layers:
            yield residuals.attention(layer)[self.heads].contiguous().numpy()

    def json(self) -> Iterator[bytes]:
        """``{"model", "tokens", "layers", "heads", "attention": [layer][head][query][key]}``."""
        yield orjson.dumps(self.header)[:-1] + b',"attention":['
        for i, layer in enumerate(self.weights()):
            yield b"," * (i > 0) + orjson.dumps(layer, option=orjson.OPT_SERIALIZE_NUMPY)
        yield b"]}"

    def safetensors(self) -> Iterator[bytes]:
        """A safetensors file: the tensor ``attention``, and the rest of the JSON answer as strings in its metadata."""
        n_layer, n_head, n_tokens = len(self.layers), len(self.heads), len(self.ids)
        metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in self.header.items()}
        size = 4 * n_layer * n_head * n_tokens**2
        tensor = {"dtype": "F32", "shape": [n_layer, n_head, n_tokens, n_tokens], "data_offsets": [0, size]}
        header = json.dumps({"__metadata__": metadata, "attention": tensor}, ensure_ascii=False).encode()
        header += b" " * (-len(header) % 8)  # the format aligns the data
        yield struct.pack("<Q", len(header)) + header
        for layer in self.weights():
            yield layer.tobytes()
