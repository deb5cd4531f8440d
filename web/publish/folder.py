"""A checkpoint folder, and which of its files are published."""

from pathlib import Path

import model
from model.checkpoint.files import locate
from model.checkpoint.gpt2_format import (
    CHAT_TEMPLATE,
    CONFIG,
    SHARD_INDEX,
    SNAPSHOTS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
)
from model.checkpoint.vocabulary import file_pair
from model.checkpoint.weights import SUFFIXES, weight_files

from .plan import CannotPublish

OPTIONAL = (TOKENIZER_CONFIG, CHAT_TEMPLATE, "generation_config.json", "training.json", "README.md", "LICENSE")
PICTURES = ("*.svg", "*.png")


def load_folder(folder: Path) -> model.LoadedModel:
    """The model in ``folder``. Raises ``CannotPublish`` unless it can be loaded, from weights that are no pickle."""
    try:
        loaded = model.load(folder, device="cpu")
        weights = weight_files(folder)
    except model.CheckpointError as error:
        raise CannotPublish(str(error)) from None
    if weights[0].suffix in SUFFIXES:
        raise CannotPublish(
            f"{folder} has its weights in a pickle, {weights[0].name}, which is not published: "
            f"write them as safetensors with `python -m model.checkpoint convert {folder} NEW_FOLDER`."
        )
    return loaded


def files_of(folder: Path) -> dict[str, Path]:
    """What ``model.load`` reads of a folder that it can load, and what describes it, by the path in the folder.

    Raises ``CannotPublish`` for a link that leads out of the folder.
    """
    weights = weight_files(folder)
    vocabulary = [folder / TOKENIZER] if (folder / TOKENIZER).is_file() else file_pair(folder) or ()
    paths = [folder / CONFIG, *vocabulary, *weights, *(folder / name for name in OPTIONAL)]
    if weights[0].name != WEIGHTS:
        paths.append(folder / SHARD_INDEX)
    for pattern in PICTURES:
        paths += sorted(folder.glob(pattern))
    paths += sorted((folder / SNAPSHOTS).glob("*.safetensors"))
    kept = [path for path in paths if path.exists() and not path.is_dir() and not path.name.startswith(".")]
    try:
        return {path.relative_to(folder).as_posix(): locate(path, "a file to publish", folder) for path in kept}
    except model.CheckpointError as error:
        raise CannotPublish(str(error)) from None
