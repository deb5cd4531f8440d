"""What the page is told about the served models."""

import re
from collections.abc import Mapping
from pathlib import Path

from model import CheckpointError, LoadedModel
from model.checkpoint.files import read_text
from model.errors import counted

from ..services import Services

MAX_CARD_BYTES = 200_000
MAX_ABOUT = 320  # characters
LENT = "Lent by the visitor who trained it, for an hour at most. It may repeat passages of its text."
WRITTEN_ELSEWHERE = " · another engine writes; this model reads along"


def model_list(services: Services) -> list[dict[str, object]]:
    """For every served model: name, label, facts, one line from the card, and its stored training steps.

    ``chat`` is whether it has a chat template, ``spaced`` whether its words begin with their space; ``sampling`` are
    the settings that its checkpoint recommends. ``until`` is when a model that is lent to this visitor is deleted at
    the latest, in seconds since 1970, and 0 for all others.

    Until the models are loaded, those still to come are listed without facts.
    """
    served, borrowed = services.served, services.served.private.borrowed
    models: Mapping[str, LoadedModel | None] = served.models if served.ready.done() else dict.fromkeys(served.sources)
    return [
        {
            "name": name,
            "label": declared.label if (declared := services.openings.declared(name)) else "",
            "facts": facts(loaded) + written_elsewhere(services, loaded) if loaded else "",
            "about": LENT if name not in served.sources else about(served.sources[name]),
            "chat": bool(loaded and loaded.chat_template),
            "sampling": loaded.default_sampling if loaded else {},
            "spaced": bool(loaded and loaded.tokenizer.words_begin_with_space),
            "steps": services.snapshots.steps(name),
            "until": 0 if name in served.sources or borrowed is None else borrowed.until,
        }
        for name, loaded in models.items()
    ]


def facts(loaded: LoadedModel) -> str:
    """A model's size and precision in one line, and how many rows of its vocabulary have no token, if any."""
    config = loaded.config
    precision = str(loaded.dtype).removeprefix("torch.")
    parts = [
        f"{count(config.n_parameters)} weights",
        f"{counted(config.n_layer, 'layer')} × {counted(config.n_head, 'head')}",
        context(config.context_length, loaded.declared_context),
        f"{precision} on {loaded.device.type.replace('cpu', 'CPU')}",
    ]
    if n_rows := len(loaded.ids_without_token):
        parts.append(f"{counted(n_rows, 'row')} of the vocabulary without a token, never drawn")
    return " · ".join(parts)


def written_elsewhere(services: Services, loaded: LoadedModel) -> str:
    return WRITTEN_ELSEWHERE if services.engines.writes_elsewhere(loaded) else ""


def about(source: Path | str) -> str:
    """The first sentence of what a model card says about the data, or else of the card; "" if there is no card."""
    try:
        text = read_text(Path(source) / "README.md", "a model card", MAX_CARD_BYTES)
    except CheckpointError:
        return ""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    _, _, data = text.partition("\n## Data\n")
    for paragraph in re.split(r"\n\s*\n", data or text):
        line = " ".join(paragraph.split())
        if line and line[0] not in "#!|<`-*[":
            sentence = re.split(r"(?<=[.!?])\s", line)[0]
            return sentence if len(sentence) <= MAX_ABOUT else sentence[: MAX_ABOUT - 1] + "…"
    return ""


def context(used: int, declared: int) -> str:
    """The context length, and that of the checkpoint if not all of it is used."""
    return f"context {used:,}" + (f" of {declared:,}" if declared > used else "")


def count(n: int) -> str:
    if n >= 999_950_000:  # which would be 1000.0 M
        return f"{n / 1e9:.1f} B"
    return f"{n / 1e6:.1f} M" if n >= 1e5 else f"{n:,}"
