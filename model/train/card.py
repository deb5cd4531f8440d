"""What a training run says of itself: training.json, its pictures, and the model card for the Hugging Face Hub.

``python -m model.card FOLDER`` makes pictures and card anew from a ``training.json``.
"""

import json
import math
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any

from ..checkpoint.write import to_json, write_atomic
from ..errors import counted
from .chart import Line, chart
from .settings import TrainSettings, snapshot_knee

# Said on the card, not part of the recipe.
ABOUT = {"title", "data_note", "recipe_note", "limits", "license", "language", "dataset"}


def write_report(folder: Path, report: dict[str, Any]) -> None:
    """Write ``training.json`` with the content ``report``, and the pictures and the card made from it."""
    texts = {"training.json": to_json(report), "README.md": model_card(report, folder.name)}
    if report["history"]:
        texts["loss.svg"] = loss_curve(report)
    if report["heads"]:
        texts["heads.svg"] = head_curve(report)
    for name, text in texts.items():
        write_atomic(folder / name, partial(Path.write_text, data=text, encoding="utf-8"))


def unit(report: dict[str, Any]) -> str:
    return "character" if report["settings"]["tokenizer"] == "char" else "token"


def loss_curve(report: dict[str, Any]) -> str:
    """The training and the validation loss over the steps."""
    history = report["history"]
    last = counted(history[-1]["step"], "step")
    return chart(
        f"Loss over {last} of training, in nats per {unit(report)}",
        f"loss in nats per {unit(report)}",
        [
            Line("training", "#d97706", [(row["step"], row["train_loss"]) for row in history]),
            Line("validation", "#2563eb", [(row["step"], row["validation_loss"]) for row in history]),
        ],
    )


def head_curve(report: dict[str, Any]) -> str:
    """The highest score that any head has for each role, over the kept steps."""
    heads = report["heads"]
    lines = [
        Line(role.replace("_", " "), colour, [(row["step"], highest(row[role])[2]) for row in heads])
        for role, colour in (("previous_token", "#2563eb"), ("induction", "#d97706"), ("duplicate_token", "#059669"))
    ]
    lines.append(Line("uniform", "#808080", [(row["step"], row["uniform"]) for row in heads]))
    return chart(
        "Highest score of any head for each role over training",
        "mean attention weight of the strongest head",
        lines,
        snapshot_knee(report["settings"]["steps"]),
    )


def highest(scores: list[list[float]]) -> tuple[int, int, float]:
    """Layer, head and value of the largest of ``scores[layer][head]``."""
    return max(
        ((layer, head, score) for layer, row in enumerate(scores) for head, score in enumerate(row)),
        key=lambda found: found[2],
    )


def model_card(report: dict[str, Any], name: str) -> str:
    """The text of ``README.md`` for the content of a ``training.json``."""
    settings = report["settings"]
    metadata = {
        "license": settings["license"] or "unknown",
        "language": settings["language"],
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["headscope", "gpt2"],
    }
    if settings["dataset"]:
        metadata["datasets"] = settings["dataset"].split(",")
    front = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in metadata.items())
    parts = [
        f"# {settings['title'] or name}",
        f"A GPT of {counted(report['n_parameters'], 'weight')}: {counted(settings['n_layer'], 'layer')}, "
        f"{counted(settings['n_head'], 'head')}, "
        f"{settings['n_embd']} wide, context {settings['context_length']}, one token per "
        + ("character." if unit(report) == "character" else "piece of a byte-level BPE vocabulary."),
        "## Data",
        settings["data_note"] or "Not described.",
        f"Training: {counted(report['train_tokens'], 'token')}; "
        f"validation: {counted(report['validation_tokens'], 'token')}, never trained on. "
        f"SHA-256 of the text: `{report['data_sha256']}`.",
        "## Figures",
        *figures(report),
        *(head_formation(report) if report["heads"] else []),
        "## Recipe",
        indented(command(report, name)),
        f"{counted(report['step'], 'step')} of {counted(settings['batch_size'], 'window')} in "
        f"{counted(round(report['seconds'] / 60), 'minute')} "
        f"({report['machine']}, matrix products in {report['autocast']}). "
        "Every setting and the losses along the way stand in `training.json`.",
        *([settings["recipe_note"]] if settings["recipe_note"] else []),
        *(samples(report) if report["samples"] else []),
        "## Limits",
        settings["limits"] or "Not described.",
        "## Use",
        "The folder is a GPT-2 checkpoint: Headscope, `transformers` and other engines open it as it is.",
    ]
    return f"---\n{front}---\n\n" + "\n\n".join(parts) + "\n"


def figures(report: dict[str, Any]) -> list[str]:
    """The validation loss, and how it was measured."""
    loss = report["best_validation_loss"]
    if loss is None:
        return ["Not validated yet."]
    bits = bits_per_byte(loss, report["validation_tokens"], report["validation_bytes"])
    return [
        "![The training and validation loss over the steps](loss.svg)",
        f"**{loss:.4f}** nats per {unit(report)} (**{bits:.3f}** bits per byte) on the whole validation split: "
        f"consecutive windows of {counted(report['settings']['context_length'], 'token')}, every token counted once, "
        "float32; the bytes are those of the text, without delimiters.",
    ]


def bits_per_byte(loss: float, n_tokens: int, n_bytes: int) -> float:
    """From nats per token: the first of ``n_tokens`` is foretold by nothing and does not count."""
    return loss * (n_tokens - 1) / math.log(2) / max(n_bytes, 1)


def head_formation(report: dict[str, Any]) -> list[str]:
    """What the heads came to do over the kept steps."""
    last, uniform = report["heads"][-1], report["heads"][-1]["uniform"]
    parts = [
        "## How the heads formed",
        "![The highest score of any head for each role over the steps](heads.svg)",
        "Measured on random tokens that are repeated once, so that nothing but attention can tell what follows: the "
        "mean attention weight from a token of the second half to the token before it (*previous token*), to the "
        "same token in the first half (*duplicate token*), and to the token that followed that one (*induction*). "
        f"A head that looks everywhere alike would score {uniform:.3f}.",
    ]
    for role in ("previous_token", "duplicate_token", "induction"):
        layer, head, score = highest(last[role])
        passed = next((row["step"] for row in report["heads"] if highest(row[role])[2] >= score / 2), last["step"])
        found = f"- {role.replace('_', ' ').capitalize()}: strongest in L{layer} H{head}, **{score:.3f}** at the end"
        parts.append(f"{found}; half of it by step {passed}." if score >= FORMED else f"{found}: none formed.")
    parts.append(
        f"A token of the first half costs {last['first_loss']:.2f} nats, one of the second "
        f"{last['second_loss']:.2f}: the difference is what the heads copy."
    )
    return parts


FORMED = 0.2  # share of its weight that a head gives to a role before the card says that it has formed


def command(report: dict[str, Any], name: str) -> str:
    """The command that trained it: every setting that is not the default of today."""
    defaults = TrainSettings()
    flags = ["python -m model.train", f"--out {shlex.quote(name)}"]
    for key, value in report["settings"].items():
        if key not in ABOUT | {"device"} and value != getattr(defaults, key):
            flags.append(f"--{key.replace('_', '-')} {shlex.quote(str(value))}")
    return " ".join(flags)


def samples(report: dict[str, Any]) -> list[str]:
    """What it writes, unedited."""
    parts = ["## Samples", "Unedited, the first with these seeds."]
    for sample in report["samples"]:
        prompt = f"prompt {json.dumps(sample['prompt'], ensure_ascii=False)}" if sample["prompt"] else "no prompt"
        parts.append(
            f"Seed {sample['seed']}, temperature {sample['temperature']:g}, at most "
            f"{counted(sample['max_new_tokens'], 'token')}, {prompt}:"
        )
        parts.append(indented(sample["prompt"] + sample["text"]))
    return parts


def indented(text: str) -> str:
    """``text`` as a code block that nothing in it can end."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def main(arguments: list[str]) -> None:
    for folder in map(Path, arguments):
        write_report(folder, json.loads((folder / "training.json").read_bytes()))


if __name__ == "__main__":
    main(sys.argv[1:])
