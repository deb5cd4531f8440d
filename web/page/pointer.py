"""What the page is told: of a run, a pointer, from which the browser knows what to fetch; of the models, a list."""

import asyncio
import re
from pathlib import Path

from model import CheckpointError, LoadedModel
from model.checkpoint.files import read_text
from model.errors import counted

from ..runs.openings import CannotWrite
from ..runs.run import Run
from ..services import Services


def pointer(run: Run, state: str, settings: dict[str, object]) -> dict[str, object]:
    """How far ``run`` is, the shape of its model, and the ``settings`` from which it was written."""
    config = run.loaded.config
    return {
        "run": run.id,
        "state": state,
        "tokens": len(run.ids),
        "rows": run.recording.n_rows,
        "rate": round(run.tokens_per_second, 1),
        "n_prompt": run.n_prompt,
        "earlier": run.earlier,
        "model": run.loaded.name,
        "sha256": run.loaded.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "context_length": config.context_length,
        "settings": settings,
        "head_mask": None if run.head_mask is None else run.head_mask.tolist(),
    }


async def opening_pointer(services: Services, name: str | None) -> dict[str, object]:
    """What the page shows of the model ``name`` before this visitor has written anything with it."""
    nothing: dict[str, object] = {"state": "none", "notices": services.served.problems()}
    if name not in services.served.models:
        return nothing
    try:
        opening, run = await asyncio.to_thread(services.openings.get, name)
    except CannotWrite:
        return nothing | {"notices": services.served.problems()}
    suggested_heads = [each._asdict() for each in opening.suggested_heads]
    head = services.snapshots.formed_head(name) or opening.head
    return pointer(run, "opening", opening.settings) | {"head": head, "suggested_heads": suggested_heads}


MAX_CARD_BYTES = 200_000
MAX_ABOUT = 320  # characters
WRITTEN_ELSEWHERE = " · another engine writes, this model reads along"


def model_list(services: Services) -> list[dict[str, object]]:
    """Name, facts, one line from the card, and the training steps kept of every model that is served."""
    served = services.served
    return [
        {
            "name": name,
            "facts": facts(loaded) + (WRITTEN_ELSEWHERE if services.engines.writes_elsewhere(loaded) else ""),
            "about": about(served.sources.get(name, "")),
            "steps": services.snapshots.steps(name),
        }
        for name, loaded in served.models.items()
    ]


def facts(loaded: LoadedModel) -> str:
    """A model's size and precision in one line."""
    config = loaded.config
    precision = str(loaded.dtype).removeprefix("torch.")
    parts = [
        f"{count(config.n_parameters)} weights",
        f"{counted(config.n_layer, 'layer')} × {counted(config.n_head, 'head')}",
        f"context {config.context_length:,}",
        f"{precision} on {loaded.device.type.replace('cpu', 'CPU')}",
    ]
    return " · ".join(parts)


def about(source: Path | str) -> str:
    """The first sentence of what a model card says about the data, or else of the card; "" where there is no card."""
    try:
        text = read_text(Path(source) / "README.md", "a model card", MAX_CARD_BYTES)
    except CheckpointError:
        return ""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    _, _, data = text.partition("\n## Data\n")
    for paragraph in re.split(r"\n\s*\n", data or text):
        line = " ".join(paragraph.split())
        if line and line[0] not in "#!|<`-*[":
            sentence = re.split(r"(?<=[.!?;])\s", line)[0]
            return sentence if len(sentence) <= MAX_ABOUT else sentence[: MAX_ABOUT - 1] + "…"
    return ""


def count(n: int) -> str:
    return f"{n / 1e6:.1f} M" if n >= 1e5 else f"{n:,}"
