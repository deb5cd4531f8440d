"""Writing a long text with one model as training data for another: many pieces at once, each filling the context."""

from collections.abc import Callable
from itertools import takewhile

import torch
from torch import Tensor

from ..errors import PromptError
from ..loaded import LoadedModel
from ..modules.cache import KVCache, attention_dtype

PIECES = 64  # written in parallel
TEMPERATURE = 0.8
REPORT_TOKENS = 16  # tokens per piece between two reports


def write_text(loaded: LoadedModel, n_characters: int, seed: int, report: Callable[[int, str], None]) -> str:
    """A text of at least ``n_characters`` in pieces of one context each, joined by line breaks.

    Each piece starts with the model's usual first token. ``report`` receives the number of characters so far, and the
    piece being written.
    """
    generator = torch.Generator(device=loaded.device).manual_seed(seed)
    pieces: list[str] = []
    n_written = 0
    while n_written < n_characters:
        before = n_written
        written = write_pieces(loaded, generator, lambda n, piece: report(before + n, piece))  # noqa: B023 - called at once
        pieces += written
        n_written += sum(map(len, written)) + len(written)
    return "\n".join(pieces)


@torch.inference_mode()
def write_pieces(loaded: LoadedModel, generator: torch.Generator, report: Callable[[int, str], None]) -> list[str]:
    """``PIECES`` texts that fill the context, without line breaks around them; what follows an end token is dropped."""
    config, weight = loaded.config, loaded.gpt.wte.weight
    first = first_token(loaded)
    ids = torch.full((PIECES, 1), first, device=weight.device)
    cache = KVCache(config, batch_size=PIECES, dtype=attention_dtype(weight), device=weight.device)
    written: list[Tensor] = []
    never = list(loaded.ids_without_token)
    for _ in range(config.context_length):
        logits = loaded.gpt(ids, cache=cache, last_only=True).logits[:, -1].float()
        if never:
            logits[:, never] = -torch.inf
        ids = torch.multinomial((logits / TEMPERATURE).softmax(-1), 1, generator=generator)
        written.append(ids)
        if len(written) % REPORT_TOKENS == 0:
            texts = texts_of(loaded, torch.cat(written, 1))
            report(sum(map(len, texts)), texts[0])
    return texts_of(loaded, torch.cat(written, 1))


def texts_of(loaded: LoadedModel, ids: Tensor) -> list[str]:
    """The texts of token ids ``(n_texts, n_tokens)``, each up to its first end token."""
    rows = [list(takewhile(lambda token_id: token_id not in loaded.end_token_ids, row)) for row in ids.tolist()]
    return [loaded.tokenizer.decode(row).strip("\n") for row in rows]


def first_token(loaded: LoadedModel) -> int:
    """The token after which a text of the model begins: that of every prompt, an end token, a line break, or 0."""
    if firsts := (*loaded.tokenizer.begins_with, *loaded.end_token_ids):
        return firsts[0]
    try:
        return loaded.parse_prompt("\n")[0]
    except PromptError:
        return 0
