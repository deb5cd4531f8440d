"""/v1/embeddings: the vector of a text is the mean of the model's last hidden states."""

import base64
import struct
from collections.abc import Sequence

from torch import Tensor

from model import LoadedModel, PromptError

from ..settings import Limits
from .completions import parse_prompts
from .schema import EmbeddingsRequest


class Embeddings:
    """One call: the checked inputs, and the answer made of their vectors. Raises ``InputError`` for invalid input."""

    def __init__(self, loaded: LoadedModel, asked: EmbeddingsRequest, limits: Limits) -> None:
        self.loaded, self.asked = loaded, asked
        try:
            self.inputs = parse_prompts(limits, loaded, asked.input, "input")
        except PromptError as error:
            raise error.about("input") from None

    def compute(self) -> list[Tensor]:
        """A vector for each input, ``(n_embd,)`` float32."""
        return [self.loaded.embed(ids) for ids in self.inputs]

    def answer(self, vectors: Sequence[Tensor]) -> dict[str, object]:
        n_tokens = sum(map(len, self.inputs))
        encode = as_base64 if self.asked.encoding_format == "base64" else Tensor.tolist
        data = [{"object": "embedding", "index": i, "embedding": encode(vector)} for i, vector in enumerate(vectors)]
        usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
        return {"object": "list", "data": data, "model": self.loaded.name, "usage": usage}


def as_base64(vector: Tensor) -> str:
    """Base64 of little-endian float32 numbers, which OpenAI's client expects."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector.tolist())).decode()
