"""The report of a training run: ``training.json``, its charts, and the model card for the Hugging Face Hub.

``python -m model.train.card FOLDER ...`` regenerates the charts and the card from a folder's ``training.json``.
"""

import json
import math
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from ..checkpoint.files import open_file
from ..checkpoint.write import to_json, write_atomic
from ..errors import counted
from ..lens.head_roles import ROLES, Role
from .chart import Curve, chart
from .settings import TrainSettings, snapshots_log_from
from .state import Losses, SnapshotScores

# Settings that only describe the model on its card.
DESCRIPTIONS = {"title", "data_note", "recipe_note", "limits", "license", "language", "dataset"}
FORMED = 0.2  # the score from which a head counts as formed
ROLE_COLOURS: dict[Role, str] = {"previous_token": "#2563eb", "induction": "#d97706", "duplicate_token": "#059669"}


class Sample(TypedDict):
    """A text that the trained model generated, and everything needed to generate it again."""

    prompt: str
    prompt_tokens: list[int]
    seed: int
    temperature: float
    max_new_tokens: int
    text: str


class Report(TypedDict):
    """The content of ``training.json``."""

    step: int
    seconds: float
    history: list[Losses]
    heads: list[SnapshotScores]
    settings: dict[str, Any]
    samples: list[Sample]
    finished: bool
    best_validation_loss: float | None
    bigram_validation_loss: float  # of the counted pairs of the training split
    best_step: int  # whose weights are the model's
    n_parameters: int
    data_sha256: str
    train_tokens: int
    validation_tokens: int
    validation_bytes: int
    autocast: str
    torch: str
    machine: str


def write_report(folder: Path, report: Report) -> None:
    """Write ``report`` as ``training.json``, along with the charts and the card made from it."""
    texts = {"training.json": to_json(report), "README.md": model_card(report, folder.name)}
    if report["history"]:
        texts["loss.svg"] = loss_curve(report)
    if report["heads"]:
        texts["heads.svg"] = head_curve(report)
    for name, text in texts.items():
        write_atomic(folder / name, partial(Path.write_text, data=text, encoding="utf-8"))


def unit(report: Report) -> str:
    """The word for a token of this model."""
    return "character" if report["settings"]["tokenizer"] == "char" else "token"


def loss_curve(report: Report) -> str:
    """A chart of the training and validation loss over the steps."""
    history = report["history"]
    last = counted(history[-1]["step"], "step")
    return chart(
        f"Loss over {last} of training, in nats per {unit(report)}",
        f"loss in nats per {unit(report)}",
        [
            Curve("training", "#d97706", [(row["step"], row["train_loss"]) for row in history]),
            Curve("validation", "#2563eb", [(row["step"], row["validation_loss"]) for row in history]),
        ],
    )


def head_curve(report: Report) -> str:
    """A chart of the highest score that any head has for each role, over the snapshots."""
    heads = report["heads"]
    curves = [
        Curve(role.replace("_", " "), colour, [(row["step"], strongest_head(row[role])[2]) for row in heads])
        for role, colour in ROLE_COLOURS.items()
    ]
    curves.append(Curve("uniform", "#808080", [(row["step"], row["uniform"]) for row in heads]))
    return chart(
        "Highest score of any head for each role over training",
        "mean attention weight of the strongest head",
        curves,
        snapshots_log_from(heads[-1]["step"]),
    )


def strongest_head(scores: list[list[float]]) -> tuple[int, int, float]:
    """The layer and head with the highest of ``scores[layer][head]``, and that score."""
    return max(
        ((layer, head, score) for layer, row in enumerate(scores) for head, score in enumerate(row)),
        key=lambda found: found[2],
    )


def model_card(report: Report, name: str) -> str:
    """The text of ``README.md`` for the model ``name``."""
    settings = report["settings"]
    arch = settings.get("arch", "gpt2")  # reports of earlier versions do not say
    family, kind = ("Llama", " of Llama's architecture") if arch == "llama" else ("GPT-2", "")
    metadata = {
        "license": settings["license"] or "unknown",
        "language": settings["language"],
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["headscope", arch],
    }
    if settings["dataset"]:
        metadata["datasets"] = settings["dataset"].split(",")
    front_matter = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in metadata.items())
    paragraphs = [
        f"# {settings['title'] or name}",
        f"A GPT{kind} with {counted(report['n_parameters'], 'weight')}: {counted(settings['n_layer'], 'layer')} of "
        f"{counted(settings['n_head'], 'head')}, {settings['n_embd']}-dimensional embeddings, "
        f"a context of {counted(settings['context_length'], 'token')}, one token per "
        + ("character." if unit(report) == "character" else "piece of a byte-level BPE vocabulary."),
        "## Data",
        settings["data_note"] or "Not described.",
        f"Training split: {counted(report['train_tokens'], 'token')}. "
        f"Validation split: {counted(report['validation_tokens'], 'token')}, held out from training. "
        f"SHA-256 of the text: `{report['data_sha256']}`.",
        "## Figures",
        *figures(report),
        *(head_formation(report) if report["heads"] else []),
        "## Recipe",
        indented(command(report, name)),
        f"{counted(report['step'], 'step')} of {counted(settings['batch_size'], 'window')} in "
        f"{counted(round(report['seconds'] / 60), 'minute')} "
        f"({report['machine']}, matrix products in {report['autocast']}). "
        "All settings and the losses along the way are in `training.json`.",
        *([settings["recipe_note"]] if settings["recipe_note"] else []),
        *(samples(report) if report["samples"] else []),
        "## Limits",
        settings["limits"] or "Not described.",
        "## Use",
        f"This folder is a {family} checkpoint: Headscope, `transformers` and other engines open it without "
        "conversion.",
    ]
    return f"---\n{front_matter}---\n\n" + "\n\n".join(paragraphs) + "\n"


def figures(report: Report) -> list[str]:
    """The validation loss, and how it was measured."""
    loss = report["best_validation_loss"]
    if loss is None:
        return ["Not yet validated."]
    bits = bits_per_byte(loss, report["validation_tokens"], report["validation_bytes"])
    return [
        "![Training and validation loss over the steps](loss.svg)",
        f"**{loss:.4f}** nats per {unit(report)} (**{bits:.3f}** bits per byte) on the whole validation split, "
        f"in consecutive windows of {counted(report['settings']['context_length'], 'token')}, with every token counted "
        "once, in float32. The bytes are those of the text, without delimiters.",
    ]


def bits_per_byte(loss: float, n_tokens: int, n_bytes: int) -> float:
    """Convert nats per token to bits per byte. The first of the ``n_tokens`` is not predicted and does not count."""
    return loss * (n_tokens - 1) / math.log(2) / max(n_bytes, 1)


def head_formation(report: Report) -> list[str]:
    """How the heads took on their roles over the snapshots."""
    last = report["heads"][-1]
    paragraphs = [
        "## How the heads formed",
        "![Highest score of any head for each role over the steps](heads.svg)",
        "Measured on random tokens that are repeated once, so that only attention to the first half can predict the "
        "second: the mean attention weight from a token of the second half to the token before it (*previous token*), "
        "to the same token in the first half (*duplicate token*), and to the token that followed that one "
        f"(*induction*). A head that attends to all tokens equally would score {last['uniform']:.3f}.",
    ]
    for role in ROLES:
        layer, head, score = strongest_head(last[role])
        scores = [(row["step"], strongest_head(row[role])[2]) for row in report["heads"]]
        half = next((step for step, found in scores if found >= score / 2), last["step"])
        line = f"- {role.replace('_', ' ').capitalize()}: strongest in L{layer} H{head}, **{score:.3f}** at the end"
        paragraphs.append(f"{line}; half of that by step {half}." if score >= FORMED else f"{line}: not formed.")
    paragraphs.append(
        f"The loss is {last['first_loss']:.2f} nats per token in the first half and {last['second_loss']:.2f} in the "
        "second: the difference is due to copying."
    )
    return paragraphs


def command(report: Report, name: str) -> str:
    """The command that trained the model, with every setting that differs from its current default."""
    defaults = TrainSettings()
    flags = ["python -m model.train", f"--out {shlex.quote(name)}"]
    for key, value in report["settings"].items():
        if key not in DESCRIPTIONS | {"device"} and value != getattr(defaults, key):
            flags.append(f"--{key.replace('_', '-')} {shlex.quote(str(value))}")
    return " ".join(flags)


def samples(report: Report) -> list[str]:
    """The generated texts, unedited."""
    paragraphs = ["## Samples", "Unedited, and not selected: the first text generated with each seed."]
    for sample in report["samples"]:
        prompt = f"prompt {json.dumps(sample['prompt'], ensure_ascii=False)}" if sample["prompt"] else "no prompt"
        paragraphs.append(
            f"Seed {sample['seed']}, temperature {sample['temperature']:g}, at most "
            f"{counted(sample['max_new_tokens'], 'token')}, {prompt}:"
        )
        paragraphs.append(indented(sample["prompt"] + sample["text"]))
    return paragraphs


def indented(text: str) -> str:
    """``text`` as an indented code block, which nothing in the text can end."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def main(arguments: list[str]) -> None:
    """Regenerate the report of each folder named in ``arguments``."""
    for folder in map(Path, arguments):
        with open_file(folder / "training.json", "the report of a training run") as file:
            write_report(folder, json.load(file))


if __name__ == "__main__":
    main(sys.argv[1:])
