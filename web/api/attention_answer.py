"""Attention weights of whole texts as the body of a response, computed layer by layer and sent in pieces."""

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import orjson
from numpy.typing import NDArray
from torch import Tensor

from model import LoadedModel
from model.lens.text_pass import TextPass

JSON_BYTES = 14  # of one weight, at most
TOKEN_BYTES = 500  # per token, as a Python object and as text
REQUEST_BYTES = 150_000  # of a request in progress, not counting its answer
HEAP_GROWTH = 1.25  # factor by which the C heap outgrows the memory in use, since large blocks come and go
PIECE_WEIGHTS = 65_536  # weights converted to bytes at a time


def head_weights(loaded: LoadedModel, ids: Sequence[int], layer: int, head: int) -> bytes:
    """The tokens of a text and the attention weights of one head, ``[query][key]``, in JSON."""
    weights = TextPass(loaded.gpt, ids).attention(layer, heads=[head])[0].numpy()
    answer = {"tokens": [token.text for token in loaded.tokens(ids)], "attention": weights}
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


class AttentionBody:
    """The attention weights of some heads as the body of a response, in pieces of at most ``PIECE_WEIGHTS``."""

    def __init__(
        self, loaded: LoadedModel, ids: list[int], layers: list[int], heads: list[int], head_mask: Tensor | None
    ) -> None:
        self.loaded, self.ids, self.layers, self.heads, self.head_mask = loaded, ids, layers, heads, head_mask
        tokens = [token._asdict() for token in loaded.tokens(ids)]
        self.n_weights = len(layers) * len(heads) * len(ids) ** 2
        self.header: dict[str, object] = {"model": loaded.name, "tokens": tokens, "layers": layers, "heads": heads}

    @property
    def held_bytes(self) -> int:
        """Bytes held while the client reads: the residual stream, one layer's weights and two pieces of the body.

        Computing a layer briefly takes more, but only in as many threads as there are workers.
        """
        gpt, config, n_tokens = self.loaded.gpt, self.loaded.config, len(self.ids)
        stream = (config.n_layer + 1) * n_tokens * config.n_embd * gpt.wte.weight.element_size()
        layer = len(self.heads) * n_tokens**2
        pieces = 2 * JSON_BYTES * min(layer, PIECE_WEIGHTS)
        return int(HEAP_GROWTH * (stream + 4 * layer + pieces + n_tokens * TOKEN_BYTES)) + REQUEST_BYTES

    def layers_in(self, form: Callable[[NDArray[np.float32]], Iterator[bytes]]) -> Iterator[Iterator[bytes]]:
        """The pieces of each layer; its ``(heads, T, T)`` float32 weights are freed after the last piece."""
        text_pass = TextPass(self.loaded.gpt, self.ids, self.head_mask)
        for layer in self.layers:
            yield form(text_pass.attention(layer, heads=self.heads).numpy())

    def json(self) -> Iterator[bytes]:
        """``{"model", "tokens", "layers", "heads", "attention": [layer][head][query][key]}``."""
        yield orjson.dumps(self.header)[:-1] + b',"attention":['
        for i, pieces in enumerate(self.layers_in(in_json)):
            if i > 0:
                yield b","
            yield from pieces
        yield b"]}"

    def safetensors(self) -> Iterator[bytes]:
        """A safetensors file: the tensor ``attention``, with the rest of the JSON answer as strings in the metadata."""
        n_layer, n_head, n_tokens = len(self.layers), len(self.heads), len(self.ids)
        metadata = {name: value if isinstance(value, str) else json.dumps(value) for name, value in self.header.items()}
        yield safetensors_header({"attention": [n_layer, n_head, n_tokens, n_tokens]}, metadata)
        for pieces in self.layers_in(in_binary):
            yield from pieces


def in_json(layer: NDArray[np.float32]) -> Iterator[bytes]:
    """``(heads, T, T)`` weights as nested lists; each piece has some rows of one head."""
    n_heads, n_tokens, _ = layer.shape
    n_rows = max(1, PIECE_WEIGHTS // n_tokens)
    for head in range(n_heads):
        for row in range(0, n_tokens, n_rows):
            text = memoryview(orjson.dumps(layer[head, row : row + n_rows], option=orjson.OPT_SERIALIZE_NUMPY))
            before = b"," if row else b",[" if head else b"[["
            ends = row + n_rows >= n_tokens
            after = (b"]]" if head == n_heads - 1 else b"]") if ends else b""
            yield b"".join((before, text[1:-1], after))


def safetensors_header(shapes: Mapping[str, Sequence[int]], metadata: Mapping[str, str]) -> bytes:
    """What a safetensors file begins with; its tensors, float32 with these ``shapes``, follow in this order."""
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    content = json.dumps(header, ensure_ascii=False).encode()
    content += b" " * (-len(content) % 8)  # the format aligns the data
    return struct.pack("<Q", len(content)) + content


def in_binary(layer: NDArray[np.float32]) -> Iterator[bytes]:
    weights = layer.reshape(-1)
    for begin in range(0, weights.size, PIECE_WEIGHTS):
        yield weights[begin : begin + PIECE_WEIGHTS].tobytes()
