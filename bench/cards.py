"""The figures of the model cards, recomputed from the checkpoint folders and the texts they were trained on.

    python -m bench.cards FOLDER

``FOLDER`` holds the text files that the cards name; missing ones are listed, and a text with a different SHA-256 is
rejected. Samples are generated again and must be identical.
"""

import json
import sys
from pathlib import Path
from typing import Any

import model
from bench.harness import ROOT, Row, arguments, need_files, report
from model.lens.head_roles import ROLES, role_scores
from model.loaded import LoadedModel
from model.train.card import bits_per_byte, strongest_head
from model.train.data import documents, encode, load_text
from model.train.losses import validation_loss


def card_rows(folder: Path, texts: Path) -> list[Row]:
    """Every figure of one card: the recomputed value, and the value on the card."""
    card = json.loads((folder / "training.json").read_text())
    loaded = model.load(folder, dtype="float32")
    return [*loss_rows(loaded, card, texts), *head_rows(folder, card), *samples_rows(loaded, card)]


def texts_of(folder: Path) -> list[str]:
    """The names of the text files that a model was trained and validated on."""
    settings = json.loads((folder / "training.json").read_text())["settings"]
    return [name for name in (settings["data"], settings["validation"]) if name]


def loss_rows(loaded: LoadedModel, card: dict[str, Any], texts: Path) -> list[Row]:
    """The validation loss, per token and per byte."""
    held_out = card["settings"]["validation"]
    _, text, sha256 = load_text(texts / card["settings"]["data"], texts / held_out if held_out else None)
    if sha256 != card["data_sha256"]:
        sys.exit(f"{texts}: the SHA-256 is {sha256}, the card of {loaded.name} names {card['data_sha256']}")
    ids = encode(loaded.tokenizer, text)
    parts = documents(text) if loaded.tokenizer.special_tokens else [text]
    loss = validation_loss(loaded.gpt, ids, loaded.config.context_length)
    n_bytes = sum(len(part.encode()) for part in parts)
    said = card["best_validation_loss"]
    bits, bits_said = (bits_per_byte(nats, len(ids), n_bytes) for nats in (loss, said))
    return [
        Row(f"{loaded.name}, validation", "nats/token", loss, "less", {"card": said}),
        Row(f"{loaded.name}, validation", "bits/byte", bits, "less", {"card": bits_said}),
    ]


def head_rows(folder: Path, card: dict[str, Any]) -> list[Row]:
    """The strongest head of each role at the last snapshot."""
    rows = []
    for said in card["heads"][-1:]:
        scores = role_scores(model.load(f"{folder}@{said['step']:06d}", dtype="float32"))
        for role in ROLES:
            layer, head, score = scores.best(role)
            case = f"{folder.name}, {role.replace('_', ' ')}, L{layer} H{head}"
            rows.append(Row(case, "weight", score, "more", {"card": strongest_head(said[role])[2]}))
    return rows


def samples_rows(loaded: LoadedModel, card: dict[str, Any]) -> list[Row]:
    """How many of the samples are reproduced exactly; no row for a card without samples."""
    same = 0
    for sample in card["samples"]:
        settings = {name: sample[name] for name in ("max_new_tokens", "temperature", "seed")}
        same += sample["text"] == "".join(step.text for step in loaded.generate(sample["prompt_tokens"], **settings))
    n_samples = len(card["samples"])
    return [Row(f"{loaded.name}, samples", "the same", same, "more", {"card": n_samples})] if n_samples else []


def main() -> None:
    texts = arguments(__doc__ or "", texts="folder of the text files").texts
    folders = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/training.json"))
    need_files(texts, *sorted({name for folder in folders for name in texts_of(folder)}))
    report("cards", [row for folder in folders for row in card_rows(folder, texts)])


if __name__ == "__main__":
    main()
