"""What a training run says of itself: training.json, the loss curve, and the model card for the Hugging Face Hub."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

from .curve import loss_curve
from .errors import counted
from .layout import to_json, write_atomic


def write_report(folder: Path, report: dict[str, Any]) -> None:
    """Write ``training.json`` with the content ``report``, and the picture and the card made from it."""
    settings = report["settings"]
    texts = {"training.json": to_json(report), "README.md": model_card(report, settings["title"] or folder.name)}
    if report["history"]:
        texts["loss.svg"] = loss_curve(report["history"], "character" if settings["tokenizer"] == "char" else "token")
    for name, text in texts.items():
        write_atomic(folder / name, partial(Path.write_text, data=text, encoding="utf-8"))


def model_card(report: dict[str, Any], title: str) -> str:
    """The text of ``README.md`` for the content of a ``training.json``."""
    settings = report["settings"]
    metadata = {
        "license": settings["license"] or "unknown",
        "language": settings["language"],
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["headscope", "gpt2"],
    }
    front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in metadata.items())
    unit = "character" if settings["tokenizer"] == "char" else "token"
    lines = [
        f"# {title}",
        f"A GPT of {counted(report['n_parameters'], 'weight')}: {counted(settings['n_layer'], 'layer')}, "
        f"{counted(settings['n_head'], 'head')}, "
        f"{settings['n_embd']} wide, context {settings['context_length']}, one token per "
        + ("character." if unit == "character" else "piece of a byte-level BPE vocabulary."),
        "## Data",
        settings["data_note"] or "Not described.",
        f"Training: {counted(report['train_tokens'], 'token')}; "
        f"validation: {counted(report['validation_tokens'], 'token')}, never trained on. "
        f"SHA-256 of the text: `{report['data_sha256']}`.",
        "## Figures",
        figures(report, unit),
        "## Recipe",
        f"`python -m model.train` for {counted(report['step'], 'step')} of "
        f"{counted(settings['batch_size'], 'window')}, "
        f"{counted(round(report['seconds'] / 60), 'minute')} "
        f"({report['machine']}, matrix products in {report['autocast']}). "
        "Every setting and the losses along the way stand in `training.json`.",
        "## Use",
        "The folder is a GPT-2 checkpoint: Headscope, `transformers` and other engines open it as it is.",
    ]
    return f"---\n{front}---\n\n" + "\n\n".join(lines) + "\n"


def figures(report: dict[str, Any], unit: str) -> str:
    """The validation loss, and how it was measured."""
    loss = report["best_validation_loss"]
    if loss is None:
        return "Not validated yet."
    bits = loss * (report["validation_tokens"] - 1) / math.log(2) / max(report["validation_bytes"], 1)
    return (
        "![The training and validation loss over the steps](loss.svg)\n\n"
        f"**{loss:.4f}** nats per {unit} ({bits:.3f} bits per byte) on the whole validation split: consecutive windows "
        f"of {counted(report['settings']['context_length'], 'token')}, every token counted once, float32."
    )
