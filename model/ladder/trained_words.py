"""Three numbers for each word of any sentence, from the embeddings of a trained model."""

import torch
from torch import Tensor

from ..errors import PromptError
from ..loaded import LoadedModel


def embed_word(loaded: LoadedModel, word: str) -> Tensor | None:
    """The mean token embedding ``(C,)`` of a word, scaled to length 1, or None where the model cannot read it."""
    texts = (f" {word}", word) if loaded.tokenizer.kind == "bpe" else (word,)  # byte pairs mostly begin with a space
    for text in texts:
        try:
            ids = loaded.tokenizer.encode(text)
        except PromptError:
            continue
        mean = loaded.gpt.wte(torch.tensor(ids, device=loaded.device)).float().mean(dim=0).cpu()
        return mean / mean.norm().clamp(min=1e-9)
    return None


@torch.inference_mode()
def trained_words(loaded: LoadedModel, words: list[str], size: int = 3) -> Tensor | None:
    """``size`` numbers for each of the words, ``(T, size)``, that keep their dot products as well as so few can.

    Those of the trained embeddings are approximated best, in the sum of squares, by the coordinates along the leading
    singular vectors (Eckart & Young 1936). None where the model cannot read one of the words.
    """
    embedded = [embed_word(loaded, word) for word in words]
    vectors = [vector for vector in embedded if vector is not None]
    if not vectors or len(vectors) < len(words):
        return None
    u, s, _ = torch.linalg.svd(torch.stack(vectors), full_matrices=False)
    found = torch.zeros(len(words), size)
    n = min(size, len(s))
    found[:, :n] = u[:, :n] * s[:n]
    # A direction has no sign of its own: the largest number along it is positive.
    largest = found.gather(0, found.abs().argmax(dim=0, keepdim=True))
    return found * torch.where(largest < 0, -1.0, 1.0)
