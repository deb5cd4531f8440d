"""The story that the lessons begin with: what stories-bpe expects next, by the steps of rungs 5 to 9.

The heads that look back at the word from the end of the story, and copy it, can be taken away.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from pydantic import Field

from model import LoadedModel, ladder
from model.ladder.block import BlockStages, block_by_ladder, final_norm, linear, normalise
from model.ladder.terms import largest_difference
from model.lens.text_pass import TextPass
from model.modules.head_tensors import Head

from ..runs.openings import OPENS_ON, read_declared
from ..serving.served_models import ServedModels
from ..settings import CHECKPOINTS
from .lesson_request import LayerAndHead, StrictRequest

OURS = CHECKPOINTS / OPENS_ON
WORD = " kite"
OTHERS = (" new", " string")  # that are likely, too
COPYING = ((4, 3), (4, 5), (5, 5), (5, 6), (6, 0), (7, 6), (7, 7))


class KiteRequest(StrictRequest):
    muted: list[LayerAndHead] = Field([], max_length=len(COPYING))


def kite(served: ServedModels, request: KiteRequest) -> dict[str, object]:
    """The chances of the next word with all heads and without those muted; ``model`` is None if it is not served."""
    loaded, source = served.models.get(OPENS_ON), served.sources.get(OPENS_ON)
    declared = read_declared(OURS) if source and Path(source).resolve() == OURS.resolve() else None
    if loaded is None or declared is None:  # or another model has its name
        return {"model": None}
    ids = loaded.parse_prompt(declared.prompt)
    words = {word.strip(): loaded.parse_prompt(word)[-1] for word in (WORD, *OTHERS)}
    places = [i for i, token in enumerate(ids) if token == words[WORD.strip()]]
    muted = [place for place in request.muted if place in COPYING]
    whole = by_the_lessons(loaded, ids)
    less = by_the_lessons(loaded, ids, muted) if muted else whole
    chances = [next_chances(loaded, stages[-1].after[-1]) for stages in (whole, less)]
    best = int(chances[1].argmax())
    return {
        "model": loaded.name,
        "chances": [{word: each[token].item() for word, token in words.items()} for each in chances],
        "notebook": notebook(loaded, whole, words[WORD.strip()]),
        "best": {"text": loaded.tokens([best])[0].text, "p": chances[1][best].item()},
        "heads": [
            {
                "head": (layer, head),
                "isMuted": (layer, head) in muted,
                "weight": less[layer].weights[head, -1, places].sum().item(),
            }
            for layer, head in COPYING
        ],
        "error": difference_from_model(loaded, ids, muted, chances[1]),
        "largest_error": 1e-4 if loaded.dtype == torch.float32 else 0.1,
    }


@torch.inference_mode()
def by_the_lessons(loaded: LoadedModel, ids: list[int], muted: Sequence[Head] = ()) -> list[BlockStages]:
    """Every layer, step by step as on rungs 5 to 9."""
    x, stages = TextPass(loaded.gpt, ids).stream[0][0], []
    for layer, block in enumerate(loaded.gpt.blocks):
        stages.append(block_by_ladder(block, x, [head for at, head in muted if at == layer]))
        x = stages[-1].after
    return stages


def notebook(loaded: LoadedModel, stages: Sequence[BlockStages], token: int) -> list[dict[str, object]]:
    """The likeliest next word, and the chance of ``token``, if the model stopped after each addition to the stream."""
    rows = []
    for layer, stage in enumerate(stages):
        for part, stream in (("attention", stage.resid_mid), ("MLP", stage.after)):
            chances = next_chances(loaded, stream[-1])
            word = loaded.tokens([int(chances.argmax())])[0].text.strip()
            rows.append({"layer": layer, "part": part, "word": word, "chance": chances[token].item()})
    return rows


@torch.inference_mode()
def next_chances(loaded: LoadedModel, x: torch.Tensor) -> torch.Tensor:
    """The probabilities ``(vocab_size,)`` after a vector ``(C,)`` of the last layer."""
    logits = linear(loaded.gpt.lm_head, normalise(final_norm(loaded.gpt), x))
    return ladder.stable_softmax(logits.float().cpu())


def difference_from_model(loaded: LoadedModel, ids: list[int], muted: Sequence[Head], chances: torch.Tensor) -> float:
    """The largest difference of the chances from those of the model's own forward pass."""
    mask = torch.ones(loaded.config.n_layer, loaded.config.n_head, device=loaded.device)
    for place in muted:
        mask[place] = 0
    theirs = TextPass(loaded.gpt, ids, mask).logits(len(ids) - 1, len(ids))[0]
    return largest_difference(chances, torch.softmax(theirs.float().cpu(), dim=-1))
