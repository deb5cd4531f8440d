"""Pointers: descriptions of a run that tell the browser what to fetch."""

import asyncio

from ..runs.openings import CannotWrite
from ..runs.run import Run
from ..services import Services


def pointer(run: Run, state: str, settings: dict[str, object]) -> dict[str, object]:
    """A pointer: the progress of ``run``, the shape of its model, and the ``settings`` it was written with."""
    config = run.loaded.config
    special = sorted(set(run.ids) & set(run.loaded.tokenizer.special_tokens.values()))
    return {
        "run": run.id,
        "state": state,
        "tokens": len(run.ids),
        "rows": run.recording.n_rows,
        "rate": round(run.tokens_per_second, 1),
        "n_prompt": run.n_prompt,
        "earlier": run.earlier,
        "before": run.loaded.tokenizer.text_before(run.ids),
        "model": run.loaded.name,
        "sha256": run.loaded.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_kv_head": config.n_kv_head,
        "rotary": config.rotary is not None,
        "qk_norm": config.qk_norm,
        "context_length": config.context_length,
        "settings": settings,
        "head_mask": None if run.head_mask is None else run.head_mask.tolist(),
        **({"special": special} if special else {}),
    }


async def opening_pointer(services: Services, name: str | None) -> dict[str, object]:
    """A pointer to the text that the page shows before this visitor has written anything with the model ``name``."""
    nothing: dict[str, object] = {"state": "none", "notices": services.served.problems()}
    if name not in services.served.models:
        return nothing
    try:
        opening, run = await asyncio.to_thread(services.openings.get, name)
    except CannotWrite:
        return nothing | {"notices": services.served.problems()}
    suggested_heads = [each._asdict() for each in opening.suggested_heads]
    head = opening.head if opening.is_declared else services.snapshots.formed_head(name) or opening.head
    more = {"head": head, "suggested_heads": suggested_heads, "ids": opening.ids}
    return pointer(run, "opening", opening.settings) | more
