"""Rung 10 draws the next token, with the code that draws it when a text is written."""

import torch
from pydantic import Field

from model import SamplingSettings
from model.sampling import draw_tokens, probabilities, random_generator

from ..serving.served_models import ServedModels
from .whole_model import MAX_TOKENS, SHOWN_TOKENS, WholeModelRequest, head_and_query, tokenize_sentence

MAX_DRAWS = 1_000


class DrawRequest(WholeModelRequest):
    temperature: float = Field(1.0, ge=0, le=2)
    top_k: int = Field(0, ge=0, le=100)  # 0 means all tokens
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(1, ge=0, le=10**9)
    draws: int = Field(1, ge=1, le=MAX_DRAWS)


@torch.inference_mode()
def draw(served: ServedModels, request: DrawRequest) -> dict[str, object]:
    """Tokens drawn after the one that is followed: the first of them, and how often each of the likeliest was drawn."""
    tokenized = tokenize_sentence(served, request)
    _, _, query = head_and_query(tokenized, request)
    logits = tokenized.text_pass.logits(query, query + 1)[0]
    settings = SamplingSettings(temperature=request.temperature, top_k=request.top_k or None, top_p=request.top_p)
    own, drawn_with = logits.double().softmax(dim=-1), probabilities(logits, settings)
    drawn = draw_tokens(drawn_with, random_generator(request.seed), request.draws)
    counts = torch.bincount(drawn, minlength=len(logits))
    shown, rest = logits.argsort(descending=True, stable=True).tensor_split([SHOWN_TOKENS])
    first = int(drawn[0])
    config = tokenized.loaded.config
    is_end = query == len(tokenized.ids) - 1 and len(tokenized.ids) < min(config.context_length, MAX_TOKENS)
    text = tokenized.loaded.tokens([first])[0].text
    return {
        "draws": request.draws,
        "seed": request.seed,
        "drawn": {"id": first, "text": text, "p": own[first].item(), "drawn_with": drawn_with[first].item()},
        "continued": request.sentence + text if is_end else None,
        "n_possible": int((drawn_with > 0).sum()),
        "tokens": [
            {"id": i, "text": token.text, "p": own[i].item(), "drawn_with": drawn_with[i].item(), "n": int(counts[i])}
            for i, token in zip(shown.tolist(), tokenized.loaded.tokens(shown.tolist()), strict=True)
        ],
        "others": {
            "p": own[rest].sum().item(),
            "drawn_with": drawn_with[rest].sum().item(),
            "n": request.draws - int(counts[shown].sum()),
        },
    }
