"""The figures of the model cards, recomputed from the checkpoint folders and the texts they were trained on.

    python -m bench.cards FOLDER

``FOLDER`` holds the text files that the cards name; one with another SHA-256 is refused.
"""

import json
import sys
from pathlib import Path

import model
from bench.harness import ROOT, Row, arguments, report
from model.data import encode, load_text
from model.train import validation_loss


def card_row(folder: Path, texts: Path) -> Row:
    """The validation loss of one checkpoint beside the one on its card."""
    card = json.loads((folder / "training.json").read_text())
    held_out = card["settings"]["validation"]
    _, text, sha256 = load_text(texts / card["settings"]["data"], texts / held_out if held_out else None)
    if sha256 != card["data_sha256"]:
        sys.exit(f"{texts}: the SHA-256 is {sha256}, the card of {folder.name} names {card['data_sha256']}")
    gpt = model.load(folder, dtype="float32")
    loss = validation_loss(gpt.gpt, encode(gpt.tokenizer, text), gpt.config.context_length)
    return Row(f"{folder.name}, validation", "nats/token", loss, "less", {"card": card["best_validation_loss"]})


def main() -> None:
    texts = arguments(__doc__ or "", texts="folder of the text files").texts
    folders = sorted(path.parent for path in (ROOT / "checkpoints").glob("*/training.json"))
    report("cards", [card_row(folder, texts) for folder in folders])


if __name__ == "__main__":
    main()
