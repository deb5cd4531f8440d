"""The embeddings of tokens."""

import torch
from torch import Tensor, nn

from ..config import GPTConfig


class TokenEmbedding(nn.Embedding):
    """A vector for each token, ``(...) -> (..., C)``, multiplied by the square root of its size if the model does so.

    ``weight`` is not multiplied, since the output head may share it.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config.vocab_size, config.n_embd)
        self.is_scaled = config.scale_embeddings

    def forward(self, ids: Tensor) -> Tensor:
        tokens = super().forward(ids)
        if not self.is_scaled:
            return tokens
        # Rounded to the precision of the weights, as in training.
        return tokens * float(torch.tensor(self.embedding_dim**0.5, dtype=tokens.dtype, device="cpu"))
